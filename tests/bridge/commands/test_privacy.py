"""What everybody is told of what is stored, and who reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bridge.chats.rights import Rights
from bridge.commands.privacy import PrivacyCommands
from bridge.config import from_environment
from bridge.configuration.storing import Storing, storing
from bridge.texts import Say
from memory.settings import BackupSettings, RetentionSettings
from tests.bridge.bed import bed

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


async def test_everybody_is_told_what_is_stored_and_who_reads_it(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        private = await it.ask("/privacy")
        assert "What is written to me here and what I answer: 90 days" in private
        assert "runs on the bot's own machine" in private
        assert "Nobody else in this chat. Whoever runs this bot can read all" in private
        assert "/memory" in private
        group = await it.ask("/privacy", chat="team", private=False)
        assert "All members of this group" in group
        assert "write to each other here" in group
        stranger = await it.ask("/privacy", person="eve", chat="9")
        assert stranger.startswith("I do not know you yet, so I keep nothing of your messages")
        assert "90 days" in stranger
        assert await it.ask("/privacy", person="eve", chat="9") == stranger  # each time


async def test_the_companies_are_those_of_the_models_that_may_answer_here(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        readers = {
            "a": "Anthropic (api.anthropic.com)",
            "b": "OpenAI (api.openai.com)",
            "c": "x (y)",
        }
        told = Storing(RetentionSettings(), BackupSettings(), readers, ("a", "b"))
        privacy = PrivacyCommands(replace(it.services, storing=told), Rights(it.access, {}), {})
        message = it.channel.message("/privacy")
        said = await privacy.tell(message, Say(it.services.texts, "en"))
        assert "goes to Anthropic (api.anthropic.com), OpenAI (api.openai.com)." in said
        assert "x (y)" not in said
        assert "up to 7 more days" in said


def test_who_reads_follows_from_the_configuration() -> None:
    config = from_environment({"ANTHROPIC_API_KEY": "k"})
    assert storing(config).companies("") == ["Anthropic (api.anthropic.com)"]
    assert storing(from_environment({})).companies("") == []
    weekly = Storing(backup=BackupSettings(every="week", keep=2))
    assert weekly.backup_days == 14
    until = weekly.backups_until(NOW)
    assert until == NOW + timedelta(days=15)
    assert Storing().backups_until(NOW) is None
