"""The terminal: plain streaming, Ctrl-C cancels the answer, and it works on pipes.

At the input's end the channel waits for running answers and then `listen` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import logging
import os
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import TextIO

from channels.base import (
    Address,
    Attachment,
    Capabilities,
    Command,
    Delivered,
    InboundMessage,
    Mark,
    OutboundReply,
    Receive,
    ReplyJournal,
    ReplyPart,
    ReplySink,
    Resumed,
    Sender,
    StopControl,
    Wanted,
)
from channels.console_input import Lines
from channels.errors import FileRefused, NotStored
from channels.inputs import Form
from channels.membership import Alone
from channels.parts import Finishing, Halt, Parts, Passage
from channels.text import printable

log = logging.getLogger(__name__)

ADDRESS = Address("console", "local", "local")
PERSON = "local"
STANDARD_INPUT = 0  # its file descriptor
_STORE_AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0)  # waits while nothing can be stored, then the last
_FAULT_AGAIN_S = (0.2, 1.0)  # waits before the other tries of a line that our own fault kept out


class ConsoleChannel:
    """A conversation with whoever sits at the terminal.

    `idle` is awaited at the end of the input, until nothing runs any more. `source` is a file
    descriptor; what `target` cannot encode is written as a backslash escape.
    """

    name = "console"
    capabilities = Capabilities(
        reactions=False, buttons=False, commands_in_threads=True, comes_again=False
    )

    def __init__(
        self,
        idle: Callable[[], Awaitable[None]],
        *,
        source: int = STANDARD_INPUT,
        target: TextIO | None = None,
    ) -> None:
        self._idle = idle
        self._lines = Lines(source)
        self._typed = os.isatty(source)  # by a person, who is prompted
        self._target = target or sys.stdout
        if isinstance(self._target, io.TextIOWrapper):
            self._target.reconfigure(errors="backslashreplace")  # pyright: ignore[reportUnknownMemberType]
        self._sender = Sender(PERSON, "You")
        self._start = datetime.now(UTC)
        self._numbers = itertools.count(1)
        self._receive: Receive | None = None
        self._running: list[StopControl] = []
        self._reading = False
        self._within_line = False  # where more of an answer is to come

    @property
    def receiving(self) -> bool:
        """Until the input ends."""
        return self._reading

    @property
    def typed(self) -> bool:
        """Whether a person types, and not a pipe or file."""
        return self._typed

    async def listen(self, receive: Receive) -> None:
        """Read lines until the input ends, then wait for running answers."""
        self._receive = receive
        self._reading = True
        try:
            await self._read(receive)
        finally:
            self._reading = False
        await self._idle()
        self._write("\n" if self._typed else "")

    async def _read(self, receive: Receive) -> None:
        self._prompt()
        while (line := await self._lines.next()) is not None:
            self._within_line = False  # whoever has typed it has ended the line
            if line.strip():
                await self._store(self._message(line), receive)
                if not self._typed:  # a script's next line follows the answer, as a person's does
                    await self._idle()
            else:
                self._prompt()

    async def interrupt(self) -> bool:
        """Ctrl-C: stop the running answer and what waits behind it; false when nothing runs."""
        if not self._running or self._receive is None:
            return False
        try:
            await self._receive(self._message("/cancel"))
        except NotStored as error:  # it has acted before
            log.error("Ctrl-C is not stored: %s", error)
        return True

    def overhear(self, wanted: Wanted) -> None:
        """Nothing is said here that is not for the bot."""

    def open_reply(
        self,
        to: Address,
        *,
        reply_to: str | None,
        stop: StopControl | None = None,
        journal: ReplyJournal | None = None,
        resumed: Resumed | None = None,
        silent: bool = False,
    ) -> ReplySink:
        """A reply that is printed as it comes."""
        if stop is not None:
            self._running.append(stop)
        return _ConsoleReply(self, stop, journal)

    async def mark_waiting(self, to: Address, message_id: str, waiting: bool) -> Mark:
        """Whoever types is told by a line; what comes through a pipe waits for nobody."""
        return "refused" if self._typed and waiting else "taken"

    async def answer_press(
        self, message: InboundMessage, text: str, *, spent: bool = False
    ) -> None:
        """Ctrl-C needs no notice: the answer itself ends with it."""

    async def replace(self, message: InboundMessage, reply: OutboundReply) -> bool:
        """A terminal has no buttons."""
        return False

    async def open_form(self, message: InboundMessage, form: Form) -> bool:
        """Nor forms."""
        return False

    @property
    def membership(self) -> Alone:
        """Nobody else is there."""
        return Alone()

    async def is_admin(
        self, to: Address, person: str, *, managing: bool = False, named: Collection[str] = ()
    ) -> bool:
        """Whoever sits at the terminal."""
        return True

    async def private_with(self, to: Address, person: str) -> Address:
        """The terminal."""
        return to

    async def fetch(self, attachment: Attachment) -> bytes:
        """The terminal has no attachments."""
        raise FileRefused("gone", "the terminal has no attachments")

    async def aclose(self) -> None:
        """The input's thread is a daemon and ends with the process."""

    def write(self, text: str) -> None:
        """Print without a line break, at once."""
        self._write(text)
        self._within_line = not text.endswith("\n") if text else self._within_line

    def end_line(self) -> None:
        """What comes next begins a line."""
        if self._within_line:
            self.write("\n")

    def ended(self, stop: StopControl | None) -> None:
        """A reply is complete."""
        if stop in self._running:
            self._running.remove(stop)
        self._prompt()

    def _prompt(self) -> None:
        if self._typed and not self._running:
            self._write("> ")

    def _write(self, text: str) -> None:
        try:
            self._target.write(printable(text))
            self._target.flush()
        except (OSError, ValueError) as error:
            if not isinstance(error, BrokenPipeError):  # else whoever read the output has left
                log.error("answers are stored, but cannot be shown any more: %s", error)
            if self._target is sys.stdout:
                _end_output()
            self._target = _Nowhere()

    async def _store(self, message: InboundMessage, receive: Receive) -> None:
        """Hand over until it is stored; the lines after it wait, so that their order is kept."""
        waits, faults = iter(_STORE_AGAIN_S), deque(_FAULT_AGAIN_S)
        while True:
            try:
                return await receive(message)
            except NotStored as error:
                log.error("a line is not stored yet, and tried again: %s", error)
                wait_s = next(waits, _STORE_AGAIN_S[-1])
            except Exception as error:  # noqa: BLE001 - a fault of ours must not block the lines
                if not faults:
                    return _log_fault(error)
                wait_s = faults.popleft()
            await asyncio.sleep(wait_s)

    def _message(self, line: str) -> InboundMessage:
        text = line.strip()
        number = f"{self._start:%Y%m%dT%H%M%S%f}-{next(self._numbers)}"
        command = None
        if text.startswith("/") and text[1:2].isalpha():
            name, *args = text[1:].split(maxsplit=1)
            command = Command(name.lower(), "".join(args))
        return InboundMessage(
            address=ADDRESS,
            event=f"m:{number}",
            message_id=number,
            sender=self._sender,
            sent_at=datetime.now(UTC),
            text=text,
            command=command,
        )


