"""`/private`: a conversation in a private chat of which nothing is kept. It has a session of its
own, so that what was said before goes on afterwards; it ends with `/new`, or after a day."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import unquote

from bridge.chats.erasing import Busy, Quiet
from bridge.chats.keeper import place_of
from bridge.scheduler import Due
from bridge.session import chat_key
from channels.base import Address
from memory.chats.reach import ChatPlace
from memory.chats.talks import END, Talk, Talks
from memory.conversations import SessionPlace
from memory.jobs import Jobs
from memory.markdown.folders import TRANSCRIPTS, ChatFolders
from memory.scopes import MARK

LASTS: Final = timedelta(hours=24)
AGAIN: Final = timedelta(minutes=5)  # while an answer is under way at its end
LIMIT_S = 120.0


class PrivateTalks:
    """`load` it before anything else. Methods may raise `Busy`, `OSError` and `StoreError`."""

    def __init__(self, talks: Talks, folders: ChatFolders, jobs: Jobs, quiet: Quiet) -> None:
        self._talks = talks
        self._folders = folders
        self._jobs = jobs
        self._quiet = quiet
        self._known: dict[ChatPlace, Talk] = {}

    async def load(self) -> None:
        """Read those that have not ended."""
        self._known = {talk.place: talk for talk in await self._talks.all()}

    def of(self, address: Address) -> Talk | None:
        """The one that goes on there."""
        return self._known.get(place_of(address)) if address.private else None

    def place(self, address: Address, usual: SessionPlace) -> SessionPlace:
        """The session of a message: that of the private conversation while one goes on."""
        talk = self.of(address)
        return usual if talk is None else replace(usual, key=f"{usual.key}{MARK}{talk.token}")

    async def begin(self, address: Address) -> None:
        """A new one; one that goes on there ends."""
        await self.end(address)
        place = place_of(address)
        talk = Talk(place, secrets.token_hex(8), datetime.now(UTC) + LASTS)
        await self._talks.begin(talk, chat_key(place.channel, place.account, place.chat))
        self._known[place] = talk

    async def end(self, address: Address) -> bool:
        """It is gone when this returns; false where none went on."""
        talk = self.of(address)
        if talk is not None:
            await self._end(talk, by_time=False)
        return talk is not None

    def forget(self, place: ChatPlace) -> None:
        """Everything of the chat was erased, it among the rest."""
        self._known.pop(place, None)

    async def by_the_clock(self, due: Due) -> str:
        """The job: end that of a chat, as soon as nothing is under way in it."""
        channel, account, chat = map(unquote, due.scope.split(":"))
        talk = self._known.get(ChatPlace(channel, account, chat))
        if talk is None or talk.until > due.now:
            return "none has to end"
        try:
            await self._end(talk, by_time=True)
        except Busy:
            await self._jobs.once(END, due.scope, due.now + AGAIN)
            return "an answer is under way, tried again"
        return "ended"

    async def _end(self, talk: Talk, *, by_time: bool) -> None:
        """The files first: while the rows are there, it is tried again."""
        async with self._quiet([talk.place]):
            await self._folders.erase(TRANSCRIPTS, await self._talks.session_keys(talk))
            await self._talks.end(talk, by_time=by_time)
            self._known.pop(talk.place, None)
