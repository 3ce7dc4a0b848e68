"""What the model reads of a person's messages: a text that a client has cut as it was written,
several messages apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.messages import ImageBlock
from bridge.runs import question as question_module
from bridge.runs.pictures import Pictures
from bridge.runs.question import Question, user_message
from channels.base import Address, Attachment, Command, InboundMessage, Sender
from channels.testing import FakeChannel

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def wrote(text: str, after_s: float = 0, **more: Any) -> InboundMessage:
    address, sender = Address("fake", "bot", "1"), Sender("ana", "Ana")
    message = InboundMessage(address, "m:1", "1", sender, NOW + timedelta(seconds=after_s), text)
    return replace(message, **more)


def cut(text: str, seam: str = "") -> InboundMessage:
    return wrote(text, more_expected_s=2.0, seam=seam)


async def read(*messages: InboundMessage, speaker: str | None = None) -> str:
    channel = FakeChannel()
    channel.files = {"d": b"a file"}
    question = Question(messages, speaker)
    made = await user_message(question, channel, Pictures(lambda: True))
    return made.text


@given(st.text(alphabet="ab \n", min_size=3), st.data())
async def test_a_text_that_is_cut_anywhere_is_read_as_it_was(
    text: str, data: st.DataObject
) -> None:
    first, second = sorted(data.draw(st.tuples(*[st.integers(1, len(text))] * 2)))
    parts = text[:first], text[first:second], text[second:]
    assert await read(cut(parts[0]), cut(parts[1]), wrote(parts[2])) == text.strip()


async def test_what_was_lost_at_the_cut_is_put_back_once() -> None:
    assert await read(cut("one line", "\n"), wrote("the next")) == "one line\nthe next"
    assert await read(cut("one", " "), cut("two", "\n"), wrote("three")) == "one two\nthree"
    assert await read(cut("one line", "\n"), wrote("\n  the next")) == "one line\n  the next"


@pytest.mark.parametrize(
    "second",
    [
        wrote("b", after_s=3),
        wrote("b", command=Command("ask", "b")),
        wrote("b", own_words=False),
        wrote("b", attachments=(Attachment("document", "d", "d.txt", "text/plain"),)),
    ],
)
async def test_two_messages_stay_apart(second: InboundMessage) -> None:
    assert (await read(cut("a"), second)).endswith("a\n\nb")
    assert await read(wrote("a"), wrote("b")) == "a\n\nb"


async def test_a_quote_stands_before_the_text_that_is_cut() -> None:
    first = replace(cut("a long"), quote="as\nsaid", command=Command("ask", "a long"))
    assert await read(first, wrote(" text"), speaker="Ana#1") == (
        "[Ana#1] [In reply to this message, which is not mine:]\n> as\n> said\n\na long text"
    )


def photo(text: str, number: int, album: str | None = "a") -> InboundMessage:
    picture = Attachment("image", "p", "photo.jpg", "image/jpeg")
    return replace(
        wrote(text, more_expected_s=1.0), event=f"m:{number}", attachments=(picture,), album=album
    )


async def test_of_several_captions_each_names_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    async def attached(*_: object) -> ImageBlock:
        return ImageBlock("image/png", b"x")

    monkeypatch.setattr(question_module, "_attached", attached)
    two = [photo("a cat", 1), photo("", 2), photo("a dog", 3)]
    assert await read(*two) == "[Image 1] a cat\n\n[Image 3] a dog"
    assert await read(photo("look", 0, None), *two) == (
        "look\n\n[Image 2] a cat\n\n[Image 4] a dog"
    )
    assert await read(photo("what are these?", 1), photo("", 2)) == "what are these?"
    assert await read(photo("a cat", 1), wrote("nice?")) == "a cat\n\nnice?"
