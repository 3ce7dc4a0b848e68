"""Each key changed alone, by a line in the chat's file, and its effect as people see it."""

from __future__ import annotations

import ast
import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.messages import Message, ToolUseBlock
from agent.testing import ScriptedProvider
from bridge.chats.keep_days import clean_chats
from bridge.limits.keys import KEYS
from memory.chats.chat_retention import ChatRetention
from memory.clock import stamp
from memory.scopes import scope_path
from tests.bridge.bed import Bed, bed, chat_model
from tests.bridge.chats.test_erasing import bytes_with, rows_with

GROUP = "team"


def write(folder: Path, text: str, *, chat: str = GROUP, topic: str = "") -> Path:
    path = folder / "groups" / "fake" / (f"{chat}/{topic}.yaml" if topic else f"{chat}.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


async def ask(it: Bed, text: str = "Hi?", person: str = "ana") -> str:
    """The answer; a line about a budget may come after it."""
    count = len(it.channel.finals)
    await it.ask(text, person=person, chat=GROUP, private=False)
    return it.channel.finals[count]


async def send(it: Bed, text: str = "Hi?", person: str = "ana") -> None:
    await it.send(text, person=person, chat=GROUP, private=False)
    await it.bridge.idle()


async def test_without_a_file_everybody_is_answered(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two."]) as it:
        assert [await ask(it), await ask(it, person="cleo")] == ["One.", "Two."]


async def test_paused(tmp_path: Path) -> None:
    write(tmp_path, "paused: yes")
    async with bed(tmp_path, ["One."]) as it:
        assert "paused" in await ask(it)
        await send(it)
        assert len(it.channel.finals) == 1, "told once"
        write(tmp_path, "paused: no  # again")
        assert await ask(it) == "One."
        assert len(it.provider.requests) == 1, "what was asked meanwhile is not answered later"


@pytest.mark.parametrize("addressed", [True, False])
async def test_what_was_sent_in_a_pause_is_not_answered_when_it_comes_after_it(
    tmp_path: Path, addressed: bool
) -> None:
    now = datetime.now(UTC)
    until = f"{now - timedelta(minutes=2):%Y-%m-%d %H:%M} UTC"
    write(tmp_path, f"paused: until {until}\nanswer_when: every_message")
    async with bed(tmp_path, ["One."]) as it:
        for minutes in (5, 0):
            message = it.channel.message("Hi?", person="ana", chat=GROUP, private=False)
            sent = replace(message, addressed=addressed, sent_at=now - timedelta(minutes=minutes))
            await it.bridge.receive(sent)
            await it.bridge.idle()
        assert len(it.provider.requests) == 1
        assert it.channel.finals[-1] == "One."


async def test_what_waits_when_a_chat_is_paused_is_not_answered(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["One.", "Two."], stall=stall) as it:
        await it.send("First", person="ana", chat=GROUP, private=False)
        await it.until(lambda: it.provider.requests)
        await it.send("Second", person="bo", chat=GROUP, private=False)
        write(tmp_path, "paused: yes")
        stall.set()
        await it.bridge.idle()
        assert it.channel.finals == ["One."]
        assert await it.services.inbox.open_sessions(["fake"]) == []


async def test_who_can_ask(tmp_path: Path) -> None:
    write(tmp_path, "who_can_ask: admins")
    async with bed(tmp_path, ["One.", "Two.", "Three."]) as it:
        assert "some people only" in await ask(it)
        it.channel.admins = {"ana"}
        assert await ask(it) == "One."
        write(tmp_path, "who_can_ask: [bo1]")
        assert await ask(it, person="bo1") == "Two."
        await send(it)
        assert await ask(it, person="owner") == "Three.", "an owner may always ask"


async def test_blocked(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["One.", "Two."], stall=stall) as it:
        await it.send("Hi", person="ana1", chat=GROUP, private=False)
        await it.until(lambda: it.provider.requests)
        write(tmp_path, "blocked: [ana1]")
        await it.send("/cancel", person="ana1", chat=GROUP, private=False)
        await it.bridge.idle()
        assert "Stopped" in it.channel.finals[-1], "their /cancel works all the same"
        assert "cannot ask" in await ask(it, "/new", person="ana1")
        stall.set()
        assert await ask(it, person="bo") == "Two."


async def test_questions_per_person_per_minute(tmp_path: Path) -> None:
    write(tmp_path, "questions_per_person_per_minute: 2")
    async with bed(tmp_path, ["One.", "Two.", "Three."]) as it:
        await ask(it)
        await send(it, "/status")
        assert await ask(it) == "Two.", "a command is no question"
        told = await ask(it)
        assert "within a minute (2 of 2)" in told
        assert "I answer again from" in told
        assert await ask(it, person="bo") == "Three.", "it counts by person"


@pytest.mark.parametrize(
    ("thread", "in_threads", "told"),
    [
        ("17", False, "mention me with the word `limits`."),
        ("17", True, "change that: /limits."),
        (None, False, "change that: /limits."),
    ],
)
async def test_a_limit_names_the_way_to_the_limits_that_works_where_it_is_told(
    tmp_path: Path, thread: str | None, in_threads: bool, told: str
) -> None:
    write(tmp_path, "questions_per_person_per_day: 0")
    async with bed(tmp_path) as it:
        it.channel.capabilities = replace(it.channel.capabilities, commands_in_threads=in_threads)
        message = it.channel.message("Hi?", chat=GROUP, private=False, thread=thread)
        await it.bridge.receive(message)
        await it.bridge.idle()
        assert it.channel.finals[-1].endswith(told)


async def test_questions_per_person_per_day(tmp_path: Path) -> None:
    write(tmp_path, "questions_per_person_per_day: 1")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        assert await ask(it) == "One."
        told = await ask(it)
        assert "00:00 (UTC)" in told
        assert "/limits" in told
        assert await ask(it, person="bo") == "Two."


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("cost_per_person_per_day_usd: 1.00", "You have used 1.00 USD here today"),
        ("cost_per_day_usd: 1.00", "a third of what this chat may use"),
        ("cost_per_month_usd: 1.00", "This chat has used 1.00 USD this month"),
        ("tokens_per_day: 10", "a third of what this chat may use"),
    ],
)
async def test_costs_and_tokens(tmp_path: Path, line: str, told: str) -> None:
    """In the bed each call costs a dollar."""
    write(tmp_path, line)
    async with bed(tmp_path, ["One."]) as it:
        assert await ask(it) == "One."
        assert told in await ask(it)
        await send(it)
        assert len(it.provider.requests) == 1


