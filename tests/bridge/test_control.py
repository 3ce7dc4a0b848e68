"""The control socket: who can ask, what comes back, and that nothing ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.messages import JsonObject
from bridge.cli.options import CommandFailed
from bridge.cli.running import NotRunning, ask_running
from bridge.control import Control, ControlRefused, Verb
from bridge.control_address import SOCKET, socket_address


async def echo(arguments: JsonObject) -> Any:
    return arguments


async def refuse(arguments: JsonObject) -> Any:
    raise ControlRefused("not today")


async def fail(arguments: JsonObject) -> Any:
    raise ZeroDivisionError("a mistake")


async def unspeakable(arguments: JsonObject) -> Any:
    return object()


VERBS: dict[str, Verb] = {
    "echo": echo,
    "refuse": refuse,
    "fail": fail,
    "unspeakable": unspeakable,
}


@asynccontextmanager
async def controlled(data: Path) -> AsyncGenerator[None]:
    task = asyncio.create_task(Control(data, VERBS).run())
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(answers, data):
            assert not task.done()
            await asyncio.sleep(0.01)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def answers(data: Path) -> bool:
    try:
        return bool(ask_running(data, "echo") == {})
    except NotRunning:
        return False


async def ask(data: Path, verb: str, **arguments: Any) -> Any:
    return await asyncio.to_thread(ask_running, data, verb, **arguments)


async def test_a_verb_gets_its_arguments_and_its_result_comes_back(tmp_path: Path) -> None:
    async with controlled(tmp_path):
        assert await ask(tmp_path, "echo", chat="群", count=2) == {"chat": "群", "count": 2}
        assert (tmp_path / SOCKET).stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / SOCKET).exists()


async def test_a_refusal_a_mistake_and_an_unknown_verb_are_told_and_end_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with controlled(tmp_path):
        for verb, said in (
            ("refuse", "not today"),
            ("fail", "its log says more"),
            ("unspeakable", "its log says more"),
            ("approve", "does not know 'approve'"),
        ):
            with pytest.raises(CommandFailed, match=said):
                await ask(tmp_path, verb)
        assert await ask(tmp_path, "echo", still=True) == {"still": True}
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize(
    "line", [b"hello", b"[]", b'{"verb": 1}', b'{"verb": "echo", "arguments": 1}', b"\xff"]
)
async def test_what_is_no_request_is_told(tmp_path: Path, line: bytes) -> None:
    async with controlled(tmp_path):
        reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET)
        writer.write(line + b'\n{"verb": "echo", "arguments": {}}\n')
        first, second = json.loads(await reader.readline()), json.loads(await reader.readline())
        writer.close()
    assert (first["ok"], second) == (False, {"ok": True, "result": {}})


async def test_a_line_without_an_end_and_a_caller_that_leaves_end_nothing(tmp_path: Path) -> None:
    async with controlled(tmp_path):
        reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET)
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                writer.write(b"x" * 65_536)
                await writer.drain()
            await reader.read()
        writer.close()
        _, writer = await asyncio.open_unix_connection(tmp_path / SOCKET)
        writer.write(b'{"verb": "echo", "arguments": {}}\n')
        writer.transport.abort()
        assert await ask(tmp_path, "echo") == {}


async def test_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    data = tmp_path.joinpath(*["a" * 50] * 5)
    data.mkdir(parents=True)
    assert len(os.fsencode(data / SOCKET)) > 200
    before = len(os.listdir("/proc/self/fd"))
    async with controlled(data):
        assert await ask(data, "echo", far=1) == {"far": 1}
        assert (data / SOCKET).is_socket()
    assert not (data / SOCKET).exists()
    async with asyncio.timeout(10):
        while len(os.listdir("/proc/self/fd")) > before:  # noqa: ASYNC110 - connections close later
            await asyncio.sleep(0)


async def test_the_socket_of_a_dead_process_is_nobody_and_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead, socket_address(tmp_path) as address:
        dead.bind(address)
    with pytest.raises(NotRunning, match="no galata runs on"):
        await ask(tmp_path, "echo")
    async with controlled(tmp_path):
        assert await ask(tmp_path, "echo", again=1) == {"again": 1}


@pytest.mark.parametrize("folder", ["missing", "file", "."])
def test_where_nothing_runs_that_is_said(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotRunning, match="start it first"):
        ask_running(tmp_path / folder, "echo")


async def test_a_socket_that_cannot_be_made_is_logged_and_the_bot_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / SOCKET).mkdir()
    await Control(tmp_path, VERBS).run()
    assert "commands cannot reach this process" in caplog.text


async def test_a_process_that_does_not_answer_or_ends_is_told(tmp_path: Path) -> None:
    held: list[asyncio.StreamWriter] = []

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        if len(held) == 2:
            await reader.readline()
            writer.close()

    server = await asyncio.start_unix_server(mute, tmp_path / SOCKET)
    with pytest.raises(CommandFailed, match="has not answered within"):
        await asyncio.to_thread(ask_running, tmp_path, "echo", wait_s=0.05)
    with pytest.raises(CommandFailed, match="gave no whole answer"):
        await ask(tmp_path, "echo")
    for writer in held:
        writer.close()
    server.close()
