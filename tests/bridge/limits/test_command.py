"""/limits as people use it: shown to everybody, changed by admins, and nothing that is guessed."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.limits.keys import INSTRUCTIONS, KEYS
from bridge.limits.kinds import Known
from bridge.limits.policies import PolicyLayers
from bridge.limits.reading import read
from bridge.texts import Texts
from channels.base import Address
from memory.policies import PolicyPlace
from tests.bridge.bed import RULES, Bed, bed
from tests.bridge.limits.test_effects import GROUP, write


async def limits(it: Bed, args: str = "", person: str = "boss", **where: object) -> str:
    place = {"chat": GROUP, "private": False} | where
    return await it.ask(f"/limits {args}".rstrip(), person=person, **place)


async def silent(it: Bed, args: str, person: str) -> None:
    count = len(it.channel.finals)
    await it.send(f"/limits {args}", person=person, chat=GROUP, private=False)
    await it.bridge.idle()
    assert len(it.channel.finals) == count


def group_file(folder: Path) -> Path:
    return folder / "groups" / "fake" / f"{GROUP}.yaml"


async def test_everybody_sees_use_and_values(tmp_path: Path) -> None:
    write(tmp_path, "cost_per_day_usd: 30\nquestions_per_person_per_day: 5")
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await it.ask("Hi", person="bo", chat=GROUP, private=False)
        await it.ask("Hi", chat=GROUP, private=False)
        shown = await limits(it, person="ana")
        assert "Today: 2.00 of 30.00 USD" in shown
        assert "You today: 1.00 of 10.00 USD" in shown, "a third of the group's day"
        assert "Your questions today: 1 of 5" in shown
        assert "`cost_per_day_usd: 30.00`" in shown


async def test_whom_the_configuration_names_may_set_limits_as_long_as_it_does(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = set()
        it.access.change({"fake": replace(RULES, managers=frozenset({"bo"}))})
        assert "not set → 0.50" in await limits(it, "set cost_per_day_usd 0.50", person="bo")
        assert group_file(tmp_path).read_text() == "cost_per_day_usd: 0.50\n"
        it.access.change({"fake": RULES})
        assert "Only admins" in await limits(it, "set cost_per_day_usd default", person="bo")


async def test_an_admin_sets_a_key_and_it_holds_from_the_next_message_on(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One."]) as it:
        it.channel.admins = {"boss"}
        told = await limits(it, "set questions_per_person_per_day 0")
        assert "`questions_per_person_per_day`: not set → 0" in told
        assert group_file(tmp_path).read_text() == "questions_per_person_per_day: 0\n"
        assert group_file(tmp_path).stat().st_mode & 0o077 == 0
        assert "may ask here in a day" in await it.ask("Hi", chat=GROUP, private=False)
        told = await limits(it, "set questions_per_person_per_day default")
        assert "0 → not set" in told
        assert not group_file(tmp_path).exists()
        assert await it.ask("Hi", chat=GROUP, private=False) == "One."


async def test_lines_change_only_the_keys_that_they_name(tmp_path: Path) -> None:
    write(tmp_path, "paused: no # ours\nlanguage: de\n")
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        told = await limits(it, "set\n```\nTokens per day： 50k\nlanguage: default\n```")
        assert "`tokens_per_day`: not set → 50000" in told
        assert group_file(tmp_path).read_text() == "paused: no # ours\ntokens_per_day: 50000\n"


async def test_all_faults_are_told_at_once_and_nothing_changes(tmp_path: Path) -> None:
    layers = PolicyLayers(ceilings={"cost_per_day_usd": 10_000_000})
    async with bed(tmp_path, layers=layers) as it:
        it.channel.admins = {"boss"}
        lines = "cost_per_month_usd: 0,50\ntokens_per_day:\ncost_per_day_usd: 12\nfoo: 1"
        for verb in ("set", "replace"):
            told = await limits(it, f"{verb}\n{lines}")
            assert [line.partition(":")[0] for line in told.splitlines()[1:]] == [
                "- line 1, cost_per_month_usd",
                "- line 2, tokens_per_day",
                "- line 3, cost_per_day_usd",
                "- line 4, foo",
            ]
            assert "line 3, cost_per_day_usd: 12.00 is above what you may set (10.00)" in told
        assert not group_file(tmp_path).exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("tokens per day 5", "tokens_per_day: 5"),
        ("Quiet Hours 22:00-07:00", "quiet_hours: 22:00-07:00"),
        ("answer when  mention or reply", "answer_when: mention_or_reply"),
        ("instructions Note: be brief", 'instructions: "Note: be brief"'),
        ("instructions Use #general\nfor *news*", r'instructions: "Use #general\nfor *news*"'),
        ("instructions “Be brief”", "instructions: Be brief"),
        ("instructions One. # two\ntokens per day: 5", "instructions: One.\ntokens_per_day: 5"),
        ("tokens-per-day: 5", "tokens_per_day: 5"),
        ("tokens_per_day = 5", "tokens_per_day: 5"),
    ],
)
async def test_keys_may_have_spaces_also_without_a_colon(
    tmp_path: Path, words: str, line: str
) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        await limits(it, f"set {words}")
        assert group_file(tmp_path).read_text() == f"{line}\n"


async def test_what_is_written_by_a_slip_is_told_and_takes_nothing_away(tmp_path: Path) -> None:
    path = write(tmp_path, "paused: no\n")
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        for words in ("set", "replace"):
            assert "For admins:" in await limits(it, words)
        told = await limits(it, "set paused")
        assert "paused: is empty: give yes, no, or until" in told
        assert (await limits(it, "set foo")).count("line 1") == 1
        mixed = await limits(it, "set foo 3\nbar: 2\ncost_per_day_usd: -1")
        assert [line.split(":")[0] for line in mixed.splitlines()[1:]] == [
            "- line 1, foo",
            "- line 2, bar",
            "- line 3, cost_per_day_usd",
        ]
        assert "names prove nothing" in await limits(it, "set blocked @bo")
        assert "put it in quotes" in await limits(it, "set blocked [@bo]")
        assert path.read_text() == "paused: no\n"
        assert "not set → 5" in await limits(it, "tokens per day 5"), "also without set"


async def test_faults_are_told_in_the_chats_language_and_logged_in_english(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with bed(tmp_path, language="zh") as it:
        it.channel.admins = {"boss"}
        told = await limits(it, "set\ncost_per_month_usd: 0,50\npasued: yes\nwho_can_ask: ana")
        assert "第 1 行，cost_per_month_usd：0,50 可以是 0.50 或 50：请写你要的那一个" in told
        assert "第 2 行，pasued：没有这个键，是不是 paused？" in told
        assert "第 3 行，who_can_ask：必须是：members、admins，或 id 的列表" in told
        write(tmp_path, "blocked: {42\n")
        assert "语法" in await limits(it)
    assert ".yaml:" in caplog.text
    assert "syntax: YAML cannot read this (expected" in caplog.text


def test_every_wording_of_a_fault_is_in_the_catalogue_and_none_is_left_over() -> None:
    sources = "".join(path.read_text("utf-8") for path in Path("bridge").rglob("*.py"))
    used = set(re.findall(r'wording\(\s*"((?:fault|words)_\w+)"', sources))
    wrong = "".join(re.findall(r"Wrong\([^)]*", sources))
    used |= {f"fault_{key}" for key in re.findall(r'"(\w+)"', wrong)}
    used |= {f"words_{unit}" for unit in re.findall(r'_count\([^"]+"(\w+)"', sources)}
    used |= {f"key_{key.name}" for key in KEYS}
    begins = ("fault_", "words_", "key_")
    there = {key for key in Texts.load().catalogue["en"] if key.startswith(begins)}
    assert there == used


async def test_only_admins_change_and_a_no_is_said_once_an_hour(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        assert "Only admins" in await limits(it, "set paused yes", person="ana")
        await silent(it, "set paused yes", "ana")
        await silent(it, "undo", "ana")
        it.channel.admins = set()  # demoted since
        assert "Only admins" in await limits(it, "set paused yes")
        private = await limits(it, "set paused yes", "bo", chat="bo", private=True)
        assert "only an owner" in private
        assert "paused" in await limits(it, "set paused yes", "owner")


async def test_without_an_answer_of_the_platform_nothing_changes(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = None
        assert "cannot find out right now" in await limits(it, "set paused yes")
        assert not group_file(tmp_path).exists()


async def test_a_value_is_shown_as_it_is_and_never_as_markdown(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        told = await limits(it, "set instructions be [nice](http://x.y) _now_ `a`")
        value = '"be [nice](http://x.y) _now_ `a`"'
        assert f"not set → `` {value} ``" in told
        assert f"`` instructions: {value} ``" in await limits(it)
        assert told.endswith(value + " ``")
        assert "→ mention_or_reply" in await limits(it, "set answer_when mention_or_reply")


async def test_an_editor_who_has_left_the_group_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, "editors: [41]\n")
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        assert "not set → de" in await limits(it, "set language de", person="41")
        it.channel.membership.silent = {GROUP}
        assert "cannot find out" in await limits(it, "set language fr", person="41")
        it.channel.membership.silent.clear()
        it.channel.membership.members = {GROUP: {"boss"}}
        assert "Only admins" in await limits(it, "set language fr", person="41")


async def test_undo_and_log(tmp_path: Path) -> None:
    write(tmp_path, "paused: no\n")
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        await limits(it, "set tokens_per_day 50k")
        assert "50000 → not set" in await limits(it, "undo")
        assert group_file(tmp_path).read_text() == "paused: no\n"
        log = (await limits(it, "log")).splitlines()
        assert "`fake:boss`: `tokens_per_day`: 50000 → not set" in log[1]
        assert "`fake:boss`: `tokens_per_day`: not set → 50000" in log[2]
        assert "`file`: `paused`: not set → no" in log[3]


async def test_a_change_by_file_wins_and_is_recorded(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        await limits(it, "set tokens_per_day 50k")
        write(tmp_path, "tokens_per_day: 70k\n")
        assert "no change that I could take back" in await limits(it, "undo")
        text = await limits(it, "text")
        assert "Revision 2" in text
        assert "tokens_per_day: 70k" in text
        assert "`file`: `tokens_per_day`: 50000 → 70000" in await limits(it, "log")


async def test_a_topic_has_limits_of_its_own(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Here."]) as it:
        it.channel.admins = {"boss"}
        message = it.channel.message("/limits here set paused yes", person="boss", chat=GROUP)
        topic = replace(message.address, thread="7", private=False)
        await it.bridge.receive(replace(message, address=topic))
        await it.bridge.idle()
        assert "not set → yes" in it.channel.finals[-1]
        asked = it.channel.message("Hi", chat=GROUP)
        await it.bridge.receive(replace(asked, address=topic))
        await it.bridge.idle()
        assert "paused" in it.channel.finals[-1]
        assert await it.ask("Hi", chat=GROUP, private=False) == "Here."
        assert "no topic" in await limits(it, "here set paused yes")
        refused = it.channel.message("/limits here set tokens_per_day 5", person="boss", chat=GROUP)
        await it.bridge.receive(replace(refused, address=topic))
        await it.bridge.idle()
        assert "cannot be set here" in it.channel.finals[-1]


async def test_the_files_go_with_a_chat_that_is_erased(tmp_path: Path) -> None:
    write(tmp_path, "paused: no\n")
    write(tmp_path, "paused: no\n", topic="7")
    write(tmp_path, "paused: no\n", chat="other")
    async with bed(tmp_path) as it:
        await limits(it)
        await it.services.policies.files.erase("fake", GROUP)
        left = [path.name for path in (tmp_path / "groups" / "fake").iterdir()]
        assert left == ["other.yaml"]
        assert "`paused" not in await limits(it)


async def test_no_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        for chat, topic in (("..", "x"), ("../../x", "../y"), ("a/b", "."), ("..", "")):
            path = it.services.policies.files.path(PolicyPlace("fake", chat, topic))
            folder = tmp_path / "groups" / "fake"
            assert path.resolve().is_relative_to(folder.resolve()), (chat, topic)


async def test_a_file_with_a_fault_changes_nothing_and_is_shown_as_pending(tmp_path: Path) -> None:
    write(tmp_path, "paused: yes\n")
    async with bed(tmp_path, ["One."]) as it:
        it.channel.admins = {"boss"}
        assert "paused" in await it.ask("Hi", chat=GROUP, private=False)
        write(tmp_path, "paused: maybe\ntokens_per_day: 1\n")
        shown = await limits(it)
        assert "line 1, paused: must be yes, no, or until" in shown
        assert "`paused: yes`" in shown
        refused = await limits(it, "set language de")
        assert (
            "mended in the file, or an admin writes all its lines anew by /limits replace"
            in refused
        )
    async with bed(tmp_path, ["One."]) as it:  # after a restart
        assert "`paused: yes`" in await limits(it)
        write(tmp_path, "paused: no\n")
        assert await it.ask("Hi", chat=GROUP, private=False) == "One."


@pytest.mark.parametrize(
    ("gone", "line"),
    [(Known(models=()), "model: m"), (Known(unpriced=("new",)), "cost_per_day_usd: 3")],
)
async def test_what_was_good_holds_on_when_the_configuration_takes_a_name_away(
    tmp_path: Path, gone: Known, line: str
) -> None:
    write(tmp_path, f"blocked: [41]\n{line}\n")
    place = Address("fake", "bot", GROUP)
    async with bed(tmp_path) as it:
        await it.services.policies.read(place)
        await it.bridge.idle()
    async with bed(tmp_path) as it:  # after the restart that this needs
        it.services.policies.files.know(gone)
        await it.services.policies.read(place)
        state = it.services.policies.files.state(PolicyPlace("fake", GROUP))
        assert state.values["blocked"] == {"41"}
        assert len(state.values) == 2
        assert [fault.line for fault in state.pending] == [2]
        it.channel.admins = {"boss"}
        told = await it.ask("/pause", person="boss", chat=GROUP, private=False)
        assert "not set → yes" in told
        kept = it.services.policies.files.state(PolicyPlace("fake", GROUP)).values
        assert kept == {**state.values, "paused": True}


@pytest.mark.parametrize(
    "before",
    [
        "\ufeffpaused: no",
        "paused\u00a0: no\n",
        "  paused: no\n  language: de\n",
        "{paused: no}",
        "paused: no\n...\n",
        "blocked: [42,\n43]\npaused: no\n",
        "? paused\n: no\n",
        "paused: no # ours\n",
    ],
)
async def test_whatever_can_be_read_can_be_changed(tmp_path: Path, before: str) -> None:
    path = write(tmp_path, before)
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        assert "`paused`: no → yes" in await limits(it, "set paused yes")
        after = read(path.read_bytes(), it.services.policies.files.known)
        assert after.faults == ()
        values = read(before.encode(), it.services.policies.files.known).values
        assert after.values == {**values, "paused": True}
        assert ("# ours" in path.read_text()) == ("# ours" in before)


async def test_a_topics_file_with_a_key_that_no_topic_may_have_changes_nothing(
    tmp_path: Path,
) -> None:
    write(tmp_path, "instructions: Be kind\n", topic="7")
    address = Address("fake", "bot", GROUP, "7", private=False)
    async with bed(tmp_path) as it:
        policies = it.services.policies
        await policies.read(address)
        await it.bridge.idle()
        write(tmp_path, "instructions: Bad words\nlanguage: de\n", topic="7")
        await policies.read(address)
        await it.bridge.idle()
        assert policies.of(address, "ana")[INSTRUCTIONS] == "Be kind"
    async with bed(tmp_path) as it:
        policies = it.services.policies
        await policies.read(address)
        assert policies.of(address, "ana")[INSTRUCTIONS] == "Be kind"


async def test_the_record_and_undo_follow_a_group_to_its_new_id(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        await limits(it, "set tokens_per_day 50k")
        button = it.channel.replies[-1]
        moved = it.channel.message("", person="boss", chat="new", private=False)
        await it.bridge.receive(replace(moved, addressed=False, moved_from=GROUP))
        await it.bridge.idle()
        assert "not set → 50000" in await limits(it, "log", chat="new")
        button.to = replace(button.to, chat="new")
        await it.bridge.receive(it.channel.press(button, person="boss"))
        await it.bridge.idle()
        assert "50000 → not set" in await limits(it, "log", chat="new")


async def test_a_paused_chat_makes_no_summaries_either(tmp_path: Path) -> None:
    write(tmp_path, "paused: yes\n")
    async with bed(tmp_path) as it:
        told = await it.ask("/compact", chat=GROUP, private=False)
        assert "paused" in told
        assert it.provider.requests == []


async def test_two_changes_at_once_are_two_changes_and_none_of_the_files(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss", "vice"}
        files = it.services.policies.files
        place = PolicyPlace("fake", GROUP)
        await limits(it, "set tokens_per_day 1000")
        for number in range(5):
            revision = (await files.stored(place)).revision
            await asyncio.gather(
                files.write(place, f"tokens_per_day: {number}\n", "fake:boss", revision),
                files.stored(place),
                files.write(place, f"paused: {number % 2 == 0}\n", "fake:vice", revision),
                files.stored(place),
            )
            await it.bridge.idle()
        assert "`file`" not in await limits(it, "log")
