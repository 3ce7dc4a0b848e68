"""When a failed model call is made again, and after how many seconds.

Transient failures: 2, 4, 6 s with jitter. Rate limits: what the provider asks for, else 30, 45, 60 s.
At most three times; nothing else is worth repeating as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agent.errors import Refusal, RefusalKind

MOST_RETRIES = 3
WAITS_S: Final = {
    RefusalKind.TRANSIENT: (2.0, 4.0, 6.0),
    RefusalKind.RATE_LIMIT: (30.0, 45.0, 60.0),
}
JITTER = 0.25  # up to this part more, so that many chats do not come back in step
LONGEST_WAIT_S = 120.0  # a provider that asks for more is not waited for within a run


def wait_s(refusal: Refusal, retries: int, random: Callable[[], float]) -> float | None:
    """Seconds until the next try after `retries` of them, or None when there is none.

    `random` gives numbers from 0 up to 1.
    """
    waits = WAITS_S.get(refusal.kind)
    if waits is None or retries >= MOST_RETRIES:
        return None
    asked = refusal.retry_after_s
    if asked is not None and asked > LONGEST_WAIT_S:
        return None
    wait = waits[retries] if asked is None else asked
    return wait * (1 + JITTER * random())
