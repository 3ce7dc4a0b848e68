"""What is typed or piped arrives whole, in order, whatever its bytes; and one thread reads it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.console_input import MOST_AHEAD, Lines


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe: where is read, and where a test writes (and closes)."""
    read, write = os.pipe()
    yield read, write
    os.close(read)


async def all_of(lines: Lines) -> list[str]:
    found: list[str] = []
    while (line := await lines.next()) is not None:
        found.append(line)
    return found


async def lines_of(path: Path, content: bytes) -> list[str]:
    """The lines of a file."""
    path.write_bytes(content)  # noqa: ASYNC240 - a small file
    with open(path, "rb") as source:  # noqa: ASYNC230
        return await all_of(Lines(source.fileno()))


def readers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "console input"}


@given(content=st.binary(max_size=200))
async def test_no_bytes_end_the_input_or_give_what_cannot_be_stored(
    tmp_path_factory, content: bytes
) -> None:
    found = await lines_of(tmp_path_factory.getbasetemp() / "typed", content)
    assert len(found) == len(content.removesuffix(b"\n").split(b"\n")) - (content == b"")
    "".join(found).encode()


@given(texts=st.lists(st.text(st.characters(exclude_characters="\n\r\ufeff", codec="utf-8"))))
async def test_text_arrives_as_it_was_typed(tmp_path_factory, texts: list[str]) -> None:
    content = "".join(f"{text}\n" for text in texts).encode()
    assert await lines_of(tmp_path_factory.getbasetemp() / "typed", content) == texts


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"caf\xe9 au lait\nHello\n", ["caf\ufffd au lait", "Hello"]),
        ("\ufeffcafé\r\n你好".encode(), ["café", "你好"]),
        (b"\n\nx", ["", "", "x"]),
        (b"", []),
    ],
)
async def test_lines_are_utf8_whatever_the_locale(
    pipe: tuple[int, int], content: bytes, expected: list[str]
) -> None:
    read, write = pipe
    os.write(write, content)
    os.close(write)
    lines = Lines(read)
    assert await all_of(lines) == expected
    assert await lines.next() is None, "the end stays the end"


async def test_one_thread_reads_however_often_somebody_asks(pipe: tuple[int, int]) -> None:
    read, write = pipe
    lines = Lines(read)
    before = readers()
    for _ in range(3):
        asking = asyncio.create_task(lines.next())
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert len(readers() - before) == 1
    os.write(write, b"one\ntwo\n")
    os.close(write)
    assert await all_of(lines) == ["one", "two"]


async def test_more_lines_than_are_read_ahead_arrive(pipe: tuple[int, int]) -> None:
    read, write = pipe
    expected = [str(number) for number in range(3 * MOST_AHEAD)]
    os.write(write, "\n".join(expected).encode())
    os.close(write)
    assert await all_of(Lines(read)) == expected


async def test_an_input_that_does_not_block_is_waited_for(pipe: tuple[int, int]) -> None:
    read, write = pipe
    os.set_blocking(read, False)
    lines = Lines(read)
    asking = asyncio.create_task(lines.next())
    while not os.get_blocking(read):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    os.write(write, b"late\n")
    os.close(write)
    assert await asking == "late"
    assert await lines.next() is None


async def test_dev_null_ends_at_once() -> None:
    with open(os.devnull, "rb") as source:  # noqa: ASYNC230 - a device
        assert await all_of(Lines(source.fileno())) == []


async def test_a_closed_descriptor_is_an_empty_input() -> None:
    closed = os.dup(0)
    os.close(closed)
    assert await all_of(Lines(closed)) == []