@pytest.mark.parametrize(
    "line",
    [
        "cost_per_person_per_day_usd: 0",
        "cost_per_day_usd: 0",
        "cost_per_month_usd: 0",
        "tokens_per_day: 0",
        "questions_per_person_per_day: 0",
        "everybody",
        "month",
        "day",
    ],
)
async def test_a_limit_of_nothing_promises_no_time_at_which_it_opens(
    tmp_path: Path, line: str
) -> None:
    write(tmp_path, line if ":" in line else "")
    person_usd = 0 if line == "everybody" else None
    async with bed(tmp_path, limit_usd=0 if line == "month" else 9, person_usd=person_usd) as it:
        if line == "day":
            it.services.gate.change(limit_usd=9, day_usd=0, person_usd=None)
        told = await ask(it)
        assert "answer again from" not in told
        assert re.search(r"\b0(\.00)?\b.*can (raise|change)", told), told
        await send(it)
        assert len(it.channel.finals) == 1
        assert it.provider.requests == []


async def test_the_whole_chat_meets_cost_per_day_together(tmp_path: Path) -> None:
    write(tmp_path, "cost_per_day_usd: 2.00\ncost_per_person_per_day_usd: 1.50")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        assert [await ask(it), await ask(it, person="bo")] == ["One.", "Two."]
        told = await ask(it, person="cleo")
        assert "This chat has used 2.00 USD today, and may use 2.00 USD in a day." in told
        private = await it.ask("And here?")
        assert private != told, "another chat has a budget of its own"


