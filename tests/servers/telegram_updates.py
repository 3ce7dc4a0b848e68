"""Waking waiters, and the queue of updates with its one poller."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from tests.servers.telegram_text import Json

T = TypeVar("T")

# Not sent unless asked for: core.telegram.org/bots/api#getupdates, allowed_updates.
NOT_BY_DEFAULT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
CONFLICT = (
    "Conflict: terminated by other getUpdates request; "
    "make sure that only one bot instance is running"
)


class ApiError(Exception):
    """A refusal: HTTP status, Telegram's description and its `parameters`."""

    def __init__(self, status: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters

    def body(self) -> Json:
        """The JSON that the bot receives."""
        body = {"ok": False, "error_code": self.status, "description": self.description}
        return body | ({"parameters": self.parameters} if self.parameters else {})


class Changes:
    """Wakes everyone who waits for a state each time something has changed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Something changed: every waiter looks again."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting = set()

    async def wait_for(
        self, look: Callable[[], T], timeout: float, describe: Callable[[], str]
    ) -> T:
        """The first true value of `look()`; after `timeout` seconds an `AssertionError`."""
        deadline = time.monotonic() + timeout
        while True:
            if value := look():
                return value
            future = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await asyncio.wait_for(future, max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                if value := look():
                    return value
                raise AssertionError(f"not seen within {timeout} s\n{describe()}") from None
            finally:
                self._waiting.discard(future)


class UpdateQueue:
    """Updates not yet confirmed, oldest first, each with its rising id."""

    def __init__(self, changed: Callable[[], None], first_id: int = 1) -> None:
        self.confirmed = first_id - 1
        self._next_id = first_id
        self._pending: deque[tuple[int, str]] = deque()
        self._allowed: frozenset[str] | None = None
        self._poller: asyncio.Future[None] | None = None
        self._changed = changed

    @property
    def pending(self) -> int:
        """How many updates are not confirmed."""
        return len(self._pending)

    @property
    def polled(self) -> bool:
        """Whether a getUpdates waits at this moment."""
        return self._poller is not None

    def allow(self, kinds: Iterable[str] | None) -> None:
        """Remembers `allowed_updates`; None keeps the last setting, an empty list is default."""
        if kinds is not None:
            chosen = frozenset(kinds)
            self._allowed = chosen or None

    @property
    def allowed(self) -> list[str] | None:
        """The kinds asked for, None for the default."""
        return None if self._allowed is None else sorted(self._allowed)

    def push(self, kind: str, payload: Any) -> int | None:
        """Queues `{kind: payload}` as it is now; its id, or None if the bot does not want it."""
        wanted = kind not in NOT_BY_DEFAULT if self._allowed is None else kind in self._allowed
        return self.push_raw({kind: payload}) if wanted else None

    def push_raw(self, update: Json) -> int:
        """Queues an update as given; `update_id` is filled in unless it names one."""
        update_id = int(update.get("update_id", self._next_id))
        self._next_id = max(self._next_id, update_id + 1)
        self._pending.append((update_id, json.dumps({"update_id": update_id} | update)))
        if self._poller is not None and not self._poller.done():
            self._poller.set_result(None)
        self._changed()
        return update_id

    def confirm(self, offset: int) -> None:
        """Forgets the updates below `offset`; a negative one keeps the last `-offset`."""
        if offset < 0:
            keep = min(-offset, len(self._pending))
            offset = self._pending[-keep][0] if keep else self._next_id
        while self._pending and self._pending[0][0] < offset:
            self.confirmed = self._pending.popleft()[0]
        self._changed()

    def clear(self) -> None:
        """Drops everything (drop_pending_updates)."""
        self.confirm(self._next_id)

    def interrupt(self, error: ApiError) -> None:
        """Ends the waiting getUpdates with `error`."""
        if self._poller is not None and not self._poller.done():
            self._poller.set_exception(error)

    async def poll(self, offset: int, limit: int, timeout: float) -> str:
        """The JSON array of up to `limit` updates, waiting up to `timeout` s for the first.

        A poll ends one that still waits: the older raises `ApiError` 409.
        """
        self.interrupt(ApiError(409, CONFLICT))
        if offset:
            self.confirm(offset)
        if not self._pending and timeout > 0:
            await self._wait(timeout)
        ready = [text for _, text in islice(self._pending, limit)]
        return "[" + ",".join(ready) + "]"

    async def _wait(self, timeout: float) -> None:
        poller: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._poller = poller
        self._changed()
        try:
            await asyncio.wait_for(poller, timeout)
        except TimeoutError:
            pass
        finally:
            if self._poller is poller:
                self._poller = None
            self._changed()
