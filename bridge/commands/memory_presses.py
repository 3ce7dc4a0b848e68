"""Presses of the memory's buttons. Who may is asked by id at the moment of the press."""

from __future__ import annotations

from datetime import date

from bridge.answers import Answer, Handlers
from bridge.chats.rights import Rights
from bridge.commands.memory import MemoryCommands, member, refusal, undone_lines
from bridge.remembering.buttons import ACTION, KEEP, SHOW, deleted, undone, undone_night
from bridge.runs.turn_plan import TurnServices
from bridge.texts import Say
from channels.base import InboundMessage
from memory.conversations import SessionPlace
from memory.markdown.facts import FactsRefused
from memory.markdown.folders import TRANSCRIPTS


class MemoryPresses:
    """By the value of the button."""

    def __init__(self, services: TurnServices, rights: Rights, commands: MemoryCommands) -> None:
        self._notebook = services.notebook
        self._nights = services.memory.nights
        self._folders = services.folders
        self._sharing = services.memory.sharing
        self._rights = rights
        self._commands = commands

    @property
    def presses(self) -> Handlers:
        """By the buttons' action."""
        return {ACTION: self._press}

    async def _press(self, message: InboundMessage, place: SessionPlace, say: Say) -> Answer:
        value = message.press.value if message.press is not None else ""
        if value == SHOW:
            shown = await self._commands.show(message, place, say)
            return Answer(shown, apart=True)
        if value == KEEP:
            return Answer(say("messages_kept"), spent=True)
        try:
            if (change := undone(value)) is not None:
                await self._notebook.take_back(
                    self._sharing.chat(message.address), member(message, self._rights), change
                )
                return Answer(say("memory_undone"), spent=True)
            if (night := undone_night(value)) is not None:
                return await self._undo_night(message, night, say)
            if (changes := deleted(value)) is not None:
                return await self._delete(message, *changes, say)
        except FactsRefused as refused:
            return Answer(refusal(refused, say))
        return Answer("", spent=True)

    async def _undo_night(self, message: InboundMessage, night: date, say: Say) -> Answer:
        if not await self._rights.over_all(message):
            return Answer(say("admins_only"))
        chat = self._sharing.chat(message.address)
        traces = await self._nights.traces(chat.scope, night)
        changed = await self._notebook.undo_night(chat, traces)
        return Answer(undone_lines(*changed, say), spent=True, apart=True)

    async def _delete(self, message: InboundMessage, first: int, last: int, say: Say) -> Answer:
        """In a group members delete what they have asked themselves."""
        everything = await self._rights.over_all(message)
        person = None if everything else message.sender.id
        chat, said = self._sharing.chat(message.address), self._notebook.said_before
        told = await said.said(chat, first, last, person=person)
        await self._folders.erase(TRANSCRIPTS, await said.conversations(told))
        return Answer(say("messages_deleted", count=await said.delete(told)), spent=True)