@pytest.mark.parametrize("line", ["cost_per_day_usd: 6.00", "tokens_per_day: 90"])
async def test_without_a_limit_of_their_own_a_person_can_use_a_third_of_a_groups_day(
    tmp_path: Path, line: str
) -> None:
    """In the bed each call costs a dollar, and 15 tokens."""
    write(tmp_path, line)
    async with bed(tmp_path, [*"1234"]) as it:
        assert [await ask(it), await ask(it)] == ["1", "2"]
        assert "a third of what this chat may use" in await ask(it)
        await ask(it, "/new")
        await send(it)
        assert len(it.provider.requests) == 2, "a new conversation gives no other share"
        assert await ask(it, person="bo") == "3", "the others have theirs"
        write(tmp_path, f"{line}\ncost_per_person_per_day_usd: 9")
        assert await ask(it) == "4", "a setting of its own comes before the share"


async def test_a_run_that_meets_its_limit_ends_legal_and_says_so(tmp_path: Path) -> None:
    write(tmp_path, "cost_per_person_per_day_usd: 2.00")
    steps = [Message("assistant", (ToolUseBlock(f"t{n}", "current_time", {}),)) for n in range(3)]
    async with bed(tmp_path, [*steps, "Too late."]) as it:
        told = await ask(it)
        assert "You have used 2.00 USD here today, and may use 2.00 USD" in told
        assert len(it.provider.requests) == 2
        write(tmp_path, "paused: no")
        await ask(it, "And now?")
        roles = [message.role for message in it.provider.requests[-1].messages]
        assert roles[-1] == "user"


def zone_at_daytime() -> str:
    """One in which no day ends while a test runs, and that is not the installation's."""
    zones = ("Asia/Kathmandu", "America/St_Johns")  # nine hours apart
    return next(zone for zone in zones if 1 <= datetime.now(ZoneInfo(zone)).hour < 22)


async def test_timezone(tmp_path: Path) -> None:
    zone = zone_at_daytime()
    write(tmp_path, f"timezone: {zone}\nquestions_per_person_per_day: 0")
    async with bed(tmp_path, []) as it:
        assert "may ask here in a day" in await ask(it)
        write(tmp_path, f"timezone: {zone}\nquestions_per_person_per_day: 1")
    call = Message("assistant", (ToolUseBlock("t", "current_time", {}),))
    async with bed(tmp_path, [call, "Late."]) as it:
        await ask(it)
        results = it.provider.requests[-1].messages[-1].tool_results
        assert zone in str(results[0].content)
        assert f"00:00 ({zone})" in await ask(it)


async def test_model(tmp_path: Path) -> None:
    write(tmp_path, "model: other")
    other = ScriptedProvider(["From the other."])
    async with bed(tmp_path, ["From the usual."], others=[chat_model(other, "other")]) as it:
        assert await ask(it) == "From the other."
        assert await it.ask("And in private?") == "From the usual."


async def test_language(tmp_path: Path) -> None:
    write(tmp_path, "language: zh")
    async with bed(tmp_path, ["您好。"]) as it:
        await ask(it)
        assert "code `zh`" in it.provider.requests[-1].system
        await send(it, "/new")
        assert it.channel.finals[-1] == it.services.texts.say("zh", "new")


async def test_instructions(tmp_path: Path) -> None:
    write(tmp_path, "instructions: In verses only.")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await ask(it)
        system = it.provider.requests[-1].system
        assert system.startswith("Be brief."), "the operator's stay"
        assert "In verses only." in system
        await it.ask("In private?")
        assert "verses" not in it.provider.requests[-1].system


