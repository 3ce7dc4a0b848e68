"""What goes wrong on purpose: failed calls, cut connections, hanging, flood control."""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tests.servers.telegram_params import Params
from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import ApiError

HTML_ERROR = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"


@dataclass(eq=False)
class Fault:
    """One scripted failure; see `TelegramServer.fail_next`."""

    method: str
    status: int | None = None
    description: str | None = None
    parameters: Json | None = None
    html: str | None = None
    drop: bool = False
    stall: bool = False
    acted: bool = False
    """The call takes effect before it fails."""
    left: int = 1
    used: int = 0
    chat_id: int | None = None
    text: str | None = None
    """Only calls whose text contains this."""
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


@dataclass
class Flood:
    """Flood control of a chat: the next `left` calls to it are refused."""

    retry_after: int
    left: int


class Faults:
    """Scripted failures in the order in which they were scripted."""

    def __init__(self) -> None:
        self._faults: deque[Fault] = deque()
        self._floods: dict[int, Flood] = {}

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

    def flood(self, chat_id: int, retry_after: int, count: int) -> None:
        """Refuses the next `count` calls for this chat."""
        self._floods[chat_id] = Flood(retry_after, count)

    def check_flood(self, chat_id: Any) -> None:
        """Raises `ApiError` 429 while flood control holds this chat."""
        flood = self._floods.get(chat_id)
        if flood is not None and flood.left > 0:
            flood.left -= 1
            raise too_many(flood.retry_after)

    def release_all(self) -> None:
        """Ends every stall."""
        for fault in self._faults:
            fault.release()


def too_many(retry_after: int) -> ApiError:
    """429 as Telegram words it."""
    return ApiError(
        429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after}
    )
