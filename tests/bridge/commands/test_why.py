"""What stood before the model for the last answer is told from what is stored, not by the model."""

from __future__ import annotations

from pathlib import Path

from agent.testing import calls
from tests.bridge.bed import bed


async def test_entries_and_hits_of_the_last_answer_are_shown(tmp_path: Path) -> None:
    search = calls(("a", "memory_search", {"query": "plover"}))
    async with bed(tmp_path, ["Plovers are waders.", search, "A wader.", "Fine."]) as it:
        assert await it.ask("/why") == "There is no answer here yet."
        await it.ask("/remember likes tea")
        await it.ask("what is a plover?")
        await it.ask("/new")
        await it.ask("and that bird?")
        told = await it.ask("/why")
        assert "likes tea" in told
        assert "It looked for “plover” and got:" in told
        assert "Plovers are waders." in told
        await it.ask("/remember likes coffee")
        assert "coffee" not in await it.ask("/why"), "it came after the answer"
        await it.ask("how are you?")
        told = await it.ask("/why")
        assert "coffee" in told
        assert "It searched nothing." in told
        await it.ask("/forget 2")
        assert "coffee" not in await it.ask("/why")


async def test_one_chat_is_told_nothing_of_another(tmp_path: Path) -> None:
    async with bed(tmp_path, ["One.", "Two."]) as it:
        await it.ask("/remember likes tea")
        await it.ask("hi")
        await it.ask("hi", person="bo", chat="2")
        assert "tea" not in await it.ask("/why", person="bo", chat="2")