async def test_conversation(tmp_path: Path) -> None:
    write(tmp_path, "conversation: one_per_person")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await ask(it, "My code is 7.")
        await ask(it, "What was said?", person="bo")
        assert "My code" not in str(it.said())


async def test_who_can_stop(tmp_path: Path) -> None:
    for who, word in (("asker_and_admins", "Only the person who asked"), ("anyone", "Stopped")):
        stall = asyncio.Event()
        folder = tmp_path / who
        write(folder, f"who_can_stop: {who}")
        async with bed(folder, ["One."], stall=stall) as it:
            await it.send("Hi", person="ana", chat=GROUP, private=False)
            await it.until(lambda it=it: it.provider.requests)
            await it.send("/cancel", person="bo", chat=GROUP, private=False)
            await it.until(lambda it=it: it.channel.finals)
            assert word in it.channel.finals[-1]
            stall.set()


@pytest.mark.parametrize(("how", "times"), [("silent", 0), ("tell_once", 1), ("tell_always", 3)])
async def test_when_limit_reached(tmp_path: Path, how: str, times: int) -> None:
    write(tmp_path, f"when_limit_reached: {how}\nquestions_per_person_per_day: 0")
    async with bed(tmp_path, []) as it:
        for _ in range(3):
            await send(it)
        assert len(it.channel.finals) == times


@pytest.mark.parametrize("window", ["day", "minute"])
async def test_a_limit_is_told_each_person_once_until_it_opens_however_late_they_ask(
    tmp_path: Path, window: str
) -> None:
    write(tmp_path, f"questions_per_person_per_{window}: 1\ntimezone: {zone_at_daytime()}")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        for person in ("ana", "bo"):
            await ask(it, person=person)
            assert "you may ask here" in await ask(it, person=person)
        for told_before in (10, 50, 80_000):  # seconds, of a window that is not over
            at = stamp(datetime.now(UTC) - timedelta(seconds=told_before))
            await it.database.write(
                lambda connection, at=at: connection.execute(
                    "UPDATE notices SET told_at = ?", (at,)
                )
            )
            await send(it)
            await send(it, person="bo")
        assert len(it.channel.finals) == 4


