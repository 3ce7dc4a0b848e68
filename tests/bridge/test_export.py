"""`/export`: what was said, for the asker alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agent.messages import ImageBlock, Message, TextBlock, ToolUseBlock, assistant_text, user_text
from bridge.commands.exporting import MOST_CHARACTERS, Words, documents
from bridge.log import Redactor
from bridge.texts import Say, Texts
from channels.errors import Unreachable
from memory.transcripts import Said
from tests.bridge.bed import Bed, bed

TEAM = {"chat": "team", "private": False}
AT = datetime(2026, 11, 30, 12, 5, tzinfo=UTC)
WORDS = Words(Say(Texts.load(), "en"), "Ana", UTC, Redactor(["sesame-open"]).clean)


def text_of(it: Bed) -> str:
    return "".join(document.text for reply in it.channel.replies for document in reply.documents)


def test_an_export_has_speaker_time_and_text_and_nothing_else() -> None:
    said = [
        Said(Message("user", (ImageBlock("image/png", b"x"), TextBlock("[Bo#2] look"))), AT),
        Said(Message("assistant", (ToolUseBlock("c1", "search", {"q": "x"}),)), AT),
        Said(assistant_text("Say sesame-open."), AT),
        Said(user_text("[Bo#3] me too"), AT),
        Said(Message("user", (ImageBlock("image/png", b"x"), TextBlock("[Bo#3]"))), AT),
        Said(user_text("thanks"), AT),
    ]
    (file,) = documents(said, WORDS)
    assert file.name == "conversation.md"
    assert file.text == (
        "**Bo**, 2026-11-30 12:05\n\n(a picture)\n\nlook\n\n"
        "**Bot**, 2026-11-30 12:05\n\nSay [secret].\n\n"
        "**Bo (2)**, 2026-11-30 12:05\n\nme too\n\n"
        "**Bo (2)**, 2026-11-30 12:05\n\n(a picture)\n\n"
        "**Ana**, 2026-11-30 12:05\n\nthanks\n\n"
    )
    assert documents([], WORDS) == ()


def test_a_long_conversation_is_several_files() -> None:
    said = [Said(user_text("x" * MOST_CHARACTERS), AT), Said(assistant_text("end"), AT)]
    files = documents(said, WORDS)
    assert [file.name for file in files] == ["conversation-1.md", "conversation-2.md"]
    assert all(len(file.text) <= MOST_CHARACTERS for file in files)
    assert files[-1].text.endswith("end\n\n")


async def test_in_private_the_file_comes_with_the_answer(tmp_path: Path) -> None:
    async with bed(tmp_path, ["old", "Green.", "Taken back."]) as it:
        assert await it.ask("/export") == "There is nothing here yet that I could export."
        await it.ask("before")
        await it.ask("/new")
        await it.ask("my colour?")
        await it.ask("no, other")
        await it.ask("/undo")
        assert (await it.ask("/export")).startswith("This conversation")
        text = text_of(it)
        assert "**Ana**" in text
        assert "my colour?" in text
        assert "Green." in text
        assert not any(word in text for word in ("before", "old", "Taken back", "no, other"))


async def test_from_a_group_it_goes_to_the_asker_alone(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await it.ask("ana's question", person="ana", **TEAM)
        await it.ask("bo's question", person="bo", **TEAM)
        assert await it.ask("/export", person="bo", **TEAM) == "I have sent it to you in private."
        (sent,) = [reply for reply in it.channel.replies if reply.documents]
        assert sent.to == replace(sent.to, chat="private-bo", private=True)
        assert "bo's question" in text_of(it)
        assert "Two." in text_of(it)
        assert "ana's" not in text_of(it)
        it.channel.admins = {"bo"}
        await it.ask("/export", person="bo", **TEAM)
        assert "ana's question" in text_of(it)


async def test_who_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One."]) as it:
        await it.ask("hi", **TEAM)
        it.channel.failures.append(Unreachable("bot can't initiate conversation"))
        assert "cannot write to you in private" in await it.ask("/export", **TEAM)
        it.channel.unreachable.add("ana")
        assert "cannot write to you in private" in await it.ask("/export", **TEAM)
