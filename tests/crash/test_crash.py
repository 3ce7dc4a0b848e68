"""Nothing lost, nothing twice: 25 kills with a fixed seed, and the audit itself.

`make crash` does 500 with a new one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.audit import Findings
from tests.crash.nursery import Nursery
from tests.crash.plan import POINTS, STOP_POINTS, lives
from tests.crash.round import Round

SEED = "galata"
NAMED: tuple[str | None, ...] = (
    *("after Inbox.put_question", "before acknowledging to Slack", "after getUpdates", None),
    *("after Runs.begin", "before Runs.previewed", "in Conversations.append", None),
    *("before the tool", "in the tool", "after Conversations.append", None),
    *("before Runs.settle", "after Runs.settle", "after sendMessage", None),
    *("after chat.postMessage", "after Outbox.mark", "before Outbox.close", None),
    *("after Inbox.put_stop", "before setMessageReaction", "before the stop", "after closing"),
    None,
)


@pytest.fixture
def quiet() -> Iterator[None]:
    """aiohttp's server logs connections that are cut in mid-answer."""
    logger = logging.getLogger("aiohttp.server")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


def test_the_kills_of_the_suite_are_at_points_that_there_are() -> None:
    assert {point for point in NAMED if point} <= {*POINTS, *STOP_POINTS}


@pytest.mark.timeout(180)
async def test_twenty_five_kills_lose_nothing_and_do_nothing_twice(
    tmp_path: Path, quiet: None
) -> None:
    async with Nursery() as nursery:
        drawn = lives(SEED, NAMED, pace_s=0.3)
        found = await Round(nursery, tmp_path, private=4).run(drawn)
    assert found.deaths.total() + found.ended > len(NAMED)  # and the one that warms up
    assert found.findings.wrong == [], f"SEED={SEED}\n{found.findings.told()}"


def test_findings_come_with_the_transcript_of_their_place() -> None:
    findings = Findings()
    findings.add("something is wrong")
    assert findings.told() == "something is wrong"
