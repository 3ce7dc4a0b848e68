"""One table of commands: the page, the handlers and the rights come from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.commands import table as command_table
from bridge.commands.table import NAMES, TABLE, CommandSpec, markdown, spec_of
from bridge.texts import Say, Texts
from channels.base import Command
from channels.messages import STOP_COMMANDS
from tests.bridge.bed import bed

TEAM = {"chat": "team", "private": False}
BY_TURNS = {"retry", "resend", *STOP_COMMANDS}  # which are no handlers of `Commands`


def test_the_page_is_the_table() -> None:
    page = command_table.PAGE.read_text(encoding="utf-8")
    assert page == markdown(Say(Texts.load(), "en")), "python -m bridge.command_table"


async def test_every_declared_command_is_known(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        for name in sorted(NAMES - BY_TURNS):
            assert not (await it.ask(f"/{name}", person="owner")).startswith("I do not know /"), (
                name
            )
        assert (await it.ask("/other")).startswith("I do not know /other")


def test_what_stands_after_a_command_may_have_rights_of_its_own() -> None:
    def words(name: str, args: str = "") -> str | None:
        spec = spec_of(Command(name, args))
        return None if spec is None else spec.words

    assert words("memory") == "memory"
    assert words("memory", "UNDO now") == "memory undo"
    assert words("memory", "other") == "memory"
    assert words("forget", "undo") == "forget"
    assert words("other") is None


@pytest.mark.parametrize("spec", TABLE, ids=lambda spec: spec.words)
async def test_a_member_is_refused_what_the_table_keeps_for_admins(
    spec: CommandSpec, tmp_path: Path
) -> None:
    """The platform is asked each time; an admin and an owner are not refused."""
    if spec.group not in ("admins", "nobody"):
        return
    async with bed(tmp_path) as it:
        said = await it.ask(f"/{spec.words}", **TEAM)
        assert said.startswith(("Only admins of this group", "This works in a private chat"))
        if spec.group == "admins":
            it.channel.admins = {"ana"}
            assert not (await it.ask(f"/{spec.words}", **TEAM)).startswith("Only admins")
            it.channel.admins = None
            assert (await it.ask(f"/{spec.words}", **TEAM)).startswith("Only admins")
            assert not (await it.ask(f"/{spec.words}", person="owner", **TEAM)).startswith("Only")
