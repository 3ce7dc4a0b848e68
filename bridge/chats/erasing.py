"""What is stored of a chat or a person goes for good: rows, files, earlier versions, transcripts, the
index, and what the database file and its log still hold of it.

In the running process no turn, note or night is under way in the chats meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from bridge.chats.holds import Holds
from bridge.configuration.storing import Storing
from bridge.remembering.parts import MemoryParts
from bridge.session import chat_key, memory_scope
from channels.base import Address
from memory.chats.reach import ChatPlace, Chats
from memory.markdown.folders import MEMORY, TRANSCRIPTS, ChatFolders
from memory.removal.person_traces import Person, PersonTraces, Trace
from memory.scopes import SHARED
from memory.storage.migrate import KEPT_NAME

QUIET_WAIT_S = 10.0  # for answers and notes that are under way in the chats


class Busy(Exception):
    """Something is under way in the chat; nothing is erased."""


@dataclass(frozen=True, slots=True)
class Found:
    """What there is of a person: their private chats, traces in those that they share with others, and
    lines of the memory that groups have `together`, which they may see while `inside` of one."""

    person: Person
    private: tuple[ChatPlace, ...]
    shared: tuple[Trace, ...]
    together: tuple[str, ...] = ()
    inside: bool = True

    def with_private(self, place: ChatPlace) -> Found:
        """And this chat, which is one of theirs."""
        shared = tuple(trace for trace in self.shared if trace.place != place)
        return Found(self.person, (*self.private, place), shared, self.together, self.inside)


class Inside(Protocol):
    """Which groups somebody reads now: what stands in the memory of others is not for them."""

    async def of(self, person: str, places: Sequence[ChatPlace]) -> set[ChatPlace]:
        """Those of the places that the person is in, as the platform says; in doubt they are not."""
        ...

    def shares(self, place: ChatPlace) -> bool:
        """Whether the group has its memory together with others."""
        ...


class Quiet(Protocol):
    """Nothing is under way in these chats while inside, nor, with `together`, a night of the memory
    that groups share. Raises `Busy`."""

    def __call__(
        self, places: Sequence[ChatPlace], *, together: bool = False
    ) -> AbstractAsyncContextManager[None]: ...


class Eraser:
    """Methods may raise `Busy`, `OSError` and `StoreError`; what was interrupted can be done again."""

    def __init__(
        self,
        traces: PersonTraces,
        chats: Chats,
        folders: ChatFolders,
        quiet: Quiet,
        erased: Callable[[ChatPlace], None] = lambda place: None,
        forget: Callable[[str, str], None] = lambda channel, person: None,
    ) -> None:
        """`erased` hears of each chat that is gone, `forget` of a person (channel, id) who goes."""
        self._traces = traces
        self._chats = chats
        self._folders = folders
        self._quiet = quiet
        self._erased = erased
        self._forget = forget

    async def chat(self, place: ChatPlace, by: str) -> None:
        """All of one chat, in which people still are. `by`: who has wanted it, for the audit table."""
        async with self._quiet([place]):
            await self._chat(place, by)

    async def places(self, channel: str, chat: str) -> list[ChatPlace]:
        """The chats of that id of which something is stored: one for each of the channel's accounts."""
        return await self._traces.places(channel, chat)

    async def find(self, channel: str, person: str, groups: Inside | None = None) -> Found:
        """What there is of a person on a channel; without `groups` for the operator, who may see it
        all."""
        known = Person(channel, person)
        private, shared = await self._traces.chats(channel, person)
        member_of = set(shared) if groups is None else await groups.of(person, shared)
        traces = [
            await self._traces.trace(known, place, inside=place in member_of) for place in shared
        ]
        inside = groups is None or any(map(groups.shares, member_of))
        together = await self._traces.together(known, inside=inside)
        return Found(known, tuple(private), tuple(traces), together, inside)

    async def person(self, found: Found, by: str) -> None:
        """All of a person: their private chats as a whole, and what they have left in others."""
        places = [*found.private, *(trace.place for trace in found.shared)]
        async with self._quiet(places, together=bool(found.together)):
            self._forget(found.person.channel, found.person.id)
            # First: whose its lines are is known by messages that go then.
            await self._traces.erase_together(found.person, inside=found.inside)
            for place in found.private:
                await self._chat(place, by)
            for trace in found.shared:
                keys = await self._traces.session_keys(found.person, trace.place)
                await self._folders.erase(TRANSCRIPTS, keys)
                await self._traces.erase_in(found.person, trace.place, inside=trace.inside)
            await self._traces.finish(found.person, by)

    def until(self, storing: Storing, now: datetime) -> datetime | None:
        """Until when copies that are made by the clock, or when the schema changes, hold what is erased
        now; None where there are none."""
        ends = [storing.backups_until(now)] + [
            datetime.fromtimestamp(path.stat().st_mtime, UTC)
            + timedelta(days=storing.keep.messages_days + 1)
            for path in self._folders.data.iterdir()
            if KEPT_NAME.search(path.name)
        ]
        return max((end for end in ends if end is not None), default=None)

    async def _chat(self, place: ChatPlace, by: str) -> None:
        await erase_folders(self._chats, self._folders, place)
        await self._chats.erase(place, alive=True, by=by)
        self._erased(place)


async def erase_folders(chats: Chats, folders: ChatFolders, place: ChatPlace) -> None:
    """The chat's own memory and transcripts; what it shares with others stays. Before its rows: while
    those are there, it is tried again."""
    keys = await chats.session_keys(place)
    scopes = [
        memory_scope(Address(place.channel, place.account, chat, None, private))
        for chat in chats.names(place)
        for private in (True, False)
    ]
    await folders.erase(TRANSCRIPTS, keys)
    await folders.erase(MEMORY, scopes)


def shared_scope(place: ChatPlace) -> str:
    """The memory of a chat of several people."""
    return memory_scope(Address(place.channel, place.account, place.chat, None, private=False))


def quiet(holds: Holds, chats: Chats, memory: MemoryParts) -> Quiet:
    """For the running process."""

    @asynccontextmanager
    async def held(places: Sequence[ChatPlace], *, together: bool = False) -> AsyncGenerator[None]:
        keys = [chat_key(place.channel, place.account, place.chat) for place in places]
        async with AsyncExitStack() as stack:
            for key in keys:
                holds.hold(key)
                stack.callback(holds.release, key)
            try:
                async with asyncio.timeout(QUIET_WAIT_S):
                    await holds.quiet(*keys)
                    if together:
                        await stack.enter_async_context(memory.paused((), (SHARED,)))
                    for place in places:
                        sessions = await chats.session_ids(place)
                        scopes = [
                            memory_scope(Address(*_triple(place), None, private))
                            for private in (True, False)
                        ]
                        await stack.enter_async_context(memory.paused(sessions, scopes))
            except TimeoutError:
                raise Busy from None
            yield

    return held


def _triple(place: ChatPlace) -> tuple[str, str, str]:
    return place.channel, place.account, place.chat


@asynccontextmanager
async def alone(
    places: Sequence[ChatPlace],
    *,
    together: bool = False,
) -> AsyncGenerator[None]:
    """Where no other process runs."""
    yield
