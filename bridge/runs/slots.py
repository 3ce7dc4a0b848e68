"""How many runs may ask a model at once: over all, and in one chat. Who waits is served by turns."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

Chat = tuple[str, str, str]  # channel, account, id
Person = tuple[str, str]  # channel, id


@dataclass(frozen=True, slots=True)
class _Waiting:
    chat: Chat
    granted: asyncio.Future[None]


class Slots:
    """`most` over all, `most_in_a_chat` in each. One person's runs never stand before the first one of
    somebody else."""

    def __init__(self, most: int = 100, most_in_a_chat: int = 20) -> None:
        self._most = most
        self._most_in_a_chat = most_in_a_chat
        self._running: Counter[Chat] = Counter()
        self._waiting: OrderedDict[Person, deque[_Waiting]] = OrderedDict()

    @asynccontextmanager
    async def one(self, chat: Chat, person: Person) -> AsyncGenerator[None]:
        """Hold one; waits until it is there."""
        waits = _Waiting(chat, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(person, deque()).append(waits)
        self._grant()
        try:
            await waits.granted
        except asyncio.CancelledError:
            if waits.granted.done() and not waits.granted.cancelled():
                self._leave(chat)
            else:
                self._forget(person, waits)
            raise
        try:
            yield
        finally:
            self._leave(chat)

    def _leave(self, chat: Chat) -> None:
        self._running[chat] -= 1
        if not self._running[chat]:
            del self._running[chat]
        self._grant()

    def _forget(self, person: Person, waits: _Waiting) -> None:
        queue = self._waiting.get(person)
        if queue is not None and waits in queue:
            queue.remove(waits)
            if not queue:
                del self._waiting[person]

    def _grant(self) -> None:
        """To the person who was not served for longest, as long as there is room."""
        while self._running.total() < self._most:
            found = next(
                (
                    (person, waits)
                    for person, queue in self._waiting.items()
                    for waits in queue
                    if self._running[waits.chat] < self._most_in_a_chat
                ),
                None,
            )
            if found is None:
                return
            person, waits = found
            self._forget(person, waits)
            if person in self._waiting:
                self._waiting.move_to_end(person)
            self._running[waits.chat] += 1
            waits.granted.set_result(None)
