"""Field cases (i): limits that count what they should, follow a chat, and read YAML without guessing.

One test a case; each trap of case 141 is a file of its own. What one key does by itself:
tests/bridge/limits/test_effects.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridge.config import ConfigError, load
from bridge.limits.files import PolicyFiles, located
from bridge.limits.kinds import Known
from memory.policies import NothingStored, PolicyPlace
from tests.bridge.bed import bed
from tests.bridge.limits.test_effects import ask, send, write
from tests.field_cases.world import TelegramWorld, on_telegram

pytestmark = pytest.mark.usefixtures("brisk")


def group_file(it: TelegramWorld, text: str, chat: str) -> Path:
    path = it.app.data / "groups" / "telegram" / f"{chat}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# ---- 138 ----------------------------------------------------------------------------------------


async def test_a_limit_of_the_group_counts_the_group_and_one_of_a_person_the_person(
    tmp_path: Path,
) -> None:
    """Case 138: "per group" was counted by user, so that 20 people had 20 times the limit."""
    write(tmp_path, "cost_per_day_usd: 2\ncost_per_person_per_day_usd: 2")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        assert [await ask(it, person=who) for who in ("ana", "bo")] == ["One.", "Two."]
        for person in ("cleo", "dan", "ana"):
            told = await ask(it, person=person)
            assert "2.00 USD" in told
        assert len(it.provider.requests) == 2


async def test_edits_albums_and_commands_are_no_questions_and_cancel_is_never_limited(
    tmp_path: Path,
) -> None:
    """Case 138, in Telegram."""
    async with on_telegram(tmp_path, privacy_mode=False) as it:
        name = f"@{it.server.bot.username} "
        group_file(it, "questions_per_person_per_day: 2", str(it.group.id))
        it.llm.answer("One.")
        asked = it.group.send(f"{name}one", sender=it.ana)
        await it.group.wait_for_text("One.")
        it.group.edit(asked, f"{name}one, edited")
        it.group.send("/status", sender=it.ana)
        await it.group.wait_for_message(lambda message: "Model:" in message.text)
        it.llm.answer("An album.")
        it.group.send_album([f"{name}what is this?", "", ""], sender=it.ana)
        await it.group.wait_for_text("An album.")
        it.group.send(f"{name}three", sender=it.ana)
        told = await it.group.wait_for_message(lambda m: "may ask here in a day" in m.text)
        assert "Europe/Berlin" in told.text
        it.group.send("/cancel", sender=it.ana)
        answers = (
            "Stopped.",
            "is complete",
            "Nothing is running",
        )  # it depends on how far the answer has come
        await it.group.wait_for_message(lambda m: any(word in m.text for word in answers))


# ---- 140 ----------------------------------------------------------------------------------------


async def test_limits_follow_a_group_that_becomes_a_supergroup(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 140: the limits, what was used of them, and their file; the operator is told."""
    async with on_telegram(tmp_path) as it:
        old = it.server.group("Basic", members=[it.ana], id=-451)
        group_file(it, "questions_per_person_per_day: 1", "-451")
        it.llm.answer("One.")
        old.send("/ask one", sender=it.ana)
        await old.wait_for_text("One.")
        new = old.migrate()
        await it.server.wait_until_confirmed()
        new.send("/ask two", sender=it.ana)
        await new.wait_for_message(lambda message: "may ask here in a day" in message.text)
        folder = it.app.data / "groups" / "telegram"
        assert [path.name for path in folder.iterdir()] == [f"{new.id}.yaml"]
    assert "write " in caplog.text, "the configuration still names the old id"
    assert f"{new.id}.yaml, as its chat has another id" in caplog.text


# ---- 141 ----------------------------------------------------------------------------------------

TRAPS: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "on": (b"paused: on\n", {"paused": True}, ""),
    "off": (b"paused: off\n", {"paused": False}, ""),
    "a word of YAML 1.1 as a language": (b"language: no\n", {"language": "no"}, ""),
    "sexagesimal": (b"tokens_per_day: 12:30\n", {}, "1:1 tokens_per_day: must be a number"),
    "an id that looks octal": (b"blocked: [0123]\n", {"blocked": frozenset({"0123"})}, ""),
    "an id that looks like a float": (b"blocked: [1e5]\n", {"blocked": frozenset({"1e5"})}, ""),
    "a tab": (b"blocked:\n\t- 42\n", {}, "2:1 syntax: a tab is not allowed here"),
    "a byte order mark": (b"\xef\xbb\xbfpaused: yes\n", {"paused": True}, ""),
    "a duplicate": (b"paused: no\npaused: yes\n", {}, "2:1 paused: is there twice"),
    "nothing": (b"tokens_per_day:\n", {}, "1:1 tokens_per_day: is empty"),
    "a tilde": (b"tokens_per_day: ~\n", {}, "1:1 tokens_per_day: is empty"),
    "zero": (b"tokens_per_day: 0\n", {"tokens_per_day": 0}, ""),
    "a placeholder": (b"tokens_per_day: ${LIMIT}\n", {}, "1:1 tokens_per_day: must be a number"),
    "an anchor": (b"paused: &a yes\n", {}, "1:9 paused: anchors (&)"),
    "latin-1": (b"instructions: f\xfcr alle\n", {}, "1:1 syntax: a byte that is no UTF-8"),
}


@pytest.mark.parametrize("trap", TRAPS)
async def test_yaml_traps_in_a_chats_file(tmp_path: Path, trap: str) -> None:
    """Case 141: the value that was meant, or the place and the reason."""
    raw, values, told = TRAPS[trap]
    files = PolicyFiles(tmp_path, NothingStored(), Known())
    place = PolicyPlace("telegram", "-100")
    files.path(place).parent.mkdir(parents=True)
    files.path(place).write_bytes(raw)
    state = await files.read(place)
    assert state.values == values
    lines = located(files.path(place), state.pending)
    assert len(lines) == (1 if told else 0)
    assert not told or lines[0].startswith(f"{files.path(place)}:{told}")


def test_the_same_traps_in_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("defaults:\n  tokens_per_day: 50.000\n  paused: ~\n  tokens_per_da: 1\n")
    with pytest.raises(ConfigError) as failed:
        load(path, {})
    lines = str(failed.value).splitlines()
    assert any(":2:3 defaults.tokens_per_day: 50.000 can mean 50 or 50000" in one for one in lines)
    assert any(":3:3 defaults.paused: is empty" in one for one in lines)
    assert any(":4:3 defaults.tokens_per_da: unknown key" in one for one in lines)


async def test_zero_is_nothing_and_no_line_is_no_limit(tmp_path: Path) -> None:
    """Case 141."""
    write(tmp_path, "cost_per_day_usd: 0")
    async with bed(tmp_path, ["One."]) as it:
        assert "0.00 USD" in await ask(it)
        write(tmp_path, "# cost_per_day_usd: 0")
        assert await ask(it) == "One."


async def test_what_is_used_survives_a_restart(tmp_path: Path) -> None:
    """Case 141: counters were lost with the process."""
    write(tmp_path, "questions_per_person_per_day: 1\ncost_per_person_per_day_usd: 1")
    async with bed(tmp_path, ["One."]) as it:
        assert await ask(it) == "One."
    async with bed(tmp_path, ["Two."]) as it:
        assert "1.00 USD" in await ask(it)
        await send(it)
        assert it.provider.requests == []
