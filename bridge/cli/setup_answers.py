"""What `galata setup` finds out, and the variables in which secrets are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent.settings import ModelSettings
from bridge.configuration.environment import CHANNEL_VARIABLES, PROVIDER_VARIABLES


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A channel or a provider: its key in the configuration, its kind (`telegram`, `slack`,
    `anthropic`, `openai`), its secrets by the configuration's key, and the address of its API where
    it is not the usual one."""

    name: str
    kind: str
    secrets: Mapping[str, str]
    base_url: str | None

    @property
    def is_provider(self) -> bool:
        """Whether it is a provider, not a channel."""
        return self.kind in PROVIDER_VARIABLES

    def variable(self, key: str) -> str:
        """The variable that usually holds the secret `key`."""
        known = {**CHANNEL_VARIABLES, **PROVIDER_VARIABLES}[self.kind]
        return known.get(key, f"{self.kind}_{key}".upper())


@dataclass(frozen=True, slots=True)
class Answers:
    """Everything that setup found out: the channels that were asked for, and the rest, kept or new.
    `limit_usd`: USD per month."""

    channels: tuple[Endpoint, ...]
    provider: Endpoint
    model: ModelSettings
    timezone: str | None  # None: chats tell theirs
    limit_usd: float


def number(value: float) -> str:
    """A limit as it is written and shown."""
    return str(int(value)) if value == int(value) else repr(value)
