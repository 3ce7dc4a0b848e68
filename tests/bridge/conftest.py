"""For tests of the bridge: what is tried again is not waited for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent.errors import RefusalKind
from bridge.runs import delivery


@pytest.fixture(autouse=True)
def no_waits_between_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = (0.0, 0.0, 0.0)
    kinds = (RefusalKind.TRANSIENT, RefusalKind.RATE_LIMIT)
    monkeypatch.setattr("agent.retry.WAITS_S", dict.fromkeys(kinds, at_once))


@pytest.fixture(autouse=True)
def short_waits_of_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "WAITS_S", (0.02,) * len(delivery.WAITS_S))


@pytest.fixture(autouse=True)
def commands_may_be_repeated(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most tests ask the same again to see what has changed in between; `test_repeats` does not."""
    if request.node.path.name != "test_repeats.py":
        monkeypatch.setattr("bridge.intake.repeats.WITHIN", timedelta(0))
