"""Cancelling: a token per request, and the registry that finds it.

A token is both a level and an edge. The level (`cancelled`) is checked at each step, between tools
and by threads and child processes. The edge cancels the task that the token is bound to, which
interrupts a stalled stream, a backoff sleep or a hanging tool within milliseconds; polling alone
would wait for the next byte, if ever one comes.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Any


class CancelToken:
    """Cancelled once, for ever. `cancel` is for the event loop's thread; `cancelled` for any."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._edge = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None

    @property
    def cancelled(self) -> bool:
        """Whether the request was cancelled."""
        return self._event.is_set()

    def bind(self, task: asyncio.Task[Any]) -> None:
        """Tie the token to the task that `cancel` interrupts; at once if cancelled already."""
        self._task = task
        if self.cancelled:
            task.cancel()

    def unbind(self) -> None:
        """The task is past the point where it may be interrupted."""
        self._task = None

    def cancel(self) -> bool:
        """Cancel. False when it was cancelled before."""
        if self._event.is_set():
            return False
        self._event.set()
        self._edge.set()
        if self._task is not None:
            self._task.cancel()
        return True

    async def wait(self) -> None:
        """Return when the request is cancelled."""
        await self._edge.wait()


RequestId = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Registration:
    """One request: whose it is, in which session, when the platform says that it was made, and its
    token."""

    request_id: RequestId
    session: str
    person: str
    asked_at: datetime
    token: CancelToken


class CancelTokenRegistry:
    """Tokens by request, with the session as index.

    A token is registered when a message is accepted and released when its reply is delivered, so
    that it covers waiting, downloads, retries, the run and the parts not yet sent. A message is a
    request of its own until a run takes it.
    """

    def __init__(self) -> None:
        self._requests: dict[RequestId, Registration] = {}
        self._sessions: dict[str, dict[RequestId, None]] = {}

    def register(
        self, request_id: RequestId, session: str, person: str, asked_at: datetime
    ) -> CancelToken:
        """A token for the request; the same one when it is registered already."""
        known = self._requests.get(request_id)
        if known is not None:
            return known.token
        token = CancelToken()
        self._requests[request_id] = Registration(request_id, session, person, asked_at, token)
        self._sessions.setdefault(session, {})[request_id] = None
        return token

    def release(self, request_id: RequestId) -> None:
        """Forget the request; nothing happens when it is unknown."""
        known = self._requests.pop(request_id, None)
        if known is None:
            return
        ids = self._sessions[known.session]
        del ids[request_id]
        if not ids:
            del self._sessions[known.session]

    def get(self, request_id: RequestId) -> Registration | None:
        """The registration of a request that is not released."""
        return self._requests.get(request_id)

    def of_session(self, session: str) -> tuple[Registration, ...]:
        """The session's requests, oldest first."""
        return tuple(self._requests[id_] for id_ in self._sessions.get(session, ()))

    def all(self) -> tuple[Registration, ...]:
        """Every request that is not released, oldest first."""
        return tuple(self._requests.values())

    def __len__(self) -> int:
        return len(self._requests)