def _end_output() -> None:
    """Python writes out what is left at its end, and complains where nobody reads it."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Nowhere:
    """Output after its reader has left."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


class _ConsoleReply(Finishing):
    def __init__(
        self, console: ConsoleChannel, stop: StopControl | None, journal: ReplyJournal | None
    ) -> None:
        self._console = console
        self._stop = stop
        self._shown = ""
        self._halt = Halt()
        self._parts = Parts(self._halt, journal)

    def show(self, more: str) -> None:
        """Print it."""
        if self._halt.is_set:
            return
        if not self._shown:
            more = more.lstrip()
        self._shown += more
        self._console.write(more)

    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """The text, and the documents."""
        text = [reply.markdown] if reply.markdown.strip() else []
        return (*text, *(f"--- {one.name}\n{one.text}" for one in reply.documents))

    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """Print what was not shown yet, and end the line: at once, so that only a halt before it
        can leave anything out."""

        async def one(number: int, part: ReplyPart, passage: Passage) -> None:
            await passage.leaving()
            if not self._shown:
                self._console.end_line()
            text = f"{note}\n\n{part.body}" if part.state == "again" and note else part.body
            self._console.write((self._not_shown(text) if number == 0 else text) + "\n")

        await self._parts.send(parts, one)
        if self._halt.is_set:
            await self.discard()
        else:
            self._console.write("" if parts else "\n")
            self._console.ended(self._stop)
        return self._parts.outcome()

    def _not_shown(self, text: str) -> str:
        shown = self._shown.strip()
        if text.startswith(shown):
            return text[len(self._shown.rstrip()) :]
        return f"\n{text}"

    def halt(self) -> None:
        """Print nothing more."""
        self._halt.set()

    async def discard(self) -> None:
        """End the line."""
        self._console.write("\n" if self._shown else "")
        self._console.ended(self._stop)


def _log_fault(error: Exception) -> None:
    """Where it happened and what kind of error: its text may quote the line."""
    where = "".join(traceback.format_tb(error.__traceback__))
    log.error("a line is lost: it cannot be taken in (%s)\n%s", type(error).__name__, where)
