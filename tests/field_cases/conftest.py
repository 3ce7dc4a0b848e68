"""Fixtures of the field cases."""

from __future__ import annotations

import pytest
from aiolimiter import AsyncLimiter

from bridge.runs import delivery
from channels import supervise
from channels.slack import reply as slack_reply
from channels.slack.channel import SlackChannel
from channels.telegram import deliver, limiter
from channels.telegram import reply as telegram_reply

ASKED_S = 0.02


def _wide(group: bool) -> list[AsyncLimiter]:
    return [AsyncLimiter(1_000, 1)]


def _not_long(error: Exception) -> float:
    return ASKED_S


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the bot waits before it tries again, and how far apart previews are, is not what a case
    is about; a platform that asks to wait is obeyed in hundredths of its seconds."""
    monkeypatch.setattr(limiter, "_chat_buckets", _wide)
    monkeypatch.setattr(limiter, "wait_asked_for", _not_long)
    monkeypatch.setattr(deliver, "_AGAIN_S", (0.01,) * 5)
    for interval in ("_PRIVATE_INTERVAL_S", "_GROUP_INTERVAL_S"):
        monkeypatch.setattr(telegram_reply, interval, 0.01)
    monkeypatch.setattr(telegram_reply, "_STOP_AFTER_S", 0.05)
    monkeypatch.setattr(delivery, "WAITS_S", (0.01,))
    monkeypatch.setattr(supervise, "FIRST_WAIT_S", 0.01)
    timing = slack_reply.ReplyTiming(interval_s=0.01, stop_after_s=0.05, repeats_s=(0.01,) * 5)
    assert SlackChannel.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(SlackChannel.__init__.__kwdefaults__, "replying", timing)
