"""Short commands for single keys: rights, record and Undo as of `/limits set`; what follows at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from agent.testing import ScriptedProvider
from bridge.limits.chat_commands import span_in
from bridge.operation.policy_changes import ANNOUNCE
from bridge.scheduler import Due, Scheduler
from channels.base import Sender
from memory.policies import PolicyPlace
from tests.bridge.bed import RULES, Bed, bed, chat_model
from tests.bridge.limits.test_effects import GROUP, ask, write


def lines(folder: Path) -> str:
    path = folder / "groups" / "fake" / f"{GROUP}.yaml"
    return path.read_text() if path.exists() else ""


async def answering(it: Bed, text: str, person: str, about: str) -> str:
    """A command as an answer to a message of somebody."""
    message = it.channel.message(text, person=person, chat=GROUP, private=False)
    count = len(it.channel.finals)
    await it.bridge.receive(replace(message, reply_to_person=Sender(about, about.title())))
    await it.bridge.idle()
    assert len(it.channel.finals) == count + 1
    return it.channel.finals[-1]


async def test_a_pause_ends_what_runs_and_what_waits_and_nothing_is_answered_later(
    tmp_path: Path,
) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["One.", "Two."], stall=stall) as it:
        it.channel.admins = {"boss"}
        await it.send("First", person="ana", chat=GROUP, private=False)
        await it.until(lambda: it.provider.requests)
        await it.send("Second", person="bo", chat=GROUP, private=False)
        await it.send("/pause", person="ana", chat=GROUP, private=False)
        await it.until(lambda: any("Only admins" in final for final in it.channel.finals))
        await it.send("/pause 2h", person="boss", chat=GROUP, private=False)
        await it.bridge.idle()
        assert lines(tmp_path).startswith("paused: until 20")
        assert any("Stopped" in final for final in it.channel.finals)
        assert await it.services.inbox.open_sessions(["fake"]) == []
        assert "I answer again from" in await ask(it, "Third", person="cleo")
        stall.set()
        await ask(it, "/resume", person="boss")
        assert lines(tmp_path) == "paused: no\n"
        assert await ask(it, "Fourth") == "Two."
        assert len(it.provider.requests) == 2


async def test_a_pause_of_the_chat_is_one_of_its_topics_and_a_resume_there_ends_both(
    tmp_path: Path,
) -> None:
    write(tmp_path, "paused: no", topic="7")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        it.channel.admins = {"boss"}

        async def in_topic(text: str, topic: str | None = "7") -> str:
            message = it.channel.message(text, person="boss", chat=GROUP, private=False)
            await it.bridge.receive(
                replace(message, address=replace(message.address, thread=topic))
            )
            await it.bridge.idle()
            return it.channel.finals[-1]

        assert await in_topic("Hi") == "One."
        assert "for the whole chat" in await in_topic("/pause")
        assert lines(tmp_path) == "paused: yes\n"
        assert "I am paused here" in await in_topic("Hi?")
        write(tmp_path, "paused: yes", topic="7")
        told = await in_topic("/resume")
        assert told.count("yes → no") == 2
        assert "for this topic alone" in told
        assert "for the whole chat" in told
        assert await in_topic("Hi!") == "Two."
        again = await in_topic("/pause", None)
        assert again.startswith("Changed (revision"), "there are no topics to be told apart"
        assert "I am paused here" in await in_topic("Hi?")


async def test_a_pause_by_file_ends_what_runs(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["One."], stall=stall) as it:
        await it.send("First", person="ana", chat=GROUP, private=False)
        await it.until(lambda: it.provider.requests)
        write(tmp_path, "paused: yes")
        await it.services.policies.files.read(PolicyPlace("fake", GROUP))
        await it.until(lambda: any("Stopped" in final for final in it.channel.finals))
        await it.bridge.idle()
        assert await it.services.inbox.open_sessions(["fake"]) == []


async def test_block_and_unblock_as_an_answer(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two."]) as it:
        it.channel.admins = {"boss"}
        write(tmp_path, "blocked: [cleo3]")
        assert "Only admins" in await answering(it, "/block", "ana1", "bo2")
        await answering(it, "/block 1d", "boss", "bo2")
        assert lines(tmp_path).startswith("blocked: [bo2 until 20")
        assert lines(tmp_path).endswith("UTC, cleo3]\n")
        assert "cannot ask" in await ask(it, person="bo2")
        before = lines(tmp_path)
        await answering(it, "/block 5x", "boss", "bo2")
        assert lines(tmp_path) == before, "a slip is not for ever"
        await answering(it, "/unblock", "boss", "bo2")
        assert lines(tmp_path) == "blocked: [cleo3]\n"
        assert await ask(it, person="bo2") == "One."
        assert "cannot be blocked" in await answering(it, "/block", "boss", "owner")
        assert "Reply to a message" in await ask(it, "/block", person="boss")
        write(tmp_path, "blocked: [bo2 until 2020-01-01 00:00 UTC]")
        assert await ask(it, person="bo2") == "Two.", "it is over"


@pytest.mark.parametrize(
    ("words", "minutes"), [("2h", 120), ("2 h", 120), ("1h30m", 90), ("1d 5", 1440), ("90 min", 90)]
)
def test_spans_are_read_as_they_are_typed(words: str, minutes: int) -> None:
    assert span_in(words)[0] == timedelta(minutes=minutes)


async def test_a_span_with_a_slip_is_nobodys_id(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        for slip in ("5x", "2hours", "Bo"):
            assert "write their id" in await ask(it, f"/block {slip}", person="boss")
        assert lines(tmp_path) == ""


async def test_model_by_a_button(tmp_path: Path) -> None:
    other = ScriptedProvider(["From the other."])
    async with bed(tmp_path, ["From the usual."], others=[chat_model(other, "other")]) as it:
        it.channel.admins = {"boss"}
        await ask(it, "/model")
        assert it.channel.replies[-1].buttons == (), "members see which, and choose none"
        await ask(it, "/model", person="boss")
        offered = it.channel.replies[-1]
        assert [button.label for button in offered.buttons] == ["m", "other"]
        press = it.channel.press(offered, person="ana", button=1)
        await it.bridge.receive(press)
        await it.bridge.idle()
        assert "Only admins" in it.channel.notices[-1]
        await it.bridge.receive(it.channel.press(offered, person="boss", button=1))
        await it.bridge.idle()
        assert lines(tmp_path) == "model: other\n"
        assert await ask(it) == "From the other."
        assert "is no model of this bot" in await it.ask("/model nothing")
        assert "→ other" in await it.ask("/model other"), "in private everybody chooses"


async def test_what_the_chat_has_not_heard_of_is_announced_in_one_silent_line(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["One."]) as it:
        await ask(it)
        write(tmp_path, "instructions: In verses.\nlanguage: de")
        await it.services.policies.files.read(PolicyPlace("fake", GROUP))
        await it.bridge.idle()
        (told,) = it.channel.finals[1:]
        assert "`instructions`: not set → In verses." in told
        assert "`language`" not in told
        assert it.channel.replies[-1].silent
        it.channel.admins = {"boss"}
        count = len(it.channel.finals)
        await ask(it, "/limits set instructions In prose.", person="boss")
        assert len(it.channel.finals) == count + 1, "the answer itself tells it"


class _Once:
    """Of the scheduler, what an announcement asks for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, datetime, str]] = []

    async def once(self, kind: str, due_at: datetime, scope: str = "") -> None:
        self.asked.append((kind, due_at, scope))


