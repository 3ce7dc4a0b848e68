"""Fixtures of several contracts."""

from __future__ import annotations

import pytest
from aiolimiter import AsyncLimiter

from channels.telegram import deliver, limiter
from channels.telegram import reply as reply_module


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telegram's pace is not what a contract is about."""
    monkeypatch.setattr(deliver, "_AGAIN_S", (0.01,))
    monkeypatch.setattr(limiter, "_chat_buckets", lambda group: [AsyncLimiter(1_000, 1)])
    for interval in ("_PRIVATE_INTERVAL_S", "_GROUP_INTERVAL_S"):
        monkeypatch.setattr(reply_module, interval, 0.02)
