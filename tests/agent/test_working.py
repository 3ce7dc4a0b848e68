"""The note that stands for what left a context: never larger than that, and within what is left."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.calls import leave_as_it_is
from agent.context import LEFT_OUT, Budget, Working, note_tokens, size, turns
from agent.images import ImageMending
from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.overflow import Rung
from agent.summary import as_note, digest, text_of_note
from agent.working import LEAST_NOTE, WorkingCopy
from tests.agent.bed import SIZES, Keeper

CHINESE = (
    "潮水在黄昏时慢慢退去，渔船停在岸边，孩子们在沙滩上寻找贝壳和小螃蟹，老人坐在石头上讲过去的故事"
)


class Digests(Keeper):
    """One whose summaries always fail."""

    async def flush(
        self, dropped: Sequence[Message], note: str | None, *, room: int, summarise: bool
    ) -> str:
        await super().flush(dropped, note, room=room, summarise=summarise)
        return as_note(digest(dropped, text_of_note(note), SIZES, room))


class Verbose(Keeper):
    """One whose notes are longer than they may be."""

    async def flush(
        self, dropped: Sequence[Message], note: str | None, *, room: int, summarise: bool
    ) -> str:
        return as_note("word " * 5_000)


@given(
    st.lists(st.text(max_size=300), max_size=20),
    st.none() | st.text(max_size=3_000),
    st.integers(-10, 4_000),
)
def test_a_digest_has_the_room_that_it_is_given(
    said: list[str], earlier: str | None, room: int
) -> None:
    note = as_note(digest([user_text(text) for text in said], earlier, SIZES, room))
    assert note_tokens(note, SIZES) <= max(room, note_tokens(LEAST_NOTE, SIZES))


def test_a_digest_that_has_no_room_for_all_keeps_the_newest_words_and_some_of_the_earlier() -> None:
    said = [user_text(f"{n} {CHINESE}") for n in range(20)]
    text = digest(said, "Ana likes tea. " * 100, SIZES, 400)
    assert "user: 19 潮水" in text
    assert "user: 0 潮水" not in text
    assert "Ana likes tea." in text


@pytest.mark.parametrize("length", [1, 3])
async def test_months_of_talk_in_a_small_window_keep_earlier_turns_in_view(length: int) -> None:
    """Once only the newest question had room beside the digest (4,096 tokens, Chinese)."""
    keeper, kept, trims = Digests(), Working(()), 0
    for number in range(40):
        question = user_text(f"{number} {CHINESE * length}")
        before = Working((*kept.turns, (question,)), kept.note)
        copy = WorkingCopy(before, keeper)
        await copy.trim(Budget(2_140, 20), SIZES)
        assert copy.size(SIZES) <= 2_140
        kept = keeper.bounds.pop()[1] if keeper.bounds else before
        trims += kept is not before
        assert len(kept.turns) > 1 or number == 0
        kept = kept.plus(assistant_text(f"answer {CHINESE}"))
    assert 2 <= trims <= 20, "and not every question trims"


def test_what_is_taken_out_goes_from_note_and_turns_and_takes_the_seals_along() -> None:
    sealed = Message("assistant", (ThinkingBlock("hm", "m", signature="s"), TextBlock("secret")))
    question = user_text("what secret?")
    old = (user_text("a secret"), assistant_text("fine"))
    copy = WorkingCopy(Working((old, (question,)), as_note("a secret")), Keeper())
    copy.append(sealed)
    copy.clean(lambda turn: tuple(user_text(m.text.replace("secret", "…")) for m in turn))
    messages = copy.messages
    assert [m.text.count("secret") for m in messages] == [0, 0, 1, 0]
    assert messages[2] == question
    assert "signature='s'" not in str(messages)


async def test_a_rung_whose_note_would_be_no_smaller_is_skipped() -> None:
    short = [user_text("hi"), assistant_text("yo"), user_text("tell me " * 100)]
    keeper = Verbose()
    copy = WorkingCopy(Working(tuple(turns(short))), keeper)
    whole = copy.size(SIZES)
    assert not await copy.climb(whole // 2, SIZES)
    assert (copy.size(SIZES), keeper.bounds) == (whole, [])


async def test_a_note_that_is_too_long_is_not_taken() -> None:
    old = [m for _ in range(4) for m in (user_text(CHINESE), assistant_text(CHINESE * 3))]
    copy = WorkingCopy(Working(tuple(turns([*old, user_text("now")]))), Verbose())
    whole = copy.size(SIZES)
    assert await copy.climb(whole // 2, SIZES)
    assert copy.size(SIZES) <= whole // 2
    assert copy.messages[0].text.startswith(f"[Earlier conversation] {LEFT_OUT}")


async def test_a_note_of_a_larger_model_is_cut_for_the_run_alone() -> None:
    keeper = Keeper()
    working = Working(((user_text("now"),),), as_note(f"Ana likes tea. {CHINESE * 50}"))
    copy = WorkingCopy(working, keeper)
    await copy.trim(Budget(1_000, 20), SIZES)
    assert copy.size(SIZES) <= 1_000
    assert "Ana likes tea." in copy.messages[0].text
    assert keeper.bounds == []


async def test_an_emergency_that_takes_the_note_alone_is_stored_as_one() -> None:
    keeper = Keeper()
    working = Working(((user_text("now"),),), as_note(CHINESE * 50))
    copy = WorkingCopy(working, keeper)
    assert await copy.climb(500, SIZES)
    assert keeper.bounds == []
    await copy.answered()
    assert [rung for rung, _ in keeper.bounds] == [Rung.EMERGENCY]
    assert size(keeper.bounds[0][1], SIZES) == copy.size(SIZES) < 500
    assert keeper.snapshots == 1


async def test_a_plainer_form_is_stored_once_a_model_has_taken_it() -> None:
    """Else each later run would be refused for the same form first."""
    keeper = Keeper()
    step = Message("assistant", (ToolUseBlock("c", "echo", {}),))
    result = Message("user", (ToolResultBlock("c", (TextBlock("x"),)),))
    old = (user_text("q"), step, result, assistant_text("a"))
    copy = WorkingCopy(Working((old, (user_text("now"),))), keeper)
    assert await copy.plainer(SIZES)
    assert keeper.bounds == []
    await copy.answered()
    ((rung, working),) = keeper.bounds
    assert rung is None
    assert [message.text for message in working.turns[0]] == ["q", "a"]
    await copy.answered()
    assert len(keeper.bounds) == 1


async def test_of_fewer_images_than_a_server_takes_none_is_one_too_many() -> None:
    def picture(number: int) -> ImageBlock:
        return ImageBlock("image/png", bytes([number]))

    seen = [Message("user", (TextBlock(f"q{n}"), picture(n))) for n in range(3)]
    copy = WorkingCopy(Working(tuple((message,) for message in seen)), Keeper())
    mending = ImageMending(copy, leave_as_it_is)
    assert await mending.mend(None, 5)
    assert [message.images for message in copy.messages] == [(picture(0),), (picture(1),), ()]
