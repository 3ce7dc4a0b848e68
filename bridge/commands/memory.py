"""`/memory`, `/remember` and `/forget`: what a memory holds, and a person's own changes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from bridge.answers import Answer, Handlers
from bridge.chats.private_talks import PrivateTalks
from bridge.chats.rights import Rights
from bridge.limits.keys import WHO_CAN_TEACH
from bridge.limits.policies import zone_of
from bridge.remembering.buttons import delete_buttons, undo_button
from bridge.remembering.overnight import outcome
from bridge.runs.turn_plan import TurnServices
from bridge.runs.zone_question import asked_zone
from bridge.speakers import plain_name
from bridge.texts import Say
from channels.base import InboundMessage
from memory.conversations import SessionPlace
from memory.markdown.facts import (
    MOST_CHARACTERS,
    MOST_ENTRIES,
    MOST_TEXT,
    Fact,
    FactsRefused,
    Line,
    size,
)
from memory.markdown.files import names
from memory.markdown.lines import ref_of
from memory.night.nights import Night
from memory.removal.forgetting import MOST_MATCHES
from memory.scopes import ChatScope, day_of, scope_path
from memory.text.words import normalised
from memory.whose.authors import Member, Receipt

UNDO = "undo"  # what stands after /memory to take the last change back
TIDY = "tidy"  # and to have the night's work done now


class MemoryCommands:
    """Whose memory it is follows from where the command was sent."""

    def __init__(self, services: TurnServices, rights: Rights, talks: PrivateTalks) -> None:
        self._talks = talks
        self._services = services
        self._notebook = services.notebook
        self._sharing = services.memory.sharing
        self._rights = rights

    @property
    def commands(self) -> Handlers:
        """`/memory`, `/remember` and `/forget`."""
        return {
            "memory": self.show,
            "memory off": self.turn_off,
            "memory on": self.turn_on,
            "remember": self.remember,
            "forget": self.forget,
        }

    async def turn_off(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        """Nothing is added and looked at from now on; what there is stays."""
        await self._services.memory.switch.turn(message.address, message.sender.id, on=False)
        chat = self._sharing.chat(message.address)
        entries = size(await self._notebook.files.load(chat.scope)).entries
        days = await asyncio.to_thread(self._days, chat)
        return say("memory_off", entries=entries, days=len(days))

    async def turn_on(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        """It goes on with what there is."""
        switch = self._services.memory.switch
        if not switch.is_allowed(message.address, message.sender.id):
            return say("memory_off_by_limits")
        await switch.turn(message.address, message.sender.id, on=True)
        return say("memory_on")

    async def _is_on(self, message: InboundMessage) -> bool:
        return await self._services.memory.switch.is_on(message.address, message.sender.id)

    async def show(self, message: InboundMessage, _place: SessionPlace, say: Say) -> str:
        """Who can see it, the entries, sizes; or the last change is taken back."""
        words = message.command.args.split() if message.command else []
        try:
            if words == [UNDO]:
                return await self._undo(message, say)
            if words == [TIDY]:
                return await self._tidy(message, say)
        except FactsRefused as refused:
            return refusal(refused, say)
        if words:
            return say("memory_how")
        chat = self._sharing.chat(message.address)
        lines = await self._notebook.files.load(chat.scope)
        taken = size(lines)
        entries = [shown for line in lines if (shown := _shown(line, say))]
        days = await asyncio.to_thread(self._days, chat)
        night = await self._services.memory.nights.newest(chat.scope)
        parts = [
            await self._who(message, say),
            "" if await self._is_on(message) else say("memory_is_off"),
            "\n".join(entries) or say("memory_none"),
            say(
                "memory_sizes",
                entries=taken.entries,
                most=MOST_ENTRIES,
                characters=f"{taken.characters:,}",
                room=f"{MOST_CHARACTERS:,}",
                days=len(days),
            ),
            "" if night is None else _last_night(night, say),
            say("memory_how"),
        ]
        return "\n\n".join(filter(None, parts))

    async def _who(self, message: InboundMessage, say: Say) -> str:
        """Who can see it; a group by its name."""
        where = self._sharing.audience(message.address)
        title = await self._rights.title(message.address) if where == "group" else None
        return say("memory_who_group_named", title=title) if title else say(f"memory_who_{where}")

    async def remember(
        self, message: InboundMessage, _place: SessionPlace, say: Say
    ) -> Answer | str:
        """One more entry, in the person's own words."""
        text = message.command.args.strip() if message.command else ""
        if not text:
            return say("remember_what")
        if self._talks.of(message.address) is not None:
            return say("private_no_memory")
        chat = self._sharing.chat(message.address)
        policy = self._services.policies.of(message.address, message.sender.id)
        if not await self._is_on(message):
            return say("memory_is_off")
        if not await self._rights.is_among(policy[WHO_CAN_TEACH], message):
            return say("memory_not_taught")
        said_at = min(message.sent_at, datetime.now(UTC)).astimezone(zone_of(policy))
        try:
            receipt = await self._notebook.remember(
                chat, member(message, self._rights), text, said_at.date()
            )
        except FactsRefused as refused:
            return refusal(refused, say)
        where = self._sharing.audience(message.address)
        text = say(f"memory_remembered_{where}", text=receipt.text, number=receipt.number)
        asked, buttons = await asked_zone(self._services, message, policy, say)
        text = f"{text}\n\n{asked}" if asked else text
        return Answer(text, (*undo_button(receipt.changes[0], say), *buttons))

    async def forget(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer | str:
        """Names of lines: they are forgotten. Words, or a number that is no name: what has them is
        listed."""
        words = message.command.args.strip() if message.command else ""
        if not words:
            return say("forget_what")
        chat = self._sharing.chat(message.address)
        refs = [ref_of(word.strip(",")) for word in words.split()]
        named = [ref for ref in refs if ref is not None]
        try:
            if len(named) == len(refs):
                try:
                    by = member(message, self._rights)
                    receipt = await self._notebook.forgetting.forget(chat, by, named)
                    return await self._forgotten(message, chat, receipt, say)
                except FactsRefused as refused:
                    if refused.why != "no_entry" or not words.isdigit():
                        raise
            matches = await self._notebook.forgetting.matches(chat, words)
        except FactsRefused as refused:
            return refusal(refused, say)
        if not matches:
            return say("memory_refused_no_entry", number=words) if named else say("forget_nothing")
        found = [f"- `{match.ref}` {match.text}" for match in matches[:MOST_MATCHES]]
        if len(matches) > MOST_MATCHES:
            found += ["", say("forget_more", count=len(matches) - MOST_MATCHES)]
        return "\n\n".join((say("forget_matches", name=matches[0].ref), "\n".join(found)))

    async def _forgotten(
        self, message: InboundMessage, chat: ChatScope, receipt: Receipt, say: Say
    ) -> Answer:
        """The messages that said it are out of sight already; whether they are deleted is asked."""
        where = self._sharing.audience(message.address)
        text = say(f"memory_forgotten_{where}", number=receipt.number)
        everything = await self._rights.over_all(message)
        told = await self._notebook.said_before.said(
            chat,
            receipt.changes[0],
            receipt.changes[-1],
            person=None if everything else message.sender.id,
        )
        if not told.count or not say.capabilities.buttons:
            return Answer(text)
        text = "\n\n".join((text, say("messages_delete", count=told.count)))
        return Answer(text, delete_buttons(receipt.changes, say))

    async def _undo(self, message: InboundMessage, say: Say) -> str:
        """The last change that still shows: one of what was forgotten since has nothing left. Raises
        `FactsRefused`, also when none is left."""
        gone, back = list[Fact](), list[Fact]()
        while not gone and not back:
            gone, back = await self._notebook.undo(self._sharing.chat(message.address))
        return undone_lines(gone, back, say)

    async def _tidy(self, message: InboundMessage, say: Say) -> str:
        """The night's work now."""
        if not await self._is_on(message):
            return say("memory_is_off")
        jobs = self._services.memory.jobs
        night = None
        if jobs is not None:
            night = await jobs.tidy(self._sharing.scope(message.address), datetime.now(UTC))
        return say("night_same") if night is None else outcome(night, say)

    def _days(self, chat: ChatScope) -> list[str]:
        folder = scope_path(self._notebook.folder, chat.scope)
        return [name for name in names(folder) if day_of(name) is not None]


def member(message: InboundMessage, rights: Rights) -> Member:
    """Who sends it."""
    name = plain_name(message.sender.name)
    return Member(message.sender.id, name, lambda: rights.over_all(message))


def undone_lines(gone: Sequence[Fact], back: Sequence[Fact], say: Say) -> str:
    """What is gone, and what is there again."""
    told = [f"– {_entry(fact, say)}" for fact in gone]
    told += [f"+ {_entry(fact, say)}" for fact in back]
    return "\n\n".join(filter(None, (say("memory_undone"), "\n".join(told))))


def _last_night(night: Night, say: Say) -> str:
    return say("memory_last_night", day=night.day, outcome=outcome(night, say))


def _shown(line: Line, say: Say) -> str:
    """An entry with its number; a line that a hand has written as it stands."""
    if line.fact is not None:
        return _entry(line.fact, say)
    return f"- {line.raw.strip().lstrip('-*+ ')}" if normalised(line.raw) else ""


def _entry(fact: Fact, say: Say) -> str:
    return say("memory_entry", number=fact.number, text=fact.text, day=fact.day, who=fact.who)


def refusal(refused: FactsRefused, say: Say) -> str:
    """Why nothing is changed."""
    return say(
        f"memory_refused_{refused.why}",
        number=refused.number,
        most=MOST_TEXT,
        entries=MOST_ENTRIES,
        characters=f"{MOST_CHARACTERS:,}",
    )
