"""Chats in which no turn begins for a while: one that moves, one whose missed messages still come in.

The messages are stored as always; the lanes look at them when the hold is over.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable

from bridge.session import chat_of

Work = Callable[[str], Awaitable[bool]]
Wake = Callable[[str], None]


class Holds:
    """By `chat_key`. `guard` the lanes' work, and `bind` what wakes a lane."""

    def __init__(self) -> None:
        self._wake: Wake | None = None
        self._held: Counter[str] = Counter()
        self._put_off: defaultdict[str, set[str]] = defaultdict(set)
        self._working: Counter[str] = Counter()
        self._ended = asyncio.Event()

    def bind(self, wake: Wake) -> None:
        """`wake(session_key)` makes a lane look at its messages."""
        self._wake = wake

    def guard(self, work: Work) -> Work:
        """The same work, which finds nothing to do in a chat that is held."""

        async def guarded(session_key: str) -> bool:
            chat = chat_of(session_key)
            if self._held[chat]:
                self._put_off[chat].add(session_key)
                return False
            self._working[chat] += 1
            try:
                return await work(session_key)
            finally:
                self._working[chat] -= 1
                if not self._working[chat]:
                    del self._working[chat]
                self._ended.set()

        return guarded

    def hold(self, chat: str) -> None:
        """From now on no turn begins in the chat, until as many `release`."""
        self._held[chat] += 1

    def release(self, chat: str) -> None:
        """Turns may begin again; those that were put off do."""
        self._held[chat] -= 1
        if self._held[chat] > 0:
            return
        del self._held[chat]
        for session_key in self._put_off.pop(chat, set()):
            if self._wake is not None:
                self._wake(session_key)

    def is_held(self, chat: str) -> bool:
        """Whether no turn begins in the chat now."""
        return self._held[chat] > 0

    def works(self, chat: str) -> bool:
        """Whether a turn is under way in the chat."""
        return bool(self._working[chat])

    async def quiet(self, *chats: str) -> None:
        """Return when no turn is under way in these chats."""
        while any(map(self.works, chats)):
            self._ended.clear()
            await self._ended.wait()
