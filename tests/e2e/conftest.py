"""For whole bots: Telegram's pace for a chat is proved with its limiter, and need not be waited for."""

from __future__ import annotations

import pytest
from aiolimiter import AsyncLimiter

from channels.telegram import limiter


def _wide(group: bool) -> list[AsyncLimiter]:
    return [AsyncLimiter(1_000, 1)]


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "_chat_buckets", _wide)
