"""The terminal: streaming as it comes, pipes, the end of the input, and Ctrl-C."""

from __future__ import annotations

import asyncio
import io
import os

from channels.base import InboundMessage, OutboundReply, StopControl
from channels.console import ADDRESS, ConsoleChannel


class Terminal:
    """A console on a pipe, with what it received."""

    def __init__(self, typed: str) -> None:
        self.out = io.StringIO()
        self.received: list[InboundMessage] = []
        self.console = ConsoleChannel(self.idle, source=io.StringIO(typed), target=self.out)
        self.idles = 0

    async def idle(self) -> None:
        self.idles += 1

    async def receive(self, message: InboundMessage) -> None:
        self.received.append(message)

    async def run(self) -> None:
        await self.console.listen(self.receive)


async def test_a_piped_conversation_is_read_in_order_and_ends() -> None:
    terminal = Terminal("hello\n\n/ask what?\n /new\n")
    await terminal.run()
    assert [m.text for m in terminal.received] == ["hello", "/ask what?", "/new"]
    assert [m.command and m.command.name for m in terminal.received] == [None, "ask", "new"]
    assert len({m.event for m in terminal.received}) == 3
    assert terminal.idles == 4, "after each line, and at the end"


async def test_an_empty_input_ends_at_once() -> None:
    terminal = Terminal("")
    await terminal.run()
    assert terminal.received == []


async def test_dev_null_ends_at_once() -> None:
    with open(os.devnull) as source:  # noqa: ASYNC230 - a device
        console = ConsoleChannel(Terminal("").idle, source=source, target=io.StringIO())
        await console.listen(Terminal("").receive)


async def test_text_is_printed_as_it_comes_and_once() -> None:
    terminal = Terminal("")
    reply = terminal.console.open_reply(ADDRESS, reply_to=None)
    reply.show("Hello, ")
    assert terminal.out.getvalue() == "Hello, "
    reply.show("Ana.")
    await reply.finish(OutboundReply("Hello, Ana."))
    assert terminal.out.getvalue() == "Hello, Ana.\n"


async def test_what_was_not_shown_is_added_at_the_end() -> None:
    terminal = Terminal("")
    reply = terminal.console.open_reply(ADDRESS, reply_to=None)
    reply.show("Hello, ")
    await reply.finish(OutboundReply("Hello,\n\nStopped."))
    assert terminal.out.getvalue().split() == ["Hello,", "Stopped."]


async def test_interrupt_presses_stop_for_the_running_answer_only() -> None:
    terminal = Terminal("x\n")
    await terminal.run()
    assert not await terminal.console.interrupt()
    reply = terminal.console.open_reply(ADDRESS, reply_to=None, stop=StopControl("Stop", "r1"))
    assert await terminal.console.interrupt()
    press = terminal.received[-1].press
    assert press is not None
    assert (press.action, press.value) == ("stop", "r1")
    await reply.discard()
    assert not await terminal.console.interrupt()


async def test_a_reader_that_has_left_does_not_break_the_answer() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as target:
        console = ConsoleChannel(Terminal("").idle, source=io.StringIO(""), target=target)
        reply = console.open_reply(ADDRESS, reply_to=None)
        reply.show("Hello " * 10_000)
        await reply.finish(OutboundReply("Hello"))
        await asyncio.sleep(0)
        target.buffer.raw.close()  # type: ignore[attr-defined]
