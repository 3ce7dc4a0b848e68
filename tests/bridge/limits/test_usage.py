"""`/usage`, and who hears of budgets that are nearly used up, and when they are."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bridge.limits.gate import usd
from tests.bridge.bed import Bed, bed
from tests.bridge.limits.test_effects import GROUP, ask, write


def private(it: Bed) -> list[str]:
    return [reply.final or "" for reply in it.channel.replies if reply.to.private]


async def test_admins_with_a_private_chat_hear_once_of_each_level(tmp_path: Path) -> None:
    write(tmp_path, "cost_per_day_usd: 4\ncost_per_person_per_day_usd: 9\nwarn_at_percent: 50")
    async with bed(tmp_path, ["Hello.", *"123"]) as it:
        it.channel.admins = {"ana"}
        await it.ask("Hi", chat="ana", person="ana")
        await ask(it, person="ana")
        assert private(it) == ["Hello."], "not yet"
        await ask(it, person="bo")
        assert "used 50 % of a budget: 2.00 USD of 4.00 USD" in private(it)[-1]
        await ask(it, person="bo")
        assert len(private(it)) == 2, "once"
    async with bed(tmp_path, ["4"]) as it:
        it.channel.admins = {"ana"}
        await ask(it, person="bo")
        assert len(private(it)) == 1
        assert "used up a budget: 4.00 USD of 4.00 USD (`cost_per_day_usd`)" in private(it)[0]


async def test_where_no_admin_is_reached_in_private_the_chat_is_told_after_quiet_hours(
    tmp_path: Path,
) -> None:
    now, hour = datetime.now(UTC), timedelta(hours=1)
    budget = "cost_per_day_usd: 5\ncost_per_person_per_day_usd: 9\n"
    quiet = f"quiet_hours: {now - hour:%H:%M}-{now + 2 * hour:%H:%M}"
    write(tmp_path, budget + quiet)
    async with bed(tmp_path, [*"12345"]) as it:
        it.channel.admins = {"boss"}
        await it.ask("/whoami", chat="boss", person="boss")
        it.channel.membership.unreachable = {"boss"}  # who has blocked the bot since
        told = it.channel.said_in
        for _ in range(4):
            await ask(it)
        assert told(GROUP) == [*"1234"], "nobody is woken"
        write(tmp_path, budget)
        await ask(it)
        near, full = "used 80 %", "used up a budget: 5.00 USD of 5.00 USD (`cost_per_day_usd`)"
        (line,) = told(GROUP)[5:]
        assert full in line
        assert near not in line, "the higher of both alone"
        assert it.channel.replies[-1].silent
        await ask(it)
        assert len(told(GROUP)) == 7, "once"


async def test_an_admin_who_never_wrote_in_the_group_hears_of_it_in_private(
    tmp_path: Path,
) -> None:
    write(tmp_path, "cost_per_day_usd: 1\ncost_per_person_per_day_usd: 9")
    async with bed(tmp_path, ["Hello.", "1"]) as it:
        it.channel.admins = {"ana"}
        await it.ask("Hi", chat="ana", person="ana")
        await ask(it, person="bo")
        assert "used up a budget" in private(it)[-1]
        assert it.channel.said_in(GROUP) == ["1"], "the chat hears nothing then"


async def test_owners_hear_of_the_installations_budget(tmp_path: Path) -> None:
    async with bed(tmp_path, ["1", "2"], limit_usd=2) as it:
        await it.ask("/whoami", person="owner", chat="owner")
        await ask(it)
        await ask(it)
        (told,) = private(it)[1:]
        assert "used up the installation's budget: 2.00 of 2.00 USD" in told


@pytest.mark.parametrize("here", [1, 100])
async def test_when_owners_are_warned_is_no_matter_of_a_chat(tmp_path: Path, here: int) -> None:
    write(tmp_path, f"warn_at_percent: {here}")
    async with bed(tmp_path, [*"12345"], limit_usd=5) as it:
        await it.ask("/whoami", person="owner", chat="owner")
        told: list[int] = []
        for _ in range(4):
            await ask(it)
            told.append(len(private(it)) - 1)
        assert told == [0, 0, 0, 1]
        assert "used 80 % of the installation's budget" in private(it)[-1]


async def test_usage_tells_the_own_share_and_admins_the_whole(tmp_path: Path) -> None:
    write(tmp_path, "cost_per_day_usd: 30")
    async with bed(tmp_path, [*"123"]) as it:
        it.channel.admins = {"boss"}
        for person in ("ana", "bo", "bo"):
            await ask(it, person=person)
        await it.database.write(
            lambda connection: connection.execute(
                "INSERT INTO usage (run_id, number, session_id, person, model, purpose, outcome,"
                " input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, estimated,"
                " cost_microusd, created_at) SELECT 'flush:1', 1, session_id, '', model, 'flush',"
                " outcome, 1, 1, 0, 0, 0, 1, created_at FROM usage LIMIT 1"
            )
        )
        told = await ask(it, "/usage", person="ana")
        assert "You today: 1.00 of 10.00 USD" in told
        assert "You in 30 days: 1.00 USD" in told
        assert "This chat" not in told
        told = await ask(it, "/usage", person="boss")
        assert "This chat in 7 days: 3.00 USD" in told
        assert "████████████ 3.00 USD" in told
        assert "▁▁▁█`" in told
        assert "By person: no. 1 67 %, no. 2 33 %" in told
        assert "ana" not in told
        assert "By model: `m` 100 %" in told


@pytest.mark.parametrize(
    ("micro", "shown"),
    [(0, "0.00"), (10_000_000 // 3, "3.33"), (3_333, "0.0033"), (33, "0.000033"), (10_000, "0.01")],
)
def test_amounts_are_shown_as_people_read_them(micro: int, shown: str) -> None:
    assert usd(micro) == shown


async def test_names_where_the_operator_wants_them(tmp_path: Path) -> None:
    async with bed(tmp_path, ["1"], usage_names=True) as it:
        it.channel.admins = {"boss"}
        await ask(it)
        assert "By person: Ana (`ana`) 100 %" in await ask(it, "/usage", person="boss")


async def test_one_budget_for_a_person_over_all_chats(tmp_path: Path) -> None:
    async with bed(tmp_path, [*"123"], person_usd=2) as it:
        await ask(it)
        await it.ask("Hi", chat="ana")
        told = await it.ask("Hi", chat="other")
        assert "used 2.00 USD today in all your chats with me, and may use 2.00 USD" in told
        assert "Whoever runs this bot can change that" in told
        assert await ask(it, person="bo") == "3"


@pytest.mark.parametrize(
    ("own", "everywhere", "asker", "told"),
    [
        ("cost_per_day_usd: 1\n", {}, ("bo", GROUP), "This chat has used 0.00 USD today, and may"),
        ("", {"person_usd": 1}, ("ana", "1"), "You have used 0.00 USD today in all your chats"),
        ("", {"limit_usd": 1}, ("bo", "2"), "Of this month's budget 0.00 of 1.00 USD are used"),
    ],
)
async def test_what_a_running_answer_may_cost_is_not_told_as_used(
    tmp_path: Path, own: str, everywhere: dict[str, Any], asker: tuple[str, str], told: str
) -> None:
    write(tmp_path, f"{own}cost_per_person_per_day_usd: 9")
    stall, (person, chat) = asyncio.Event(), asker
    async with bed(tmp_path, ["One.", "Two."], stall=stall, **everywhere) as it:
        await it.send("Hi?", chat=GROUP, private=False)
        await it.until(lambda: it.provider.requests)
        for _ in range(2):
            await it.send("Hi?", person=person, chat=chat, private=chat != GROUP)
        await it.until(lambda: it.channel.finals)
        (answer,) = it.channel.finals[:1]
        assert told in answer
        assert "again when they are done." in answer
        assert "again from" not in answer
        await it.send("/limits", chat=GROUP, private=False)
        await it.until(lambda: "Limits of this chat" in it.channel.finals[-1])
        assert "\nToday: 0.00" in it.channel.finals[-1]
        assert "being written: 1.00 USD" in it.channel.finals[-1]
        stall.set()
        await it.bridge.idle()
        if own:
            assert "This chat has used 1.00 USD" in await ask(it, person="bo"), "told anew"
