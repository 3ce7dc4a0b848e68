"""What the journal of a reply hears, and what its sinks make of what it has kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from channels.base import Delivered, ReplyPart
from channels.errors import ChannelUnavailable, NotStored, ReplyRefused, Uncertain
from tests.contracts.journals import Diary, Process
from tests.contracts.places import (
    ALL,
    NOTE,
    PLACES,
    OpenPlace,
    Place,
    Seen,
    slack_dm,
    slack_thread,
)

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture(params=ALL, ids=lambda opened: opened.__name__)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    opened: OpenPlace = request.param
    async with opened() as one:
        yield one


@pytest.fixture(params=PLACES, ids=lambda opened: opened.__name__)
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    opened: OpenPlace = request.param
    async with opened() as one:
        yield one


def check_departures(place: Place, diary: Diary, letters: str) -> None:
    """Each new message of a part was said to leave directly before it did, and none else."""
    requests = [(place.leaves(number), number) for number in range(place.requests())]
    said = [(letters[part], at) for part, at in diary.left]
    assert said == [(part, number) for part, number in requests if part]


async def shown(chat: Place, diary: Diary) -> Seen:
    """The preview of the process before, which is known to the journal."""
    await chat.wait_for(lambda: chat.buttons)
    (preview,) = chat.seen
    await diary.knows(preview.id)
    return preview


async def test_a_part_is_said_to_leave_directly_before_it_does(place: Place) -> None:
    diary = Diary(place.requests)
    sink = place.open(diary)
    reply = place.answer(3, documents=1 if place.documents else 0)
    parts = diary.composed(await sink.compose(reply))
    assert (await sink.deliver(parts)).complete
    expected = [f"{what} {number}" for number in range(len(parts)) for what in ("leaving", "sent")]
    assert diary.heard == expected
    check_departures(place, diary, "abc.")
    assert place.letters == ("abc." if place.documents else "abc")
    if place.documents:
        stored = [part.message_id for part in diary.parts[:3]]
        assert stored == [one.id for one in place.seen[:3]]


async def test_an_edit_is_not_said_to_leave(chat: Place) -> None:
    diary = Diary(chat.requests)
    sink = chat.open(diary)
    sink.show("First words")
    preview = await shown(chat, diary)
    parts = diary.composed(await sink.compose(chat.answer(2, previewed=True)))
    assert await sink.deliver(parts) == Delivered(2, 2)
    assert diary.heard == ["sent 0", "leaving 1", "sent 1"]
    assert diary.parts[0].message_id == preview.id == chat.seen[0].id
    check_departures(chat, diary, "abc.")
    assert (chat.letters, chat.buttons) == ("ab", 0)


async def test_a_flooded_part_has_stayed_and_leaves_again(place: Place) -> None:
    diary = Diary(place.requests)
    sink = place.open(diary)
    parts = diary.composed(await sink.compose(place.answer(2)))
    place.flood("b")
    assert await sink.deliver(parts) == Delivered(2, 2)
    assert diary.heard[2:] == ["leaving 1", "stayed 1", "leaving 1", "sent 1"]
    check_departures(place, diary, "abc.")
    assert place.letters == "ab"


async def test_a_part_that_never_left_has_stayed(place: Place) -> None:
    diary = Diary(place.requests)
    sink = place.open(diary)
    parts = diary.composed(await sink.compose(place.answer(2)))
    await place.out_of_reach()
    with pytest.raises(ChannelUnavailable):
        await sink.deliver(parts)
    assert set(diary.heard) == {"leaving 0", "stayed 0"}
    assert diary.heard[-1] == "stayed 0"
    assert diary.parts == parts
    await place.within_reach()
    assert await sink.deliver(parts) == Delivered(2, 2)
    assert diary.heard[-4:] == ["leaving 0", "sent 0", "leaving 1", "sent 1"]
    assert place.letters == "ab"


async def test_a_refused_and_an_uncertain_part_have_ended(place: Place) -> None:
    diary = Diary(place.requests)
    sink = place.open(diary)
    parts = diary.composed(await sink.compose(place.answer(3)))
    place.refuse("a")
    place.lose("b")
    with pytest.raises(ReplyRefused):
        await sink.deliver(parts)
    assert diary.heard == [
        *("leaving 0", "stayed 0", "leaving 0", "refused 0"),
        *("leaving 1", "uncertain 1", "leaving 2", "sent 2"),
    ]
    check_departures(place, diary, "abc.")
    assert [part.state for part in diary.parts[:2]] == ["lost", "lost"]
    assert place.letters == "bc"


@pytest.mark.parametrize("number", [0, 1])
async def test_what_cannot_be_stored_is_not_sent_until_it_can(place: Place, number: int) -> None:
    diary = Diary(place.requests)
    sink = place.open(diary)
    parts = diary.composed(await sink.compose(place.answer(2)))
    diary.full.append(number)
    with pytest.raises(NotStored):
        await sink.deliver(parts)
    assert place.letters == "ab"[:number]
    assert await sink.deliver(parts) == Delivered(2, 2)
    assert place.letters == "ab"
    check_departures(place, diary, "abc.")


async def test_what_an_earlier_process_has_sent_is_not_sent_again(place: Place) -> None:
    diary = Diary()
    sink = place.open(diary)
    diary.composed(bodies := await sink.compose(place.answer(3)))
    await sink.deliver([ReplyPart(bodies[0])])
    parts = [diary.parts[0], ReplyPart(bodies[1], "lost"), ReplyPart(bodies[2])]
    assert parts[0].state == "sent"
    with pytest.raises(Uncertain):
        await place.open(diary, diary.resumed).deliver(parts, note=NOTE)
    assert (place.letters, place.buttons) == ("ac", 0)
    rest = [parts[0], ReplyPart(bodies[1]), ReplyPart(bodies[2], "sent", None)]
    assert await place.open(diary, diary.resumed).deliver(rest, note=NOTE) == Delivered(3, 3)
    assert (place.letters, place.buttons) == ("acb", 0)
    assert not any(one.noted for one in place.seen)


async def test_what_may_have_arrived_comes_with_a_note(place: Place) -> None:
    sink = place.open(None)
    bodies = await sink.compose(place.answer(3, documents=2 if place.documents else 0))
    parts = [ReplyPart(body, "open" if n == 0 else "again") for n, body in enumerate(bodies)]
    diary = Diary(place.requests)
    diary.composed(bodies)
    resumed = place.open(diary, diary.resumed)
    assert (await resumed.deliver(parts, note=NOTE)).complete
    assert place.letters.replace(" ", "") == ("abc.." if place.documents else "abc")
    notes = [one.noted for one in place.seen if one.part or one.noted]
    assert notes[0] is False
    assert sum(notes) == len(parts) - 1
    for before, one in zip(place.seen, place.seen[1:], strict=False):
        if one.part:
            assert one.noted or (before.noted and not before.part), one.text[:40]


@pytest.mark.parametrize("documents", [1, 2])
async def test_documents_alone_stay_when_they_are_gone_on_with(chat: Place, documents: int) -> None:
    diary = Diary()
    sink = chat.open(diary)
    sink.show("First words")
    await shown(chat, diary)
    bodies = diary.composed(await sink.compose(chat.answer(0, documents=documents)))
    sink.halt()  # this process goes no further
    sent = [ReplyPart(part.body, "open") for part in bodies]
    other = chat.open(diary, diary.resumed)
    assert (await other.deliver(sent)).complete
    ids = [one.id for one in chat.seen]
    again = [ReplyPart(p.body, "sent", i) for p, i in zip(bodies, ids, strict=True)]
    assert (await chat.open(diary, diary.resumed).deliver(again)).complete
    assert (chat.letters, len(chat.seen)) == ("." * documents, documents)


async def test_a_single_part_stays_when_its_end_was_stored(chat: Place) -> None:
    diary = Diary()
    sink = chat.open(diary)
    sink.show("First words")
    await shown(chat, diary)
    (part,) = diary.composed(await sink.compose(chat.answer(1, previewed=True)))
    assert await sink.deliver([part]) == Delivered(1, 1)
    stored = ReplyPart(part.body, "sent", diary.last_id)
    assert await chat.open(diary, diary.resumed).deliver([stored]) == Delivered(1, 1)
    assert (chat.letters, chat.buttons) == ("a", 0)


async def test_a_reply_is_composed_the_same_each_time_and_can_be_stored(place: Place) -> None:
    reply = place.answer(3, documents=1 if place.documents else 0)
    bodies = await place.open(None).compose(reply)
    assert await place.open(None).compose(reply) == bodies
    assert json.loads(json.dumps(bodies)) == list(bodies)
    for body in bodies:
        assert isinstance(json.loads(body), dict)
        assert body.encode().decode() == body
    sink = place.open(None)
    await sink.deliver([ReplyPart(body) for body in json.loads(json.dumps(bodies))])
    assert place.letters == ("abc." if place.documents else "abc")


@pytest.mark.parametrize("known", [True, False])
async def test_a_preview_that_was_taken_away_is_begun_anew(chat: Place, known: bool) -> None:
    diary = Diary()
    sink = chat.open(diary)
    sink.show("First words")
    await shown(chat, diary)
    await sink.discard()
    if not known:
        diary.preview_id = None
    other = chat.open(diary, diary.resumed)
    other.show("Words of another process")
    preview = await shown(chat, diary)
    assert preview.text.startswith("Words of another process")
    other.show(" and more")
    await chat.wait_for(lambda: "and more" in chat.seen[0].text)
    assert (await other.finish(chat.answer(1, previewed=True))).complete
    assert (chat.letters, chat.buttons, len(chat.seen)) == ("a", 0, 1)
    assert chat.seen[0].id == preview.id


async def test_no_preview_is_sent_before_its_journal_knows_of_it(chat: Place) -> None:
    diary = Diary(chat.requests)
    diary.unknown = 2
    sink = chat.open(diary)
    sink.show("First words")
    await shown(chat, diary)
    assert diary.unknown == 0
    assert diary.shown_at is not None
    assert diary.shown_at < chat.requests()
    assert len(chat.seen) == 1


@pytest.mark.parametrize("opened", [slack_dm, slack_thread], ids=lambda opened: opened.__name__)
async def test_a_preview_that_is_found_by_its_button_is_kept_before_the_button_goes(
    opened: OpenPlace,
) -> None:
    async with opened() as chat:
        diary = Diary()
        chat.open(diary).show("First words")
        preview = await shown(chat, diary)
        unknown = Diary()
        other = chat.open(unknown, unknown.resumed)
        parts = unknown.composed(await other.compose(chat.answer(1, previewed=True)))
        assert unknown.preview_id == preview.id
        await other.deliver(parts)
        assert len(chat.seen) == 1


class Dying(Diary):
    """Its process has no time to keep the preview."""

    async def previewed(self, message_id: str) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("shown_again", [True, False])
async def test_a_preview_that_was_begun_anew_and_not_kept_leaves_no_button(
    chat: Place, shown_again: bool
) -> None:
    diary = Diary()
    sink = chat.open(diary)
    sink.show("First words")
    await shown(chat, diary)
    await sink.discard()

    async def dies_before_it_is_kept() -> None:
        second = chat.open(Dying(), diary.resumed)
        second.show("Second words")
        await asyncio.Event().wait()

    process = Process(dies_before_it_is_kept())
    await chat.wait_for(lambda: chat.seen)
    await process.kill()
    kept = diary.revived()
    third = chat.open(kept, kept.resumed)
    if shown_again:
        third.show("Third words")
        await chat.wait_for(lambda: any("Third words" in one.text for one in chat.seen))
    assert (await third.finish(chat.answer(1, previewed=True))).complete
    await chat.wait_for(lambda: chat.buttons == 0)
    assert chat.letters == "a"


async def test_a_preview_of_an_earlier_process_is_gone_on_with(chat: Place) -> None:
    diary = Diary()
    chat.open(diary).show("First words")
    await shown(chat, diary)
    other = chat.open(diary, diary.resumed)
    other.show("Other words")
    await chat.wait_for(lambda: chat.seen[0].text.startswith("Other words"))
    assert len(chat.seen) == 1
    assert (await other.finish(chat.answer(1, previewed=True))).complete
    assert (chat.letters, chat.buttons, len(chat.seen)) == ("a", 0, 1)


async def test_a_preview_that_somebody_deletes_twice_is_given_up(chat: Place) -> None:
    diary = Diary()
    chat.open(diary).show("First words")
    await shown(chat, diary)
    chat.delete_all()
    other = chat.open(diary, diary.resumed)
    other.show("Other words")
    await shown(chat, diary)
    chat.delete_all()
    before = chat.requests()
    other.show(" and more")
    await chat.wait_for(lambda: chat.requests() > before)
    other.show(" and more still")
    assert (await other.finish(chat.answer(1, previewed=True))).complete
    assert [one.part for one in chat.seen] == ["a"]


@pytest.mark.parametrize("halted", [True, False])
async def test_a_reply_is_tidy_when_its_button_is_gone(chat: Place, halted: bool) -> None:
    diary = Diary()
    sink = chat.open(diary)
    sink.show("First words")
    await shown(chat, diary)
    parts = diary.composed(await sink.compose(chat.answer(2, previewed=True)))
    if halted:
        sink.halt()
    await sink.deliver(parts)
    await sink.tidied()
    assert sink.tidy
    assert chat.buttons == 0


@pytest.mark.parametrize("sent", [0, 1])
async def test_a_halted_reply_of_an_earlier_process_is_tidied_up(chat: Place, sent: int) -> None:
    diary = Diary()
    sink = chat.open(diary)
    sink.show("First words")
    await shown(chat, diary)
    parts = diary.composed(await sink.compose(chat.answer(2, previewed=True)))
    if sent:
        diary.full.append(1)  # it goes no further
        with pytest.raises(NotStored):
            await sink.deliver(parts)
        assert chat.letters == "a"
    assert chat.buttons == 1
    before = [(one.id, one.part) for one in chat.seen]
    other = chat.open(diary, diary.resumed)
    other.halt()
    assert await other.deliver(diary.parts.copy(), note=NOTE) == Delivered(sent, 2)
    await chat.wait_for(lambda: chat.buttons == 0)
    assert [(one.id, one.part) for one in chat.seen] == before
    if not sent:
        assert chat.seen[0].text.strip() == "First words"
