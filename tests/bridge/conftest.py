"""For tests of the bridge: retries without waiting."""

from __future__ import annotations

import pytest

from agent.errors import RefusalKind


@pytest.fixture(autouse=True)
def no_waits_between_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = (0.0, 0.0, 0.0)
    kinds = (RefusalKind.TRANSIENT, RefusalKind.RATE_LIMIT)
    monkeypatch.setattr("agent.retry.WAITS_S", dict.fromkeys(kinds, at_once))
