"""The terminal: streaming as it comes, pipes, the end of the input, and Ctrl-C."""

from __future__ import annotations

import contextlib
import io
import os
import pty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from channels.base import Command, InboundMessage, OutboundReply, StopControl
from channels.console import ADDRESS, ConsoleChannel
from channels.errors import NotStored


class Terminal:
    """A console on the file descriptor `source`, with what it received. `receive` fails as often as
    `failures` says."""

    def __init__(self, source: int) -> None:
        self.out = io.StringIO()
        self.received: list[InboundMessage] = []
        self.console = ConsoleChannel(self.idle, source=source, target=self.out)
        self.idles = 0
        self.failures = 0
        self.failure: Exception = NotStored("the disk is full")

    async def idle(self) -> None:
        self.idles += 1

    async def receive(self, message: InboundMessage) -> None:
        self.received.append(message)
        if self.failures:
            self.failures -= 1
            raise self.failure

    async def run(self) -> None:
        await self.console.listen(self.receive)


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Callable[[bytes], Terminal]]:
    """A console on a file that holds what is typed."""
    with contextlib.ExitStack() as stack:

        def made(content: bytes) -> Terminal:
            path = tmp_path / "typed"
            path.write_bytes(content)
            source = os.open(path, os.O_RDONLY)
            stack.callback(os.close, source)
            return Terminal(source)

        yield made


