"""What is stored and for how long, and which companies' models read it: for people, from the
configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from agent.settings import ProviderSettings
from bridge.configuration.known_models import ANTHROPIC_URL, OPENAI_URL
from bridge.configuration.settings import Config
from memory.settings import BackupSettings, RetentionSettings

_URLS = {"anthropic": ANTHROPIC_URL, "openai": OPENAI_URL}
_COMPANIES = {"api.anthropic.com": "Anthropic", "api.openai.com": "OpenAI"}


@dataclass(frozen=True, slots=True)
class Storing:
    """`readers`: who runs each model, by its name (`Anthropic (api.anthropic.com)`); `always`: those
    that may be asked in every chat, beside the one that answers there. Without readers the model
    runs on the bot's own machine. `backup` None: none is made by the clock."""

    keep: RetentionSettings = field(default_factory=RetentionSettings)
    backup: BackupSettings | None = None
    readers: Mapping[str, str] = field(default_factory=dict[str, str])
    always: tuple[str, ...] = ()

    def companies(self, model: str) -> list[str]:
        """Who reads what is said in a chat in which `model` answers."""
        known = (self.readers.get(name) for name in (model, *self.always))
        return list(dict.fromkeys(reader for reader in known if reader is not None))

    @property
    def backup_days(self) -> int | None:
        """How long a backup by the clock is there; None without such backups."""
        if self.backup is None:
            return None
        return self.backup.keep * (7 if self.backup.every == "week" else 1)

    def backups_until(self, now: datetime) -> datetime | None:
        """Until when the backups by the clock hold what is erased at `now`: the newest of them goes
        with the last of those that are kept after it."""
        days = self.backup_days
        return None if days is None else now + timedelta(days=days + 1)


def storing(config: Config) -> Storing:
    """As the configuration has it."""
    readers = {
        name: _company(model.provider, config.providers[model.provider])
        for name, model in config.models.items()
        if not config.local_model
    }
    notes = (config.memory.notes_model,) if config.memory.notes_model else ()
    always = (config.model, *config.fallback_models, *notes)
    return Storing(config.retention, config.backup, readers, always)


def _company(name: str, provider: ProviderSettings) -> str:
    host = urlsplit(provider.base_url or _URLS[provider.kind]).hostname or ""
    return f"{_COMPANIES.get(host, name)} ({host})"
