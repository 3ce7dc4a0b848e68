"""What goes wrong on purpose: error codes, rate limits, HTML pages, cut and hanging connections."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from tests.servers.slack_render import Json

HTML_ERROR = "<!DOCTYPE html><html><head><title>Server Error | Slack</title></head></html>"


@dataclass(eq=False)
class Fault:
    """One scripted failure; see `SlackServer.fail_next`."""

    method: str
    error: str | None = None
    status: int = 200
    html: bool = False
    drop: bool = False
    stall: bool = False
    acted: bool = False
    retry_after: float | None = None
    left: int = 1
    used: int = 0
    text: str | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Lets stalled calls go on: they are answered as if nothing had happened."""
        self.released.set()

    def fits(self, method: str, params: Json) -> bool:
        """Whether this call is meant."""
        if self.left <= 0 or self.method not in ("*", method):
            return False
        return self.text is None or self.text in str(params)


class Faults:
    """Scripted failures in the order in which they were scripted."""

    def __init__(self) -> None:
        self._faults: deque[Fault] = deque()

    def add(self, fault: Fault) -> Fault:
        """Queues a fault."""
        self._faults.append(fault)
        return fault

    def take(self, method: str, params: Json) -> Fault | None:
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