@pytest.fixture
def terminal(typed: Callable[[bytes], Terminal]) -> Terminal:
    """A console on which nothing is typed."""
    return typed(b"")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that were not taken in are tried again at once."""
    monkeypatch.setattr("channels.console._STORE_AGAIN_S", (0,))
    monkeypatch.setattr("channels.console._FAULT_AGAIN_S", (0, 0))


async def test_a_piped_conversation_is_read_in_order_and_ends(typed) -> None:
    terminal = typed(b"hello\n\n/ask\twhat?\n /new\n")
    await terminal.run()
    assert [m.text for m in terminal.received] == ["hello", "/ask\twhat?", "/new"]
    assert [m.command and m.command.name for m in terminal.received] == [None, "ask", "new"]
    assert len({m.event for m in terminal.received}) == 3
    assert terminal.idles == 4, "after each line, and at the end"


async def test_an_empty_input_ends_at_once(terminal: Terminal) -> None:
    await terminal.run()
    assert terminal.received == []


async def test_a_line_that_could_not_be_stored_is_tried_again_before_the_next(
    typed, at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    terminal = typed(b"one\ntwo\n")
    terminal.failures = 3
    await terminal.run()
    assert [m.text for m in terminal.received] == ["one"] * 4 + ["two"]
    assert len({m.event for m in terminal.received}) == 2, "the same message, not another one"
    words = [record.getMessage() for record in caplog.records]
    assert len(words) == 3
    assert all("tried again: the disk is full" in line for line in words)


async def test_a_fault_of_ours_loses_one_line_at_most_and_says_so(
    typed, at_once: None, caplog: pytest.LogCaptureFixture
) -> None:
    terminal = typed(b"one\ntwo\n")
    terminal.failures = 3
    terminal.failure = ValueError("with one in it")
    await terminal.run()
    assert [m.text for m in terminal.received] == ["one"] * 3 + ["two"]
    (record,) = caplog.records
    assert record.getMessage().startswith("a line is lost: it cannot be taken in (ValueError)\n")
    assert "with one" not in caplog.text


async def test_listening_again_goes_on_where_it_was(typed) -> None:
    terminal = typed(b"one\ntwo\nthree\n")

    async def broken() -> None:
        terminal.console._idle = terminal.idle
        raise RuntimeError("once")

    terminal.console._idle = broken
    with pytest.raises(RuntimeError):
        await terminal.run()
    await terminal.run()
    assert [m.text for m in terminal.received] == ["one", "two", "three"]


async def test_text_is_printed_as_it_comes_and_once(terminal: Terminal) -> None:
    reply = terminal.console.open_reply(ADDRESS, reply_to=None)
    reply.show("Hello, ")
    assert terminal.out.getvalue() == "Hello, "
    reply.show("Ana.")
    await reply.finish(OutboundReply("Hello, Ana."))
    assert terminal.out.getvalue() == "Hello, Ana.\n"


async def test_a_line_that_waits_is_acknowledged_to_whoever_types(typed) -> None:
    """On a line of its own, in the middle of an answer. Nobody sits at a pipe."""
    piped = typed(b"")
    assert await piped.console.mark_waiting(ADDRESS, "1", True) == "taken"
    person, us = pty.openpty()
    terminal = Terminal(us)
    try:
        assert await terminal.console.mark_waiting(ADDRESS, "1", True) == "refused"
        assert await terminal.console.mark_waiting(ADDRESS, "1", False) == "taken"
        answer = terminal.console.open_reply(ADDRESS, reply_to=None, stop=StopControl("Stop", "r1"))
        answer.show("Once upon")
        notice = terminal.console.open_reply(ADDRESS, reply_to="1")
        await notice.finish(OutboundReply("I get to this later."))
        answer.show(" a time.")
        await answer.finish(OutboundReply("Once upon a time."))
        told = terminal.out.getvalue()
        assert told == "Once upon\nI get to this later.\n a time.\n> "
    finally:
        os.close(person)
        os.close(us)


async def test_what_was_not_shown_is_added_at_the_end(terminal: Terminal) -> None:
    reply = terminal.console.open_reply(ADDRESS, reply_to=None)
    reply.show("Hello, ")
    await reply.finish(OutboundReply("Hello,\n\nStopped."))
    assert terminal.out.getvalue().split() == ["Hello,", "Stopped."]


async def test_interrupt_cancels_only_while_something_runs(typed) -> None:
    terminal = typed(b"x\n")
    await terminal.run()
    assert not await terminal.console.interrupt()
    reply = terminal.console.open_reply(ADDRESS, reply_to=None, stop=StopControl("Stop", "r1"))
    assert await terminal.console.interrupt()
    assert terminal.received[-1].command == Command("cancel")
    await reply.discard()
    assert not await terminal.console.interrupt()


async def test_ctrl_c_stops_also_while_the_stop_cannot_be_stored(
    typed, caplog: pytest.LogCaptureFixture
) -> None:
    terminal = typed(b"x\n")
    await terminal.run()
    terminal.console.open_reply(ADDRESS, reply_to=None, stop=StopControl("Stop", "r1"))
    terminal.failures = 1
    assert await terminal.console.interrupt()
    assert "the disk is full" in caplog.text


async def say(target: io.TextIOWrapper, text: str, source: int) -> None:
    """One reply on `target`."""
    console = ConsoleChannel(Terminal(source).idle, source=source, target=target)
    reply = console.open_reply(ADDRESS, reply_to=None)
    reply.show(text)
    await reply.finish(OutboundReply(text))


@pytest.fixture
def nothing() -> Iterator[int]:
    with open(os.devnull, "rb") as source:
        yield source.fileno()


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", b"caf\\xe9 \\u4f60 \\ud83d\n"),
        ("latin-1", b"caf\xe9 \\u4f60 \\ud83d\n"),
        ("utf-8", "café 你 \\ud83d\n".encode()),
    ],
)
async def test_what_the_output_cannot_encode_is_escaped(
    encoding: str, shown: bytes, nothing: int
) -> None:
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding)
    await say(target, "café 你 \ud83d", nothing)
    assert raw.getvalue() == shown


async def test_a_reader_that_has_left_does_not_break_the_answer(
    nothing: int, caplog: pytest.LogCaptureFixture
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as target:
        await say(target, "Hello " * 10_000, nothing)
        target.buffer.raw.close()  # type: ignore[attr-defined]
    assert caplog.text == ""


async def test_an_output_that_takes_no_more_is_told(
    nothing: int, caplog: pytest.LogCaptureFixture
) -> None:
    with open("/dev/full", "w") as target:  # noqa: ASYNC230 - a device
        await say(target, "Hello", nothing)
        target.buffer.raw.close()  # type: ignore[attr-defined]
    assert "No space left on device" in caplog.text
