"""`read_transcript`: a model can read all of its own conversation, in answers of bounded size."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC
from pathlib import Path

import pytest

from agent.cancel import CancelToken
from agent.messages import (
    JsonObject,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.messages import Message as M
from agent.tool_args import check
from agent.tools import ToolContext
from memory.conversations import Conversations, SessionPlace
from memory.database import Database
from memory.tools import ReadTranscript
from memory.transcripts import Transcripts

PLACE = SessionPlace("telegram:1:7", "telegram", "1", "7", None)
OTHER = SessionPlace("telegram:1:8", "telegram", "1", "8", None)


class Reading:
    """One session and its tool."""

    def __init__(self, database: Database, folder: Path, session: int) -> None:
        self._conversations = Conversations(database)
        self.tool = ReadTranscript(Transcripts(database, folder), session)
        self._session = session
        self._stored = 0

    async def store(self, *messages: M) -> None:
        numbered = list(enumerate(messages, self._stored))
        await self._conversations.append(self._session, f"r{self._session}", numbered)
        self._stored += len(messages)

    async def read(self, **arguments: int | float) -> list[str]:
        """The answer's lines, the head first; the arguments pass the loop's own check."""
        document: JsonObject = dict(arguments)
        checked = check(
            ToolUseBlock("c", "read_transcript", document), self.tool.spec, truncated=False
        )
        assert checked.problem is None
        context = ToolContext("r", PLACE.key, UTC, CancelToken())
        output = await self.tool.run(document, context)
        (block,) = output.content
        assert isinstance(block, TextBlock)
        assert len(block.text) <= 20_000
        assert not output.is_error
        return block.text.split("\n")


Opener = Callable[..., Awaitable[Reading]]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opener]:
    database = await Database.open(tmp_path / "galata.db")

    async def reading(place: SessionPlace = PLACE) -> Reading:
        session = await Conversations(database).open(place)
        return Reading(database, tmp_path / "transcripts", session)

    yield reading
    await database.close()


def call(name: str, id_: str = "c") -> M:
    return M("assistant", (ToolUseBlock(id_, name, {}),))


def result(text: str, id_: str = "c") -> M:
    return M("user", (ToolResultBlock(id_, (TextBlock(text),)),))


async def test_an_empty_conversation_is_called_empty(opened: Opener) -> None:
    assert await (await opened()).read() == ["The transcript is empty."]


async def test_the_head_says_what_is_shown_and_how_to_go_on(opened: Opener) -> None:
    reading = await opened()
    await reading.store(*[user_text(f"message {n}") for n in range(60)])
    head, *lines = await reading.read()
    assert head == "Lines 0 to 99 of 120 (counted from 0). Go on with offset 100."
    assert len(lines) == 100
    head, *lines = await reading.read(offset=100)
    assert head == "Lines 100 to 119 of 120 (counted from 0). This is the end."
    assert lines[-1] == "  message 59"


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        ({"offset": 5, "limit": 3}, 5, 7),
        ({"offset": 5.0, "limit": 3.0}, 5, 7),
        ({"limit": 1}, 0, 0),
        ({"limit": 100_000}, 0, 399),
        ({"offset": -1}, 999, 999),
        ({"offset": -20, "limit": 5}, 980, 984),
        ({"offset": -5_000, "limit": 2}, 0, 1),
        ({"offset": 990}, 990, 999),
    ],
)
async def test_offset_and_limit_count_lines(
    opened: Opener, arguments: dict[str, int], first: int, last: int
) -> None:
    reading = await opened()
    await reading.store(*[user_text(str(2 * n + 1)) for n in range(500)])
    head, *lines = await reading.read(**arguments)
    assert head.startswith(f"Lines {first} to {last} of 1000 ")
    assert len(lines) == last - first + 1
    assert lines[0] == f"  {first}" if first % 2 else lines[0].startswith(f"[{first // 2 + 1}]")


@pytest.mark.parametrize("offset", [2, 3, 10**30])
async def test_behind_the_end_there_is_nothing_but_the_number_of_lines(
    opened: Opener, offset: int
) -> None:
    reading = await opened()
    await reading.store(user_text("a"))
    assert await reading.read(offset=offset) == ["There are 2 lines; the last one is line 1."]


@pytest.mark.parametrize(
    "arguments", [{"limit": 0}, {"limit": -1}, {"offset": "3"}, {"offset": 0.5}, {"session": 2}]
)
async def test_other_arguments_are_refused(opened: Opener, arguments: JsonObject) -> None:
    tool = (await opened()).tool
    checked = check(ToolUseBlock("c", "read_transcript", arguments), tool.spec, truncated=False)
    assert checked.problem is not None


async def test_any_part_of_a_result_of_two_megabytes_can_be_read(opened: Opener) -> None:
    """Without a single line break in it; followed as the answers say."""
    long = "".join(f"<{n}>" for n in range(270_000))
    assert len(long) > 2_000_000
    reading = await opened()
    await reading.store(user_text("q"), call("fetch"), result(long), assistant_text("done"))
    offset, lines = 0, list[str]()
    while True:
        head, *more = await reading.read(offset=offset, limit=400)
        lines += more
        if (on := re.search(r"Go on with offset (\d+)", head)) is None:
            break
        offset = int(on[1])
    start, end = lines.index("  result of c:") + 1, lines.index("  done") - 1
    text = lines[start][4:] + "".join(line[6:] for line in lines[start + 1 : end])
    assert text == long


async def test_reading_to_the_end_comes_to_an_end(opened: Opener) -> None:
    """Each answer is stored too, so the transcript grows while it is read."""
    reading = await opened()
    await reading.store(*[user_text(f"message {n}") for n in range(500)])
    offset = steps = 0
    while steps < 20:
        head, *lines = await reading.read(offset=offset)
        await reading.store(call("read_transcript"), result("\n".join([head, *lines])))
        steps += 1
        if (on := re.search(r"Go on with offset (\d+)", head)) is None:
            return
        offset = int(on[1])
    raise AssertionError(head)


async def test_no_other_session_is_read(opened: Opener) -> None:
    mine, others = await opened(PLACE), await opened(OTHER)
    await mine.store(user_text("mine"))
    await others.store(user_text("theirs"))
    assert (await mine.read())[2:] == ["  mine"]
    assert (await others.read())[2:] == ["  theirs"]


def test_it_changes_nothing_and_may_run_beside_others() -> None:
    assert ReadTranscript.spec.parallel
    assert not ReadTranscript.spec.side_effects
