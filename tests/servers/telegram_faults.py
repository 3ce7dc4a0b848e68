"""What goes wrong on purpose: failed calls, cut connections, hanging, flood control."""

import asyncio
import math
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from tests.servers.telegram_params import Params
from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import CONFLICT, ApiError

HTML_ERROR = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
_WORDING = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: CONFLICT,
    500: "Internal Server Error",
    502: "Bad Gateway",
}


def too_many(retry_after: int) -> ApiError:
    """429 as Telegram words it; `retry_after` in seconds."""
    return ApiError(
        429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after}
    )


@dataclass(eq=False)
class Fault:
    """One scripted failure; see `TelegramServer.fail_next`."""

    method: str
    status: int = 500
    description: str | None = None
    parameters: Json | None = None
    html: bool = False
    drop: bool = False
    reset: bool = False
    stall: bool = False
    acted: bool = False
    left: int = 1
    used: int = 0
    """How many calls met it."""
    chat_id: int | None = None
    text: str | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Lets stalled calls go on: they are answered as if nothing had happened."""
        self.released.set()

    def fits(self, method: str, params: Params) -> bool:
        """Whether this call is meant."""
        if self.left <= 0 or self.method.lower() not in ("*", method):
            return False
        if self.chat_id is not None and params.integer("chat_id") != self.chat_id:
            return False
        return self.text is None or self.text in params.text("text")

    def response(self) -> web.Response:
        """The answer of a call that fails with one."""
        if self.html:
            return web.Response(text=HTML_ERROR, status=self.status, content_type="text/html")
        if self.status == 429 and self.parameters is None:
            return error_response(too_many(1))
        description = self.description or _WORDING.get(self.status, "Internal Server Error")
        return error_response(ApiError(self.status, description, self.parameters))


def error_response(error: ApiError) -> web.Response:
    """A refusal as HTTP."""
    return web.json_response(error.body(), status=error.status)


async def cut(request: web.Request, *, reset: bool) -> None:
    """Ends the connection without an answer, by a close or by a TCP reset. Never returns."""
    transport = request.transport
    if transport is not None:
        if reset:
            raw = transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    await asyncio.Event().wait()  # the lost connection cancels this handler


class Faults:
    """Scripted failures in the order in which they were scripted."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Queues a fault."""
        self._faults.append(fault)
        return fault

    def take(self, method: str, params: Params) -> Fault | None:
        """The first fault that fits, used up by one."""
        for fault in self._faults:
            if fault.fits(method, params):
                fault.left -= 1
                fault.used += 1
                return fault
        return None

    def release_all(self) -> None:
        """Ends every stall."""
        for fault in self._faults:
            fault.release()


@dataclass
class _Flood:
    retry_after: int
    left: int | None
    until: float
    method: str


class FloodControl:
    """Refusals with 429: scripted ones, and Telegram's published limits if switched on.

    core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this: about one message a
    second in a chat, 20 a minute in a group, 30 a second in all. The first allows short bursts:
    here `BURST` messages.
    """

    BURST = 3
    PER_GROUP_AND_MINUTE = 20
    PER_SECOND = 30

    def __init__(
        self, *, realistic: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.realistic = realistic
        self._clock = clock
        self.refused = 0
        """How many calls got 429."""
        self._floods: list[tuple[int, _Flood]] = []
        self._sent: dict[int, deque[float]] = {}
        self._all: deque[float] = deque()

    def script(self, chat_id: int, retry_after: int, count: int | None, method: str) -> None:
        """Refuses the next `count` calls; None: all calls until `retry_after` s are over."""
        until = math.inf if count is not None else self._clock() + retry_after
        self._floods.append((chat_id, _Flood(retry_after, count, until, method.lower())))

    def check(self, chat_id: int, method: str, *, counted: bool) -> None:
        """Raises `ApiError` 429; otherwise a `counted` call is remembered."""
        now = self._clock()
        wait = self._scripted(chat_id, method, now)
        if wait is None and self.realistic and counted and chat_id:
            wait = self._measured(chat_id, now)
        if wait is not None:
            self.refused += 1
            raise too_many(wait)

    def _scripted(self, chat_id: int, method: str, now: float) -> int | None:
        for flooded, flood in self._floods:
            if flooded != chat_id or flood.method not in ("*", method) or now >= flood.until:
                continue
            if flood.left is None:
                return max(1, math.ceil(flood.until - now))
            if flood.left > 0:
                flood.left -= 1
                return flood.retry_after
        return None

    def _measured(self, chat_id: int, now: float) -> int | None:
        sent = self._sent.setdefault(chat_id, deque())
        limits = [(sent, self.BURST, float(self.BURST)), (self._all, self.PER_SECOND, 1.0)]
        if chat_id < 0:
            limits.append((sent, self.PER_GROUP_AND_MINUTE, 60.0))
        for times, most, window in limits:
            recent = [at for at in times if at > now - window]
            if len(recent) >= most:
                return max(1, math.ceil(recent[-most] + window - now))
        for times in (sent, self._all):
            times.append(now)
            while times[0] < now - 60:
                times.popleft()
        return None
