"""Nothing lost, nothing twice: 25 kills with a fixed seed, and the audit itself.

`make crash` does 500 with a new one.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.audit import NOTE, Asked, Findings, look_at_place, look_at_set_aside
from tests.crash.nursery import ROOT, Nursery
from tests.crash.plan import POINTS, STOP_POINTS, lives
from tests.crash.round import Round
from tests.crash.world import BARE, Shown

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


async def test_a_memory_survives_kills_in_the_midst_of_its_day() -> None:
    """At every sixteenth point; `make crash` kills at each."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.memory_day", "--every", "16"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()


@dataclass
class Chat:
    """A place as it stands."""

    messages: list[Shown]
    name: str = "a chat"
    size: int = 1
    mark: bool = False

    def ask(self, person: int, text: str) -> None: ...

    def say(self, person: int, text: str) -> None: ...

    def press_stop(self) -> bool:
        return False

    def again(self, message: object) -> None: ...

    def shown(self) -> list[Shown]:
        return self.messages

    def marked(self, message: object) -> bool:
        return self.mark

    def transcript(self) -> Iterator[str]:
        yield from (shown.text for shown in self.messages)


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        (["a1c1n1 a1c1n2", "a2c2n1"], []),
        (["a1c1n1 a1c1n2", "a1c1n2"], ["the answer to q1 stands in 0 and 1"]),
        (["a1c1n1", "a1c2n1"], ["the answer to q1 stands in 0 and 1"]),
        (["a1c1n1", f"{NOTE}: …)", "a1c1n1"], []),
        (["a1c1n1", f"{NOTE}: …)\n\na1c1n1"], []),
        (["a1c1n1", f"{NOTE}: …)", "a1c1n1", "a1c1n1"], ["the answer to q1 stands in 0 and 3"]),
        (["a1c1n1 a1c1n1"], ["message 0 shows words twice"]),
        (["a1c9n1 (I ask it again.) a1c2n1"], []),
    ],
)
def test_what_stands_twice_is_found(messages: list[str], found: list[str]) -> None:
    shown = [Shown(str(number), text, False) for number, text in enumerate(messages)]
    findings = Findings()
    look_at_place(Chat(shown), [], {9}, findings)
    assert [what for what, _ in findings.wrong] == found


@pytest.mark.parametrize(
    ("size", "outcomes", "told", "found"),
    [
        (3, ["set_aside", "answered"], ["that I have set aside: 1."], []),
        (3, ["answered", "set_aside"], ["that I have set aside: 1."], ["q2short was set aside"]),
        (1, ["set_aside", "answered"], ["that I have set aside: 1."], ["q1short was set aside"]),
        (3, ["set_aside", "answered"], [], ["1 were set aside, and 0 told"]),
        (3, ["answered"], ["that I have set aside: 2."], ["0 were set aside, and 2 told"]),
    ],
)
def test_what_is_set_aside_is_never_the_newest_and_counted_once(
    size: int, outcomes: list[str], told: list[str], found: list[str]
) -> None:
    chat = Chat([Shown(str(number), text, False) for number, text in enumerate(told)], size=size)
    asked = [
        (Asked(number, "short", chat, 0, None), [outcome])
        for number, outcome in enumerate(outcomes, start=1)
    ]
    findings = Findings()
    look_at_set_aside(chat, asked, findings)
    assert [what for what, _ in findings.wrong] == found


def test_dead_buttons_and_marks_are_found_and_told_with_the_transcript() -> None:
    chat = Chat([Shown("1", BARE, True), Shown("2", BARE, False)], mark=True)
    findings = Findings()
    look_at_place(chat, [Asked(7, "short", chat, 0, None)], set(), findings)
    assert [what for what, _ in findings.wrong] == [
        "message 1 has a dead Stop button",
        "q7short still has the mark of waiting",
    ]
    assert findings.counted["bare previews left"] == 2
    assert findings.told().splitlines()[-3:] == ["a chat", BARE, BARE]
