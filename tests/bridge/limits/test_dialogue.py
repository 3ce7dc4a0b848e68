"""/limits by buttons: who may press, on which revision, and what a reply means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bridge.limits.keys import KEYS
from bridge.limits.kinds import Known
from bridge.limits.menu import PRESETS, groups, offers, preset
from bridge.limits.policies import PolicyLayers
from bridge.limits.reading import read
from channels.base import Attachment
from channels.testing import FakeReply
from tests.bridge.bed import Bed, bed
from tests.bridge.limits.test_command import group_file, limits
from tests.bridge.limits.test_effects import GROUP, write

COSTLY = PolicyLayers(ceilings={"cost_per_day_usd": 5_000_000})


def labels(reply: FakeReply) -> list[str]:
    return [button.label for button in reply.buttons]


async def opened(it: Bed, person: str = "boss") -> FakeReply:
    it.channel.admins = {"boss", "vice"}
    await limits(it, person=person)
    return it.channel.replies[-1]


async def press(it: Bed, reply: FakeReply, label: str, person: str = "boss") -> str:
    """Press a button; the notice, blank where the message itself has changed."""
    count = len(it.channel.notices)
    number = labels(reply).index(label)
    await it.bridge.receive(it.channel.press(reply, person=person, button=number))
    await it.until(lambda: len(it.channel.notices) > count)
    await it.bridge.idle()
    return it.channel.notices[-1]


async def walk(it: Bed, reply: FakeReply, *path: str) -> str:
    for label in path:
        assert await press(it, reply, label) == ""
    assert reply.final is not None
    return reply.final


async def answered(it: Bed, reply: FakeReply, text: str, person: str = "boss") -> FakeReply:
    count = len(it.channel.finals)
    await it.bridge.receive(it.channel.answer(reply, text, person=person))
    await it.until(lambda: len(it.channel.finals) > count)
    await it.bridge.idle()
    return it.channel.replies[-1]


async def test_a_value_is_chosen_shown_before_and_after_applied_and_undone(tmp_path: Path) -> None:
    write(tmp_path, "cost_per_day_usd: 1.00 # ours\n")
    async with bed(tmp_path, layers=COSTLY) as it:
        reply = await opened(it)
        assert labels(reply)[:4] == ["Who", "Questions", "Costs", "Answers"]
        shown = await walk(it, reply, "Costs", "cost_per_day_usd")
        assert "cost_per_day_usd: 1.00" in shown
        assert "allows: 5.00" in shown
        assert labels(reply) == ["0.10", "0.50", "1.00", "3.00", "Other…", "Remove", "Back"]
        assert "1.00 → 3.00" in await walk(it, reply, "3.00")
        assert group_file(tmp_path).read_text() == "cost_per_day_usd: 1.00 # ours\n"
        assert "Changed" in await walk(it, reply, "Apply")
        assert group_file(tmp_path).read_text() == "cost_per_day_usd: 3.00 # ours\n"
        assert labels(reply) == ["Undo"]
        assert "3.00 → 1.00" in await walk(it, reply, "Undo")
        assert group_file(tmp_path).read_text() == "cost_per_day_usd: 1.00 # ours\n"


async def test_an_undo_never_writes_over_a_faulty_file_of_the_operators(tmp_path: Path) -> None:
    path = write(tmp_path, "language: de\n")
    async with bed(tmp_path) as it:
        reply = await opened(it)
        await walk(it, reply, "Who", "paused", "yes", "Apply")
        good, faulty = path.read_text(), "langage: fr\n"
        path.write_text(faulty)
        assert "line 1, langage: unknown key" in await limits(it, "undo")
        assert await press(it, reply, "Undo") == ""
        assert "mended in the file" in it.channel.finals[-1]
        assert path.read_text() == faulty
        path.write_text(good)
        assert "yes → not set" in await walk(it, reply, "Undo")
        assert path.read_text() == "language: de\n"


async def test_nothing_is_applied_twice_or_after_discard(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        reply = await opened(it)
        await walk(it, reply, "Who", "paused", "yes")
        old = replace(reply)  # as another client still shows it
        assert "Nothing is changed" in await walk(it, reply, "Discard")
        assert reply.buttons == ()
        assert "expired" in await press(it, old, "Apply")
        assert not group_file(tmp_path).exists()


async def test_only_who_began_it_goes_on_and_each_write_asks_the_platform_anew(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        reply = await opened(it)
        assert "belong to" in await press(it, reply, "Who", person="vice")
        assert "Who" in labels(reply)
        await walk(it, reply, "Who", "paused", "yes")
        it.channel.admins = {"vice"}  # demoted since
        assert "Only admins" in await press(it, reply, "Apply")
        it.channel.admins = None  # the platform does not answer
        assert "cannot find out" in await press(it, reply, "Apply")
        assert not group_file(tmp_path).exists()
        it.channel.admins = {"boss"}
        await walk(it, reply, "Apply")
        assert group_file(tmp_path).read_text() == "paused: yes\n"
        it.channel.admins = {"vice"}
        assert "Only admins" in await press(it, reply, "Undo")
        assert await press(it, reply, "Undo", person="vice") == ""
        assert not group_file(tmp_path).exists()


async def test_members_and_an_anonymous_admin_get_no_buttons(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        assert (await opened(it, "ana")).buttons == ()
        it.channel.admins = {GROUP}
        await limits(it, person=GROUP)
        assert it.channel.replies[-1].buttons == ()
        assert "not set → yes" in await limits(it, "set paused yes", GROUP)


async def test_on_an_older_revision_the_difference_is_told_and_it_can_be_gone_on_with(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        reply = await opened(it)
        await walk(it, reply, "Who", "paused", "yes")
        await limits(it, "set language de", "vice")
        told = await walk(it, reply, "Apply")
        assert "in the meantime" in told
        assert "`language`: not set → de" in told
        assert group_file(tmp_path).read_text() == "language: de\n"
        await walk(it, reply, "Back", "Who", "paused", "yes", "Apply")
        assert group_file(tmp_path).read_text() == "language: de\npaused: yes\n"
        write(tmp_path, "paused: no\n")  # the operator, by file
        assert await press(it, reply, "Undo") == ""
        assert "in the meantime" in it.channel.finals[-1]
        assert "`paused`: yes → no" in it.channel.finals[-1], "with the whole difference"


async def test_another_value_is_typed_as_a_reply(tmp_path: Path) -> None:
    async with bed(tmp_path, ["No number."]) as it:
        reply = await opened(it)
        asked = await walk(it, reply, "Questions", "questions_per_person_per_day", "Other…")
        assert "Reply to this message" in asked
        by_another = it.channel.answer(reply, "12", person="ana")
        await it.bridge.receive(by_another)
        await it.bridge.idle()
        assert it.channel.finals[-1] == "No number.", "somebody else's reply is a question"
        faulty = await answered(it, reply, "0,50")
        assert "0,50 can mean" in (faulty.final or "")
        proposal = await answered(it, reply, "12")
        assert "not set → 12" in (proposal.final or "")
        await walk(it, proposal, "Apply")
        assert group_file(tmp_path).read_text() == "questions_per_person_per_day: 12\n"
        assert len(it.provider.requests) == 1


async def test_another_reply_to_the_same_message_is_another_value(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        reply = await opened(it)
        await walk(it, reply, "Questions", "questions_per_person_per_day", "Other…")
        first = await answered(it, reply, "12")
        assert "0,50 can mean" in ((await answered(it, reply, "0,50")).final or "")
        second = await answered(it, reply, "15")
        assert "not set → 15" in (second.final or "")
        assert await press(it, first, "Apply"), "what it says is not what would be applied"
        assert not group_file(tmp_path).exists()
        assert await press(it, second, "Apply") == ""
        assert group_file(tmp_path).read_text() == "questions_per_person_per_day: 15\n"
        assert it.provider.requests == []


async def test_what_has_no_room_in_the_messages_place_is_shown_whole_in_another(
    tmp_path: Path,
) -> None:
    old, new = "a" * 2_000, "b" * 2_000
    write(tmp_path, f"instructions: {old}\n")
    async with bed(tmp_path) as it:
        reply = await opened(it)
        await walk(it, reply, "Answers", "instructions", "Other…")
        proposal = await answered(it, reply, new)
        steps = (("Apply", f"{old} → {new}"), ("Undo", f"{new} → {old}"))
        for number, (label, done) in enumerate(steps, start=1):
            assert await press(it, proposal, label) == ""
            assert len(it.channel.spent) == number, "it cannot be pressed twice"
            proposal = it.channel.replies[-1]
            assert done in (proposal.final or "")
            assert proposal.silent
        assert group_file(tmp_path).read_text() == f"instructions: {old}\n"


async def test_lines_are_sent_as_a_reply_to_the_text(tmp_path: Path) -> None:
    write(tmp_path, "paused: no\nlanguage: de\n")
    async with bed(tmp_path) as it:
        reply = await opened(it)
        shown = await walk(it, reply, "As text")
        assert "Revision 1" in shown
        assert "```yaml\npaused: no\nlanguage: de\n```" in shown
        by_another = await answered(it, reply, "tokens_per_day: 5", person="vice")
        assert "belong to" in (by_another.final or "")
        proposal = await answered(it, reply, "Tokens per day： 50k\nlanguage: default")
        assert "`language`: de → not set" in (proposal.final or "")
        await walk(it, proposal, "Apply")
        assert group_file(tmp_path).read_text() == "paused: no\ntokens_per_day: 50000\n"


async def test_a_file_that_fits_into_no_message_is_changed_by_lines_all_the_same(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, f"paused: no\n# {'x' * 7_000}\n")
    async with bed(tmp_path) as it:
        reply = await opened(it)
        shown = await walk(it, reply, "As text")
        assert "/limits text shows them" in shown
        assert len(shown) < 1_000
        await walk(it, await answered(it, reply, "language: de"), "Apply")
        assert path.read_text().endswith("x\nlanguage: de\n")


async def test_it_goes_on_after_a_restart_and_ends_after_ten_minutes(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        reply = await opened(it)
        await walk(it, reply, "Who", "paused", "yes")
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        it.channel.replies.append(reply)
        reply.channel = it.channel
        assert "Changed" in await walk(it, reply, "Apply")
        later = await opened(it)
        await it.database.write(
            lambda connection: connection.execute("UPDATE dialogues SET until = '2026-01-01'")
        )
        assert "expired" in await press(it, later, "Who")


async def test_it_goes_on_in_private_about_the_same_group(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        reply = await opened(it)
        assert "private chat" in await walk(it, reply, "Edit in private")
        private = it.channel.replies[-1]
        assert (private.to.chat, private.to.private) == ("boss", True)
        await walk(it, private, "Who", "paused", "yes", "Apply")
        assert group_file(tmp_path).read_text() == "paused: yes\n"
        await walk(it, private, "Undo")
        assert not group_file(tmp_path).exists()


async def test_in_private_it_follows_the_group_to_its_new_id(tmp_path: Path) -> None:
    old = write(tmp_path, "language: de\n")
    async with bed(tmp_path) as it:
        await walk(it, await opened(it), "Edit in private")
        private = it.channel.replies[-1]
        await walk(it, private, "Who", "paused", "yes")
        moved = it.channel.message("", person="boss", chat="new", private=False)
        await it.bridge.receive(replace(moved, addressed=False, moved_from=GROUP))
        await it.bridge.idle()
        assert "not set → yes" in await walk(it, private, "Apply")
        new = old.with_name("new.yaml")
        assert new.read_text() == "language: de\npaused: yes\n"
        assert "yes → not set" in await walk(it, private, "Undo")
        assert new.read_text() == "language: de\n"
        assert not old.exists()
        assert (await limits(it, "log", chat="new")).count("file") == 1, "none but the first"


async def test_a_topic_of_its_own(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        message = it.channel.message("/limits here", person="boss", chat=GROUP)
        topic = replace(message.address, thread="7", private=False)
        await it.bridge.receive(replace(message, address=topic))
        await it.bridge.idle()
        reply = it.channel.replies[-1]
        assert labels(reply) == ["Who", "Answers", "As text", "Edit in private"]
        await walk(it, reply, "Who", "paused", "yes", "Apply")
        assert (tmp_path / "groups" / "fake" / GROUP / "7.yaml").read_text() == "paused: yes\n"


async def test_a_preset_stays_below_the_ceilings(tmp_path: Path) -> None:
    async with bed(tmp_path, layers=COSTLY) as it:
        reply = await opened(it)
        shown = await walk(it, reply, "Presets")
        assert "cost_per_day_usd: 10.00" not in shown
        assert "not set → 5.00" in await walk(it, reply, "Busy group")
        await walk(it, reply, "Apply")
        assert "cost_per_day_usd: 5.00\n" in group_file(tmp_path).read_text()


@pytest.mark.parametrize("known", [Known(("a", "b")), Known(unpriced=("x",))])
def test_all_that_is_offered_can_be_set(known: Known) -> None:
    for key in KEYS:
        for value in offers(key, known, {}):
            assert read(f"{key.name}: {value}".encode(), known).faults == ()
    for name in PRESETS:
        assert read(preset(name, known, {}).encode(), known).faults == ()


@pytest.mark.parametrize("topic", [True, False])
def test_each_key_is_in_one_group(topic: bool) -> None:
    found = [key for keys in groups(topic=topic).values() for key in keys]
    assert sorted(key.name for key in found) == sorted(
        key.name for key in KEYS if key.topic or not topic
    )


async def test_a_file_is_sent_as_a_reply_to_the_text(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        reply = await opened(it)
        await walk(it, reply, "As text")
        it.channel.files["f1"] = b"\xef\xbb\xbflanguage: de\ntokens_per_day: 5\n"
        file = Attachment("document", "f1", "Limits.YAML", "application/yaml")
        message = it.channel.answer(reply, "", person="boss")
        await it.bridge.receive(replace(message, attachments=(file,)))
        await it.bridge.idle()
        proposal = it.channel.replies[-1]
        assert "`tokens_per_day`: not set → 5" in (proposal.final or "")
        await walk(it, proposal, "Apply")
        assert group_file(tmp_path).read_text() == "language: de\ntokens_per_day: 5\n"


async def test_replace_leaves_these_lines_and_no_others(tmp_path: Path) -> None:
    write(tmp_path, "language: de\npaused: no\n")
    async with bed(tmp_path) as it:
        it.channel.admins = {"boss"}
        told = await limits(it, "replace\ntokens_per_day: 50k")
        assert "`language`: de → not set" in told
        assert group_file(tmp_path).read_text() == "tokens_per_day: 50k\n"
        assert "tokens_per_day: is empty" in await limits(it, "replace\ntokens_per_day:")
