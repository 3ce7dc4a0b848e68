"""How fast requests may leave.

Slack tells each method's limit by refusing (`ratelimited` and `Retry-After`, with HTTP 429 or in an
answer of 200) per method and channel. An answer waits and goes on; a preview is dropped, and leaves
a fifth of what `chat.update` may do to answers: docs.slack.dev/apis/web-api/rate-limits, tier 3, 50
a minute in a workspace.
"""

from __future__ import annotations

import asyncio

from aiolimiter import AsyncLimiter

_PREVIEWS_PER_MINUTE = 40
_SWEEP_FROM = 256  # closed places; below that nothing is thrown away


class Dropped(Exception):
    """A preview that was not sent, so that answers are not held up."""


class Pace:
    """What Slack has asked to wait for, in one event loop."""

    def __init__(self) -> None:
        self._previews = AsyncLimiter(_PREVIEWS_PER_MINUTE, 60)
        self._closed: dict[tuple[str, str], float] = {}

    def close(self, method: str, channel: str, seconds: float) -> None:
        """Nothing more by this method to this channel for so long."""
        now = _now()
        if len(self._closed) >= _SWEEP_FROM:
            self._closed = {key: until for key, until in self._closed.items() if until > now}
        self._closed[method, channel] = max(self._closed.get((method, channel), 0.0), now + seconds)

    def wait_s(self, method: str, channel: str) -> float:
        """The seconds until the next request by this method to this channel."""
        return max(0.0, self._closed.get((method, channel), 0.0) - _now())

    async def take_preview(self, method: str, channel: str) -> None:
        """Take room for a preview, at once. Raises `Dropped` when it would have to wait."""
        if self.wait_s(method, channel) > 0:
            raise Dropped(method)
        if method == "chat.update":  # new messages are limited per channel only
            if not self._previews.has_capacity():
                raise Dropped(method)
            await self._previews.acquire()  # returns at once: there is room


def _now() -> float:
    return asyncio.get_running_loop().time()