async def test_what_changes_in_quiet_hours_is_announced_after_them(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    quiet = f"quiet_hours: {now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=2):%H:%M}"
    async with bed(tmp_path, ["One."]) as it:
        clock = _Once()
        it.bridge.policy_changes.bind(cast("Scheduler", clock))
        await ask(it)
        for text in (f"{quiet}\nmemory: off", f"{quiet}\nmemory: off\nkeep_days: 9"):
            write(tmp_path, text)
            await it.services.policies.files.read(PolicyPlace("fake", GROUP))
            await it.bridge.idle()
        assert it.channel.finals == ["One."], "nobody is woken"
        (kind, at, scope), _ = clock.asked
        assert (kind, f"{at:%H:%M}") == (ANNOUNCE, quiet[-5:])
        write(tmp_path, "memory: off\nkeep_days: 9  # the hours are over")
        await it.bridge.policy_changes.by_the_clock(Due(kind, scope, None, at, at))
        (told,) = it.channel.finals[1:]
        assert "`memory`: not set → no" in told
        assert "`keep_days`: not set → 9" in told
        assert it.channel.replies[-1].silent


async def test_a_pause_and_a_block_wait_for_nobody_who_has_to_mend_the_file(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, "language: en\n")
    async with bed(tmp_path, ["One."]) as it:
        it.channel.admins = {"boss"}
        assert await ask(it) == "One."
        path.write_text("langage: de\ntopics: [1\n")
        for command in ("/pause", "/block 41"):
            told = await it.ask(command, person="boss", chat=GROUP, private=False)
            assert "Changed" in told
        assert "paused" in await ask(it)
        assert path.read_text() == "langage: de\ntopics: [1\npaused: yes\nblocked: [41]\n"
    async with bed(tmp_path, ["Two."]) as it:  # after a restart
        it.channel.admins = {"boss"}
        shown = await it.ask("/limits", chat=GROUP, private=False)
        for line in ("`language: en`", "`paused: yes`", "`blocked: [41]`", "line 2, syntax"):
            assert line in shown
        path.write_text(path.read_text().replace("langage: de\ntopics: [1\n", "language: de\n"))
        await it.ask("/resume", person="boss", chat=GROUP, private=False)
        assert path.read_text() == "language: de\npaused: no\nblocked: [41]\n"


async def test_the_groups_own_id_is_that_of_all_anonymous_admins_and_of_nobody(
    tmp_path: Path,
) -> None:
    group = "-100500"
    async with bed(tmp_path) as it:
        it.access.change({"fake": replace(RULES, allowed=frozenset({group}))})
        it.channel.admins = {"boss"}
        message = it.channel.message("/block", person="boss", chat=group, private=False)
        await it.bridge.receive(replace(message, reply_to_person=Sender(group, "Team")))
        await it.bridge.idle()
        assert f"blocked: {group} stands for many people" in it.channel.finals[-1]
        for line in (f"who_can_ask: [{group}]", f"editors: [{group}]", f"blocked: [41, {group}]"):
            command = f"/limits set {line}"
            told = await it.ask(command, person="boss", chat=group, private=False)
            assert "stands for many people" in told
        assert not (tmp_path / "groups" / "fake" / f"{group}.yaml").exists()
