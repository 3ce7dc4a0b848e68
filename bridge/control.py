"""The control socket: what a command of `galata` asks of the process that runs.

`control.sock` in the data folder, for its owner alone (0600). A line of JSON asks and a line answers,
as often as the caller likes:

    {"verb": "status", "arguments": {}}
    {"ok": true, "result": ...}    or    {"ok": false, "error": "a sentence for the operator"}

A verb is one entry of the mapping that `Control` is given.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from agent.messages import JsonObject
from bridge.control_address import SOCKET, socket_address

log = logging.getLogger(__name__)

MOST_BYTES = 1_000_000  # of one line

Verb = Callable[[JsonObject], Awaitable[Any]]
"""Carries a request out: its arguments in, what JSON can hold out. Raises `ControlRefused`."""


class ControlRefused(Exception):
    """What was asked is not done; the text is a sentence for the operator."""


class Control:
    """The socket of one data folder. Whoever calls `run` holds the folder
    (`bridge.operation.data_folder`)."""

    def __init__(self, data: Path, verbs: Mapping[str, Verb]) -> None:
        self._data = data
        self._verbs = verbs

    async def run(self) -> None:
        """Answer until cancelled. A socket that cannot be made is logged, and the bot runs without."""
        try:
            listening = _bound(self._data)
        except OSError as error:
            log.error(
                "%s cannot be made (%s): commands cannot reach this process",
                self._data / SOCKET,
                error.strerror or error,
            )
            return
        try:
            async with asyncio.TaskGroup() as group:
                server = await asyncio.start_unix_server(
                    lambda reader, writer: _start(group, self._converse(reader, writer)),
                    sock=listening,
                    limit=MOST_BYTES,
                )
                try:
                    await asyncio.Event().wait()
                finally:
                    server.close()
        finally:
            listening.close()
            (self._data / SOCKET).unlink(missing_ok=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(await self._answer(line) + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):  # the caller left, or the line has no end
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> bytes:
        try:
            verb, arguments = _read(line)
            handler = self._verbs.get(verb)
            if handler is None:
                raise ControlRefused(
                    f"the running galata does not know {verb!r}: it is another version, restart it"
                )
            return json.dumps({"ok": True, "result": await handler(arguments)}).encode()
        except ControlRefused as error:
            return _refusal(str(error))
        except Exception:
            log.exception("a command from the control socket failed")
            return _refusal("the running galata failed at it: its log says more")


def _refusal(sentence: str) -> bytes:
    return json.dumps({"ok": False, "error": sentence}).encode()


def _start(group: asyncio.TaskGroup, talk: Any) -> None:
    group.create_task(talk, name="control")


def _read(line: bytes) -> tuple[str, JsonObject]:
    """The verb and its arguments. Raises `ControlRefused`."""
    try:
        request: Any = json.loads(line)
    except ValueError:
        raise ControlRefused("this is no JSON") from None
    match request:
        case {"verb": str(verb), "arguments": dict()}:
            return verb, cast("JsonObject", request["arguments"])
        case _:
            raise ControlRefused('a request is {"verb": "...", "arguments": {...}}')


def _bound(data: Path) -> socket.socket:
    """The socket, in place of one that a dead process has left. Raises `OSError`."""
    (data / SOCKET).unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(data) as address:
            made.bind(address)
        (data / SOCKET).chmod(0o600)  # before it listens: nobody can have connected
        made.listen()
    except BaseException:
        made.close()
        raise
    return made
