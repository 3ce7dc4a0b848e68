"""Chats that move to another id, that are gone, and that come back.

`take` sees each message first. What tells of the chat itself ends here; a message of a chat that has
moved goes on under the new id. A move is stored when it is told; the rows and folders follow as soon
as no turn is under way in the chat, and again at each start, which changes nothing unless a crash
came in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from bridge.chats.erasing import erase_folders
from bridge.chats.holds import Holds
from bridge.scheduler import Due
from bridge.session import chat_key, memory_scope, rekeyed
from channels.base import Address, InboundMessage
from memory.chats.moving import former_event
from memory.chats.reach import ChatPlace, Chats, Move
from memory.errors import StoreError
from memory.markdown.folders import MEMORY, TRANSCRIPTS, ChatFolders

log = logging.getLogger(__name__)

ERASE_GONE: Final = "erase_gone"
NIGHTLY: Final = "0 4 * * *"
TRUSTED_GAP: Final = timedelta(days=1)
ERASED_AFTER: Final = timedelta(days=30)  # that the bot was removed and has not returned
LONGEST_PAUSE_S = 60  # while a move cannot be stored

TakeUp = Callable[[str, str], Awaitable[None]]


Heard = Callable[[str], bool]
"""Whether all that a channel's platform had for us has come in."""


class ChatKeeper:
    """`beside(work, name)` starts something that goes on by itself; `take_up(old, new)` makes the
    waiting messages of a session whose key was `old` wait under `new`; `erase_limits(channel, chat)`
    removes the files of a chat's limits; `tidy_up(place)` takes away what was left in a chat that
    could not be reached."""

    def __init__(
        self,
        chats: Chats,
        folders: ChatFolders,
        holds: Holds,
        beside: Callable[[Coroutine[Any, Any, None], str], None],
        take_up: TakeUp,
        erase_limits: Callable[[str, str], Awaitable[None]],
        tidy_up: Callable[[ChatPlace], Coroutine[Any, Any, None]],
    ) -> None:
        self._chats = chats
        self._folders = folders
        self._holds = holds
        self._beside = beside
        self._take_up = take_up
        self._erase_limits = erase_limits
        self._tidy_up = tidy_up

    async def settle(self) -> None:
        """At a start, before any lane: let everything follow that a crash has left behind."""
        for move in self._chats.moves:
            await self._carry(move)

    async def take(self, message: InboundMessage) -> InboundMessage | None:
        """The message as it is to be dealt with; None when it told of the chat and nothing else.
        Raises `StoreError`."""
        if message.moved_from is not None:
            await self._take_move(message.address, message.moved_from)
            return None
        place = place_of(message.address)
        now = self._chats.current(place)
        if message.left:
            if now == place:  # that an old id is left says nothing about the chat
                await self._chats.gone(place, removed=True)
            return None
        if await self._chats.back(now):
            self._beside(self._tidy_up(now), "tidying up a chat that is back")
        if message.joined and message.address.private:
            return None
        return message if now == place else _of_former(message, now.chat)

    async def gone(self, address: Address, *, removed: bool = False) -> None:
        """A delivery found the chat unreachable (`channels.errors.Unreachable`). That the bot may not
        write in one thread says nothing about the chat."""
        if address.thread is not None and not removed:
            return
        await self._chats.gone(self._chats.current(place_of(address)), removed=removed)

    def is_gone(self, address: Address) -> bool:
        """Whether nothing can be delivered there until something comes from there."""
        return self._chats.is_gone(self._chats.current(place_of(address)))

    async def by_the_clock(self, due: Due, heard: Heard) -> str:
        """`erase_gone` as a job. One that was missed by long waits for the next night: the clock may
        have been set wrong just now, and what is erased does not come back."""
        if due.now - due.planned_at > TRUSTED_GAP:
            return "left to the next night"
        return f"{await self.erase_gone(due.now, heard)} chats erased"

    async def erase_gone(self, now: datetime, heard: Heard) -> int:
        """Erase the chats that the bot was removed from 30 days before `now`; how many. Where it has
        just begun to hear, or hears nothing, a chat's return may be among what is still to come."""
        erased = 0
        for place in await self._chats.removed_before(now - ERASED_AFTER):
            if not heard(place.channel):
                continue
            if self._holds.works(chat_key(place.channel, place.account, place.chat)):
                continue
            await self._erase(place)
            erased += 1
        return erased

    async def _erase(self, place: ChatPlace) -> None:
        """The folders first: while rows are there, it is tried again."""
        for chat in self._chats.names(place):
            await self._erase_limits(place.channel, chat)
        await erase_folders(self._chats, self._folders, place)
        await self._chats.erase(place)
        log.warning("%s: chat %s was erased: the bot was removed", place.channel, place.chat)

    # Moves ----------------------------------------------------------------------------------------

    async def _take_move(self, address: Address, old: str) -> None:
        move = Move(address.channel, address.account, old, address.chat)
        if not await self._chats.expect(move):
            return
        log.warning("%s: chat %s has become %s; %s", move.channel, old, move.new, advice(move))
        for chat in self._keys(move):
            self._holds.hold(chat)
        self._beside(self._follow(move), "move of a chat")

    async def _follow(self, move: Move) -> None:
        chats = self._keys(move)
        try:
            await self._holds.quiet(*chats)
            for old, new in await self._carried(move):
                await self._take_up(old, new)
        finally:
            for chat in chats:
                self._holds.release(chat)

    async def _carried(self, move: Move) -> list[tuple[str, str]]:
        """As `_carry`, tried until it is stored: at the latest the next start does it."""
        failures = 0
        while True:
            try:
                return await self._carry(move)
            except StoreError as error:
                log.warning("the move of chat %s is not stored yet: %s", move.old, error)
                await asyncio.sleep(min(2**failures, LONGEST_PAUSE_S))
                failures += 1

    async def _carry(self, move: Move) -> list[tuple[str, str]]:
        """Rows, then folders. The sessions' keys, old and new."""
        old_chat, new_chat = self._keys(move)
        keys = await self._chats.carry(move, lambda key: rekeyed(key, new_chat))
        pairs = [(rekeyed(key, old_chat), key) for key in keys]
        scopes = [memory_scope(_group(move, chat)) for chat in (move.old, move.new)]
        try:
            await self._folders.move(TRANSCRIPTS, pairs)
            await self._folders.move(MEMORY, [(scopes[0], scopes[1])])
        except OSError as error:
            log.error("a folder of chat %s stays behind until the next start: %s", move.old, error)
        return pairs

    @staticmethod
    def _keys(move: Move) -> tuple[str, str]:
        old, new = (chat_key(move.channel, move.account, chat) for chat in (move.old, move.new))
        return old, new


def advice(move: Move) -> str:
    """What an operator has to do about a move."""
    return (
        f"where the configuration names {move.old} (channels.{move.channel}.allowed, memory.shared), "
        f"write {move.new} instead"
    )


def place_of(address: Address) -> ChatPlace:
    """The chat, without its threads."""
    return ChatPlace(address.channel, address.account, address.chat)


def _group(move: Move, chat: str) -> Address:
    return Address(move.channel, move.account, chat, None, private=False)


def _of_former(message: InboundMessage, chat: str) -> InboundMessage:
    """The message as one of the chat that its own has become: no number of the old one is valid
    there."""
    press = message.press
    return replace(
        message,
        address=replace(message.address, chat=chat),
        event=former_event(message.address.chat, message.event),
        message_id="",
        press=None if press is None else replace(press, message_id=""),
    )
