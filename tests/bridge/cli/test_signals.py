"""SIGTERM to a bot that is at work: what is not out yet does not hold it, and is not lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL

import pytest

from bridge.operation.signals import PATIENCE_S
from tests.bridge.cli.processes import FORKS, Process
from tests.bridge.cli.scripted import environ, piped
from tests.servers.anthropic import AnthropicServer
from tests.servers.telegram import Chat, TelegramServer

LONG_S = 600  # a wait that no test could sit out


@pytest.fixture
async def llm() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


@pytest.fixture
def chat(telegram: TelegramServer, llm: AnthropicServer, tmp_path: Path) -> Chat:
    """The owner's chat with the bot whose configuration is in c.yaml."""
    owner = telegram.user("Ana")
    (tmp_path / "c.yaml").write_text(f"""\
timezone: UTC
model: m
providers:
  p: {{kind: anthropic, api_key: {llm.api_key}, base_url: {llm.base_url}}}
models:
  m: {{provider: p, id: test-model}}
channels:
  telegram:
    token: {telegram.token}
    base_url: {telegram.base_url.removesuffix("/bot")}
    owners: [{owner.id}]
""")
    return telegram.private(owner)


@asynccontextmanager
async def running(telegram: TelegramServer, folder: Path) -> AsyncGenerator[Process]:
    """`galata run`, as soon as it listens."""
    process = await FORKS.start(
        *("run", "--config", "c.yaml", "--data", "d"),
        cwd=folder,
        env=environ(folder),
        stdin=DEVNULL,
        stdout=1,
        stderr=2,
    )
    try:
        await telegram.wait_for_poll()
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def signal_waits(process_id: int) -> bool:
    """Whether a signal has not reached the process yet."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return "ShdPnd:\t0000000000000000" not in status


async def ended_by_two_signals(process: Process) -> int:
    """The exit code after SIGTERM twice; sooner than one alone would end it."""
    process.send_signal(signal.SIGTERM)
    while signal_waits(process.pid):  # noqa: ASYNC110 - two that wait would be one
        await asyncio.sleep(0)
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()


async def test_a_signal_that_comes_while_it_starts_ends_it_in_order(tmp_path: Path) -> None:
    """A service that was stopped in its first second had failed: exit code -15."""
    config = tmp_path / "c.yaml"
    os.mkfifo(config)
    process = await FORKS.start(
        *("run", "--config", "c.yaml", "--data", "d"),
        cwd=tmp_path,
        env=environ(tmp_path),
        stdin=DEVNULL,
        stdout=1,
        stderr=2,
    )
    # It is opened once the process reads it, which then goes no further.
    opened = await asyncio.to_thread(os.open, config, os.O_WRONLY)
    try:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    finally:
        os.close(opened)


@pytest.mark.parametrize("text", ["/help", "hello"])
async def test_a_second_signal_does_not_wait_for_a_platform_that_asks_to_wait(
    telegram: TelegramServer, llm: AnthropicServer, chat: Chat, tmp_path: Path, text: str
) -> None:
    llm.answer("Write to me and I will answer.")
    async with running(telegram, tmp_path) as process:
        telegram.flood(chat, retry_after=LONG_S, method="sendMessage")
        chat.send(text)
        await telegram.wait_for_call("sendMessage")
        assert await ended_by_two_signals(process) == 0
    llm.answer("Write to me and I will answer.")
    async with running(telegram, tmp_path):
        await chat.wait_for_text("Write to me and I will answer.")


async def test_a_second_signal_does_not_wait_for_a_platform_that_is_gone(
    telegram: TelegramServer, llm: AnthropicServer, chat: Chat, tmp_path: Path
) -> None:
    reply = llm.answer("An answer.").stall_after(1)
    async with running(telegram, tmp_path) as process:
        chat.send("hello")
        await reply.reached.wait()
        await telegram.stop()
        reply.release()
        assert await ended_by_two_signals(process) == 0


async def test_a_second_signal_does_not_wait_for_a_model_that_is_silent(
    telegram: TelegramServer, llm: AnthropicServer, chat: Chat, tmp_path: Path
) -> None:
    reply = llm.answer("An answer that never comes.").stall_after(1)
    async with running(telegram, tmp_path) as process:
        chat.send("hello")
        await reply.reached.wait()
        assert await ended_by_two_signals(process) == 0
    llm.answer("Here it is.")
    async with running(telegram, tmp_path):
        await chat.wait_for_text("Here it is.")


async def test_two_data_folders_do_not_receive_for_one_bot(
    telegram: TelegramServer, chat: Chat, tmp_path: Path
) -> None:
    async with running(telegram, tmp_path) as process:
        code, _, errors = await piped(
            *("run", "--config", "c.yaml", "--data", "other"), cwd=tmp_path, env=environ(tmp_path)
        )
        assert code == 1
        assert errors == (
            f"channels.telegram.token: another galata (process {process.pid}, data folder "
            f"{tmp_path}/d) runs with this token: stop it, or get a token of its own for this one\n"
        )
        code, _, errors = await piped(
            *("run", "--config", "c.yaml", "--data", "d"), cwd=tmp_path, env=environ(tmp_path)
        )
        assert errors.startswith(f"another galata (process {process.pid}) runs on this data folder")
        process.kill()
        await process.wait()
    async with running(telegram, tmp_path):
        pass
