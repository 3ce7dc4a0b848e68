"""What a night has changed is said once, under the next answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from memory.night.nights import Night
from tests.bridge.bed import bed

DAY = timedelta(days=1)
NIGHT = Night(date(2026, 11, 30), "changed", added=3, merged=1, dropped=1)


async def test_the_next_answer_says_it_and_no_other(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "two"]) as it:
        message = it.channel.message("hi")
        scope = f"person:fake:{message.address.account}:1"
        await it.services.memory.nights.note(scope, NIGHT)
        said = await it.ask("hi")
        assert said == "one\n\n_Overnight: 3 added, 1 merged, 1 dropped_"
        assert [button.label for button in it.channel.replies[-1].buttons] == ["Show", "Undo"]
        assert await it.ask("and?") == "two"


async def test_what_was_not_told_of_earlier_nights_is_told_with_the_next_and_taken_back_with_it(
    tmp_path: Path,
) -> None:
    """Nobody wrote for days; one night was cut short in its middle, one found nothing."""
    async with bed(tmp_path, ["one", "two"]) as it:
        scope = f"person:fake:{it.channel.message('hi').address.account}:1"
        nights = it.services.memory.nights
        await nights.note(scope, replace(NIGHT, found="a", left_as="b"))
        cut = replace(NIGHT, day=NIGHT.day + DAY, outcome="put_off", found="b", left_as="c")
        await nights.note(scope, cut)
        told = (await it.ask("/memory")).split("Last night")[1]
        assert "Tidied: 3 added, 1 merged, 1 dropped. The rest is done later" in told
        await nights.note(scope, Night(NIGHT.day + 2 * DAY, "same"))
        said = await it.ask("hi")
        assert said == "one\n\n_Overnight: 6 added, 2 merged, 2 dropped_"
        assert it.channel.replies[-1].buttons[1].value == "night:2026-12-01"
        assert await nights.traces(scope, cut.day) == ("a", "c")
        await nights.note(scope, Night(NIGHT.day + 3 * DAY, "same"))
        assert await it.ask("and?") == "two"
        assert await nights.traces(scope, cut.day) == ("a", "c")
        newest = await nights.newest(scope)
        assert newest is not None
        assert (newest.outcome, newest.added) == ("same", 0)


async def test_a_night_that_was_told_is_not_taken_back_with_the_next_one(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "two"]) as it:
        scope = f"person:fake:{it.channel.message('hi').address.account}:1"
        nights = it.services.memory.nights
        await nights.note(scope, replace(NIGHT, found="a", left_as="b"))
        await it.ask("hi")
        later = replace(NIGHT, day=NIGHT.day + DAY, found="b", left_as="c")
        await nights.note(scope, later)
        await it.ask("and?")
        assert await nights.traces(scope, later.day) == ("b", "c")


async def test_notes_that_were_passed_over_are_told_once_and_take_no_undo_away(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["one", "two", "three"]) as it:
        scope = f"person:fake:{it.channel.message('hi').address.account}:1"
        nights = it.services.memory.nights
        await nights.note(scope, replace(NIGHT, found="a", left_as="b", passed=1))
        said = await it.ask("hi")
        assert said.startswith(
            "one\n\n_Overnight: 3 added, 1 merged, 1 dropped_\n_For three nights"
        )
        passing = Night(NIGHT.day + DAY, "refused", "prose", passed=2)
        await nights.note(scope, passing)
        await nights.note(scope, Night(NIGHT.day + 2 * DAY, "same"))
        said = await it.ask("and?")
        assert "nothing has come of 2 notes, so the nights pass them over" in said
        assert it.channel.replies[-1].buttons == ()
        assert await nights.traces(scope, NIGHT.day) == ("a", "b")
        assert await it.ask("so?") == "three"
        await nights.note(scope, passing)
        assert "so the nights pass them over" in (await it.ask("/memory")).split("Last night")[1]


async def test_it_is_said_in_the_persons_language(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one"], language="zh") as it:
        account = it.channel.message("hi").address.account
        await it.services.memory.nights.note(f"person:fake:{account}:1", NIGHT)
        assert (await it.ask("hi")).endswith("新增 3 条，合并 1 条，删除 1 条_")


async def test_nothing_is_said_where_nothing_changed_or_nobody_wants_it(tmp_path: Path) -> None:
    async with bed(tmp_path, ["one", "two"]) as it:
        account = it.channel.message("hi").address.account
        scope, memory = f"person:fake:{account}:1", it.services.memory
        await memory.nights.note(scope, Night(date(2026, 11, 30), "refused", "prose"))
        assert await it.ask("hi") == "one"
        await memory.nights.note(scope, NIGHT)
        assert await memory.nights.newest(scope) == NIGHT
        silent = replace(memory, tells=False)
        object.__setattr__(it.services, "memory", silent)
        assert await it.ask("and?") == "two"
