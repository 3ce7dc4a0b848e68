"""`galata run` and `galata chat` as processes: pipes, a terminal, a platform, a closed input."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from tests.bridge.cli.processes import FORKS, Process
from tests.bridge.cli.scripted import environ, piped, terminal
from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_rules import Rules
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer

CTRL_C = b"\x03"
# A script's next line waits until nothing is left to do, and that is until both rows are closed.
AT_WORK = (
    "SELECT 1 FROM inbox WHERE state = 'open' UNION ALL SELECT 1 FROM outbox WHERE state = 'open'"
)


@pytest.fixture
async def llm() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer(Rules(models=("claude-haiku-5-5",))) as server:
        yield server
        assert server.refusals == []


@pytest.fixture
def env(llm: AnthropicServer, tmp_path: Path) -> dict[str, str]:
    """A key, and nothing else."""
    return environ(tmp_path, ANTHROPIC_API_KEY=llm.api_key, ANTHROPIC_BASE_URL=llm.base_url)


async def test_a_piped_conversation_is_only_its_answers(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.answer("Fine, thanks.")
    llm.answer("Bye!")
    code, out, errors = await piped(
        "run", "--data", "d", cwd=tmp_path, env=env, typed="how are you?\nbye\n", anew=True
    )
    assert (code, out, errors) == (0, "Fine, thanks.\nBye!\n", "")
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "d").glob("*.db*")}
    assert modes
    assert set(modes.values()) == {0o600}


async def test_a_terminal_obeys_nothing_that_a_model_says(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.answer("\x1b]0;title\x07A\x1b[2J\ttab\x9b31m")
    code, out, errors = await piped("chat", cwd=tmp_path, env=env, typed="hi\n")
    assert (code, out, errors) == (0, "]0;titleA[2J\ttab31m\n", "")


async def test_whoever_reads_only_the_beginning_gets_no_complaint(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.answer("One.")
    reads, writes = os.pipe()
    os.close(reads)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bridge", "chat"),
        cwd=tmp_path,
        env=env,
        stdin=PIPE,
        stdout=writes,
        stderr=PIPE,
    )
    os.close(writes)
    async with asyncio.timeout(30):
        _, errors = await process.communicate(b"hi\n")
    assert (process.returncode, errors) == (0, b"")


async def test_bytes_that_are_no_text_lose_no_line(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.answer("With milk?")
    llm.answer("Hello!")
    del env["LANG"]
    code, out, errors = await piped(
        "chat", cwd=tmp_path, env=env, typed=b"caf\xe9 au lait\nHello\n"
    )
    assert (code, out, errors) == (0, "With milk?\nHello!\n", "")
    assert "caf\ufffd au lait" in str(llm.requests[0].body)


async def test_a_piped_question_whose_key_is_refused_ends_with_1_and_no_trace(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.fail(401, "invalid x-api-key")
    code, out, errors = await piped("run", "--data", "d", cwd=tmp_path, env=env, typed="hi\n")
    assert (code, out.count("\n")) == (1, 1)
    assert "does not accept my key" in out
    assert "Traceback" not in errors
    assert len(errors.splitlines()) <= 4, "the outage, its alert, the error's id, what is left"
    assert "1 without an answer, taken up at the next start" in errors
    llm.answer("Hello again!")
    code, out, errors = await piped("run", "--data", "d", cwd=tmp_path, env=env, typed="")
    assert (code, out) == (0, "Hello again!\n")
    assert "Traceback" not in errors


async def test_a_token_that_is_refused_is_one_line_that_names_its_variable(
    env: dict[str, str], tmp_path: Path
) -> None:
    async with TelegramServer() as telegram, SlackServer() as slack:
        wrong = "123456:AAbbccddeeffgghhiijjkkllmmnnooppqq"
        env |= {"TELEGRAM_BOT_TOKEN": wrong, "TELEGRAM_BASE_URL": telegram.base_url[:-4]}
        env |= {"SLACK_BOT_TOKEN": slack.bot_token, "SLACK_APP_TOKEN": "xapp-1-wrong-wrong"}
        env |= {"SLACK_BASE_URL": slack.base_url}
        code, out, errors = await piped("run", "--data", "d", cwd=tmp_path, env=env, typed="")
    assert (code, out) == (1, "")
    assert wrong not in errors
    assert "Traceback" not in errors
    for variable in ("TELEGRAM_BOT_TOKEN", "SLACK_APP_TOKEN"):
        (line,) = [line for line in errors.splitlines() if variable in line]
        assert "stopped" in line
    assert "channels.telegram.token" not in errors
    assert "channels.slack.app_token" not in errors
    assert "own_" not in errors, "nobody can become the owner where nobody can be heard"


async def test_a_piped_question_that_the_provider_refuses_ends_with_1(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.fail(400, "Output blocked by content filtering policy")
    llm.answer("Fine.")
    code, out, errors = await piped("chat", "--data", "d", cwd=tmp_path, env=env, typed="a\nb\n")
    assert code == 1
    assert out.endswith("Fine.\n")
    assert "Traceback" not in errors


async def test_an_output_of_few_letters_shows_everything(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.answer("A café.")
    env |= {"PYTHONIOENCODING": "ascii"}
    assert await piped("chat", cwd=tmp_path, env=env, typed="what?\n") == (0, "A caf\\xe9.\n", "")


@asynccontextmanager
async def chatting(cwd: Path, env: dict[str, str]) -> AsyncIterator[Process]:
    """`galata chat --data d` on pipes, as soon as it has answered a command."""
    process = await FORKS.start("chat", "--data", "d", cwd=cwd, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"/whoami\n")
    while not (await process.stdout.readline()).startswith(b"This chat"):
        pass
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_line_is_answered_when_the_database_can_be_written_again(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    llm.answer("One.")
    llm.answer("Two.")
    async with chatting(tmp_path, env) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        with contextlib.closing(sqlite3.connect(tmp_path / "d" / "galata.db")) as other:
            while other.execute(AT_WORK).fetchone():  # noqa: ASYNC110 - a process of its own
                await asyncio.sleep(0.01)  # the command's rows are closed after its answer
            other.execute("BEGIN EXCLUSIVE")
            process.stdin.write(b"one\ntwo\n")
            process.stdin.close()
            said = b""
            while b"is not stored yet, and tried again" not in said:
                said = await process.stderr.readline()
                assert said, "it ended without saying so"
            other.rollback()
        out, errors = await process.communicate()
    assert process.returncode == 0
    told, *answers = out.splitlines()
    assert told.startswith(b"I cannot store anything right now")
    assert answers == [b"One.", b"Two."]
    assert b"Traceback" not in errors


@pytest.mark.parametrize("command", ["chat", "run"])
async def test_one_process_at_a_time_runs_on_a_data_folder(
    env: dict[str, str], tmp_path: Path, command: str
) -> None:
    async with chatting(tmp_path, env) as first:
        ended = await piped(command, "--data", "d", cwd=tmp_path, env=env, typed="x\n")
    line = (
        f"another galata (process {first.pid}) runs on this data folder: stop it, or give another "
        "--data\n"
    )
    assert ended == (1, "", line)


async def test_a_folder_in_use_can_be_read_and_a_killed_process_leaves_it_free(
    env: dict[str, str], tmp_path: Path
) -> None:
    async with chatting(tmp_path, env) as first:
        code, out, _ = await piped("history", "--data", "d", cwd=tmp_path, env=env)
        assert code == 0
        assert "console:local:local" in out
        first.kill()
        await first.wait()
    code, out, errors = await piped("chat", "--data", "d", cwd=tmp_path, env=env, typed="/whoami")
    assert (code, errors) == (0, "")
    assert "`local`" in out


async def test_a_data_folder_that_others_can_use_is_closed_to_them(
    env: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "d"
    data.mkdir()
    data.chmod(0o755)
    code, _, errors = await piped("chat", "--data", "d", cwd=tmp_path, env=env)
    assert (code, errors) == (0, "others could use d (mode 0755): it is yours alone now\n")
    assert data.stat().st_mode & 0o777 == 0o700
    assert await piped("chat", "--data", "d", cwd=tmp_path, env=env) == (0, "", "")


async def test_a_folder_that_is_shared_on_purpose_is_left_alone_and_told(
    env: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "d"
    data.mkdir()
    data.chmod(0o1777)
    code, _, errors = await piped("chat", "--data", "d", cwd=tmp_path, env=env)
    assert code == 0
    assert errors.startswith("others can use d (mode 1777): ")
    assert data.stat().st_mode & 0o7777 == 0o1777


async def test_no_input_at_all_ends_cleanly(env: dict[str, str], tmp_path: Path) -> None:
    assert await piped("run", cwd=tmp_path, env=env) == (0, "", "")


async def test_a_closed_input_is_an_empty_one(env: dict[str, str], tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", 'exec "$0" -m bridge run <&-', sys.executable),
        cwd=tmp_path,
        env=env,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")


async def test_in_a_terminal_ctrl_c_stops_the_answer_and_then_the_bot(
    llm: AnthropicServer, env: dict[str, str], tmp_path: Path
) -> None:
    reply = llm.answer("A long answer that never ends").stall_after(2)
    async with terminal("chat", cwd=tmp_path, env=env) as person:
        await person.expect("> ")
        person.type("tell me")
        await person.expect("A long")
        await reply.reached.wait()
        person.press(CTRL_C)
        await person.expect("Stopped")
        await person.expect("> ")
        person.press(CTRL_C)
        assert await person.ended() == 0
        assert "Traceback" not in person.shown
        assert "Fatal" not in person.shown


async def test_a_token_in_the_environment_is_enough_and_offers_ownership(
    env: dict[str, str], tmp_path: Path
) -> None:
    async with TelegramServer() as telegram:
        env |= {
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_BASE_URL": telegram.base_url.removesuffix("/bot"),
        }
        process = await FORKS.start("run", cwd=tmp_path, env=env, stdin=DEVNULL)
        assert process.stderr is not None
        errors = ""
        while "t.me" not in errors:
            errors += (await process.stderr.readline()).decode()
        assert re.search(r"https://t\.me/galata_test_bot\?start=own_\S{20,}", errors)
        assert telegram.token not in errors
        await telegram.wait_for_poll()
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0


async def test_a_data_folder_that_cannot_be_made_is_told(
    env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    code, _, errors = await piped("run", "--data", "file/d", cwd=tmp_path, env=env)
    assert code == 1
    assert errors == "--data file/d: cannot be created: Not a directory\n"