async def test_a_budget_over_all_chats_is_told_in_one_of_them(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two."], person_usd=1) as it:
        await ask(it)
        assert "in all your chats" in await ask(it)
        await it.send("Hi?")
        await it.bridge.idle()
        assert len(it.channel.finals) == 2
        assert await ask(it, person="bo") == "Two."


@pytest.mark.parametrize(("how", "times"), [("silent", 0), ("tell_once", 1), ("tell_always", 3)])
async def test_the_installations_budget_is_told_as_the_chat_wants_it(
    tmp_path: Path, how: str, times: int
) -> None:
    write(tmp_path, f"when_limit_reached: {how}")
    async with bed(tmp_path, ["One."], limit_usd=1) as it:
        await ask(it)
        for _ in range(3):
            await send(it)
        assert all("month's budget is used up" in text for text in it.channel.finals[1:])
        assert len(it.channel.finals) == 1 + times
        assert len(it.provider.requests) == 1
        it.services.gate.change(limit_usd=2, day_usd=None, person_usd=None)
        it.provider.steps.append("Two.")
        assert await ask(it) == "Two.", "it was raised"
        await send(it)
        assert len(it.channel.finals) == 2 + times + bool(times), "and is told again"


@pytest.mark.parametrize("line", ["paused: yes", "blocked: [41]", "topics: [12]"])
async def test_what_has_opened_is_told_again_when_it_closes_again(
    tmp_path: Path, line: str
) -> None:
    async with bed(tmp_path, ["One."]) as it:
        it.channel.capabilities = replace(it.channel.capabilities, topics=True)
        told: list[int] = []
        for text in (line, f"{line}\nlanguage: de", "", line, line.replace("41", "41, 42")):
            write(tmp_path, text)
            before = len(it.channel.finals)
            await send(it, person="41")
            told.append(len(it.channel.finals) - before)
        assert told == [1, 0, 1, 1, 0]


async def test_longest_answer_characters(tmp_path: Path) -> None:
    write(tmp_path, "longest_answer_characters: 200")
    async with bed(tmp_path, ["a" * 500]) as it:
        answer = await ask(it)
        assert answer.startswith("a" * 200 + " …")
        assert "200 characters" in answer
        assert it.channel.replies[-1].preview == "a" * 200
        assert "at most 200 characters" in it.provider.requests[-1].system


async def test_tools_off(tmp_path: Path) -> None:
    write(tmp_path, "tools_off: [current_time]")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await ask(it)
        offered = {tool.name for tool in it.provider.requests[-1].tools}
        await it.ask("In private?")
        assert {tool.name for tool in it.provider.requests[-1].tools} - offered == {"current_time"}


async def test_memory(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two.", "Three."]) as it:
        await send(it, "/remember likes tea")
        await ask(it)
        assert "likes tea" in it.provider.requests[-1].system
        write(tmp_path, "memory: no")
        await ask(it)
        request = it.provider.requests[-1]
        assert "likes tea" not in request.system
        assert not {tool.name for tool in request.tools} & {"remember", "memory_search"}
        assert "switched off here" in await ask(it, "/remember likes coffee")
        assert "switched off here" in await ask(it, "/memory")
        it.channel.admins = {"ana"}
        assert "The limits of this chat" in await ask(it, "/memory on")
        await it.ask("In private?")
        assert "remember" in {tool.name for tool in it.provider.requests[-1].tools}


async def test_who_can_teach(tmp_path: Path) -> None:
    write(tmp_path, "who_can_teach: admins")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        assert "only some people" in await ask(it, "/remember likes tea")
        await ask(it)
        tools = {tool.name for tool in it.provider.requests[-1].tools}
        assert "remember" not in tools
        assert {"forget", "memory_search"} <= tools
        it.channel.admins = {"ana"}
        assert "Remembered" in await ask(it, "/remember likes tea")
        await ask(it)
        assert "remember" in {tool.name for tool in it.provider.requests[-1].tools}
        assert "Remembered" in await it.ask("/remember likes tea"), "a private chat is one's own"


async def test_keep_days(tmp_path: Path) -> None:
    write(tmp_path, "keep_days: 30")
    async with bed(tmp_path, ["One.", "Two.", "Three."]) as it:
        await ask(it, "my word is plover")
        await send(it, "/remember likes tea")
        await it.ask("and in private, gull")
        team = scope_path(tmp_path / "memory", "group:fake:bot:team")
        (team / "2026-01-01.md").write_text("- **Ana** plover")
        assert "answer: 30 days" in await ask(it, "/privacy")
        retention = ChatRetention(it.database, tmp_path)
        now = datetime.now(UTC)
        await clean_chats(
            it.services.policies, retention, it.services.memory.sharing, now + timedelta(days=29)
        )
        assert await rows_with(it, "plover")
        await clean_chats(
            it.services.policies, retention, it.services.memory.sharing, now + timedelta(days=31)
        )
        assert await rows_with(it, "plover") == []
        assert bytes_with(tmp_path, "plover") == []
        assert await rows_with(it, "gull"), "another chat keeps what it has"
        await ask(it, "and now?")
        assert "likes tea" in it.provider.requests[-1].system


def test_every_key_has_a_test_of_its_effect() -> None:
    """A test here, or on the platforms' servers, that writes its line: no comment and no docstring."""
    here = Path(__file__)
    others = here.parents[2] / "field_cases" / "test_limit_keys.py"
    texts = [
        text.value
        for path in (here, others)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
        for text in ast.walk(node)
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        if text.value != ast.get_docstring(node, clean=False)
    ]
    written = "\n".join(texts).replace("/limits set ", "\n")
    assert [key.name for key in KEYS if not re.search(rf"(?m)^{key.name}[: ]", written)] == []
