"""Work beside a reply: its failures are logged, and its channel ends it."""

from __future__ import annotations

import asyncio

import pytest

from channels.errands import Errands


async def test_a_failure_is_logged_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("odd")

    errand = Errands().start(fail(), "tidying up")
    await asyncio.wait([errand])
    await asyncio.sleep(0)
    assert [record.getMessage() for record in caplog.records] == ["tidying up failed"]


async def test_closing_ends_what_runs_and_what_has_not_begun() -> None:
    errands, running = Errands(), asyncio.Event()

    async def wait() -> None:
        running.set()
        await asyncio.Event().wait()

    first = errands.start(wait(), "first")
    await running.wait()
    second = errands.start(wait(), "second")
    await errands.aclose()
    await errands.aclose()
    assert (first.cancelled(), second.cancelled()) == (True, True)
