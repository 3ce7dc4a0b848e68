"""`galata usage` sums up calls, and its forms hold the same."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent.provider import Usage
from bridge.cli.options import CommandFailed, Options
from bridge.cli.parser import parse
from bridge.cli.usage import show
from memory.conversations import Conversations, SessionPlace
from memory.costs.usage_report import GROUPS
from memory.database import Database
from memory.usage import UsageRow, UsageStore


async def used(path: Path) -> None:
    database = await Database.open(path)
    conversations, usage = Conversations(database), UsageStore(database)
    for chat, person, model, cost in (
        ("-1", "ana", "main", 70_000),
        ("-1", "bo", "main", 30_000),
        ("-2", "ana", "free", None),
    ):
        outcome = "reserved" if person == "bo" else "completed"
        place = SessionPlace(f"telegram:1:{chat}", "telegram", "1", chat, None)
        session = await conversations.open(place)
        row = UsageRow(
            f"{chat}{person}",
            1,
            session,
            person,
            model,
            "answer",
            outcome,
            Usage(10, 5, 3, estimated=cost is None),
            cost,
        )
        await usage.book([row])
    await database.close()


@pytest.fixture
def options(tmp_path: Path) -> Options:
    asyncio.run(used(tmp_path / "galata.db"))
    return Options(tmp_path, None, {}, by="chat", format="json")


def rows(options: Options, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert show(options) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


def test_what_cost_most_comes_first(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = rows(options, capsys)
    assert first["chat"] == "telegram:-1"
    assert (first["calls"], first["read"], first["cached"], first["written"]) == (2, 20, 6, 10)
    assert (first["cost_usd"], first["unpriced"]) == (0.1, 0)
    assert (first["estimated"], first["running"], second["running"]) == (0, 1, 0)
    assert (second["cost_usd"], second["unpriced"], second["estimated"]) == (0.0, 1, 1)


@pytest.mark.parametrize("group", GROUPS)
def test_all_groups_add_up(
    options: Options, capsys: pytest.CaptureFixture[str], group: str
) -> None:
    found = rows(replace(options, by=group), capsys)
    assert sum(int(str(row["calls"])) for row in found) == 3
    name, given = parse(["usage", "--by", group], {})
    assert (name, given.by) == ("usage:show", group)


def test_table_and_csv_say_the_same(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    show(replace(options, format="csv"))
    as_csv = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    show(replace(options, format="table"))
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == as_csv
    assert as_csv[0][:2] == ["chat", "calls"]


def test_since_is_a_day(options: Options, capsys: pytest.CaptureFixture[str]) -> None:
    assert rows(replace(options, since="2999-01-01"), capsys) == []
    with pytest.raises(CommandFailed, match="a date such as"):
        show(replace(options, since="yesterday"))


def test_without_a_database_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="which --data"):
        show(Options(tmp_path, None, {}, by="chat"))
