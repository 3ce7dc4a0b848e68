"""A process that dies between any two requests of a reply, and another that goes on with it."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from channels.base import OutboundReply, ReplySink
from tests.contracts.journals import Diary, Process
from tests.contracts.places import NOTE, PLACES, OpenPlace, Place

pytestmark = pytest.mark.usefixtures("impatient")

MOST_REQUESTS = 40
BARE = "…"  # a preview that died before its id was stored, on a platform without search


async def answer(
    chat: Place, sink: ReplySink, diary: Diary, reply: OutboundReply, previewed: bool
) -> None:
    """What the bridge does; a reply that is stored is not made again."""
    if not diary.parts:
        if previewed:
            sink.show("First words")
            await chat.wait_for(lambda: chat.buttons)
        diary.composed(await sink.compose(reply))
    await sink.deliver(diary.parts.copy(), note=NOTE)


async def die_at(
    number: int, opened: OpenPlace, reply_of: tuple[int, int], *, previewed: bool, acted: bool
) -> bool:
    """Whether there was such a request; then the chat is as it should be at the end."""
    async with opened() as chat:
        reply = chat.answer(*reply_of, previewed=previewed)
        diary = Diary(chat.requests)
        sinks: list[ReplySink] = []

        async def first() -> None:
            sinks.append(chat.open(diary))
            await answer(chat, sinks[0], diary, reply, previewed)

        cut = chat.cut(number, acted=acted)
        process = Process(first())
        process.task.add_done_callback(lambda _: chat.changed())
        await chat.wait_for(lambda: cut() or process.task.done())
        if not cut():
            await process.task
            return False
        diary.closed = True
        sinks[0].halt()  # nothing of it begins any more
        await process.kill()

        kept = diary.revived()
        known = [part.state == "again" for part in kept.parts]
        other = chat.open(kept, kept.resumed)
        await answer(chat, other, kept, reply, previewed)
        await chat.wait_for(lambda: chat.buttons == 0)
        check(chat, known, "abcdefgh"[: reply_of[0]] + "." * reply_of[1])
        return True


def check(chat: Place, may_be_twice: list[bool], letters: str) -> None:
    """Each part stands there once; where it may have been on its way twice, and then with the note.
    Nothing is left of a preview but a sign that there will be more."""
    seen = chat.seen
    counts = Counter(one.part for one in seen if one.part)
    assert set(counts) == set(letters)
    texts = letters.replace(".", "")
    for number, letter in enumerate(texts):
        twice = number < len(may_be_twice) and may_be_twice[number]
        assert counts[letter] == 1 or (twice and counts[letter] == 2), (letter, counts)
        copies = [one for one in seen if one.part == letter]
        assert [one.noted for one in copies[1:]] == [True] * (len(copies) - 1)
    files = len(letters) - len(texts)
    unsure = sum(may_be_twice[len(texts) :])
    assert files <= counts["."] <= files + unsure
    notes = sum(one.noted for one in seen if one.part in ("", "."))
    assert counts["."] == files or notes
    rest = [one.text for one in seen if not one.part and not one.noted]
    assert rest in ([], [BARE]), rest


@pytest.mark.parametrize("acted", [True, False], ids=["answer lost", "request lost"])
@pytest.mark.parametrize("previewed", [True, False], ids=["preview", "no preview"])
@pytest.mark.parametrize("reply_of", [(1, 0), (3, 0), (1, 2), (0, 1)], ids=str)
@pytest.mark.parametrize("opened", PLACES, ids=lambda opened: opened.__name__)
async def test_a_reply_that_died_between_two_requests_is_whole_and_has_no_button(
    opened: OpenPlace, reply_of: tuple[int, int], previewed: bool, acted: bool
) -> None:
    for number in itertools.count(1):
        assert number < MOST_REQUESTS
        if not await die_at(number, opened, reply_of, previewed=previewed, acted=acted):
            break
    assert number > sum(reply_of)
