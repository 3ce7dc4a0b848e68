"""The configuration's models: what each key means, its unit, range and default.

Every package owns the settings of its part; this module composes them. The texts are read by
`bridge.config`, which reports what does not fit them. What an entry of one section says about
another (a model's provider) is checked there as well, so that all faults come at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Annotated, Any, Literal
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    field_validator,
)

from agent.prompt import DEFAULT
from agent.settings import ModelSettings, ProviderSettings
from bridge.limits.sections import (
    Ceilings,
    ChannelDefaults,
    Defaults,
    Language,
    PersonLimits,
    WhoCanStop,
)
from bridge.session import Scope
from bridge.timezones import is_zone, zone_hint
from channels.forms import form
from channels.slack.settings import SlackSettings
from channels.telegram.settings import TelegramSettings
from memory.settings import BackupSettings, MemorySettings, RetentionSettings

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
Name = Annotated[
    str,
    form(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}",
        "must be a name: up to 40 letters, digits, '.', '_' and '-', a letter or digit first",
    ),
]
PersonName = Annotated[
    str,
    form(r"[a-z]+:[A-Za-z0-9_-]{1,64}", "must be a channel and an id, such as telegram:42"),
]


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )


class Limits(_Section):
    """What one answer may use, and how many are written at once."""

    steps_per_run: int = Field(
        default=25, ge=1, le=200, description="model calls for one answer; default 25"
    )
    tool_calls_per_run: int = Field(
        default=100, ge=1, le=10_000, description="tool calls for one answer; default 100"
    )
    seconds_per_run: float = Field(
        default=900, ge=1, le=86_400, description="seconds for one answer; default 900"
    )
    tokens_per_run: int = Field(
        default=2_000_000,
        ge=1_000,
        description="tokens read and written for one answer; default 2000000",
    )
    cost_per_run_usd: float | None = Field(
        default=None, ge=0, description="USD for one answer; needs each model's price"
    )
    concurrent_runs: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="answers written at once, in all chats; default 100",
    )
    concurrent_runs_per_chat: int = Field(
        default=20, ge=1, le=10_000, description="answers written at once in one chat; default 20"
    )
    queue_length: int = Field(
        default=10,
        ge=1,
        le=1_000,
        description="messages that may wait in one conversation; default 10",
    )


class Installation(_Section):
    """What all chats together may use."""

    cost_per_month_usd: float = Field(
        default=20,
        ge=0,
        le=1_000_000,
        description="USD per calendar month, for all chats; default 20",
    )
    cost_per_day_usd: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="USD per day, for all chats; default: as much as in a month",
    )
    cost_per_person_per_day_usd: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="USD per day for one person, over all chats of a channel; default: no such limit",
    )
    usage_detail: Literal["totals", "names"] = Field(
        default="totals",
        description="whether /usage tells a group's admins who has used how much: totals or names",
    )


class Context(_Section):
    """What the model sees of a conversation."""

    max_turns: int = Field(
        default=20,
        ge=1,
        le=1_000,
        description="turns; above that the older half is left out; default 20",
    )
    budget_tokens: int | None = Field(
        default=None,
        ge=1_000,
        description="tokens of one request, the reply among them; default: the model's window",
    )


class Telegram(TelegramSettings):
    """A Telegram bot, and what holds in its chats."""

    defaults: ChannelDefaults | None = Field(
        default=None, description="limits in all chats of this channel"
    )


class Slack(SlackSettings):
    """A Slack app, and what holds in its chats."""

    defaults: ChannelDefaults | None = Field(
        default=None, description="limits in all chats of this channel"
    )


class Channels(_Section):
    """The chat platforms that are switched on: those whose section is there."""

    telegram: Telegram | None = Field(default=None, description="a Telegram bot")
    slack: Slack | None = Field(default=None, description="a Slack app")


class Log(_Section):
    """What is logged, to standard error."""

    level: Level = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR; default INFO")
    json_lines: bool = Field(
        default=False, alias="json", description="yes: one JSON object a line; default no"
    )


class Health(_Section):
    """What programs that watch the bot are told."""

    port: int | None = Field(
        default=None,
        ge=1,
        le=65_535,
        description="port of 127.0.0.1 for /healthz, /readyz and /metrics; default none",
    )


class Config(_Section):
    """Everything that can be configured. `load` and `from_environment` of `bridge.config` build it.

    Without `providers` and `models` the embedded model answers (`local_model`).
    """

    timezone: str = Field(
        default="UTC", description="IANA zone, as Europe/Berlin; default the system's"
    )
    language: Language = Field(
        default="auto",
        description="language of the answers and, where it has them in it, of the bot's own texts; "
        "auto: that of each person",
    )
    model: str = Field(default="", description="the key of models that answers")
    fallback_models: tuple[Name, ...] = Field(
        default=(), description="keys of models that answer, in this order, when model cannot"
    )
    models_for_chats: tuple[Name, ...] = Field(
        default=(),
        description="more keys of models, which a chat may choose; default: model and "
        "fallback_models alone",
    )
    instructions: str = Field(
        default=DEFAULT,
        min_length=1,
        max_length=8_000,
        description="the system prompt; 8,000 characters at most",
    )
    conversation: Scope = Field(
        default="shared",
        description="in groups: shared, one conversation for all; one_per_person, one for each",
    )
    who_can_stop: WhoCanStop = Field(
        default="asker_and_admins",
        description="in groups, besides owners: asker_and_admins, or anyone",
    )
    providers: dict[Name, ProviderSettings] = Field(
        default_factory=dict[str, ProviderSettings], description="endpoints of models, by name"
    )
    models: dict[Name, ModelSettings] = Field(
        default_factory=dict[str, ModelSettings], description="models, by name"
    )
    channels: Channels = Field(default_factory=Channels, description="chat platforms")
    limits: Limits = Field(default_factory=Limits, description="caps")
    installation: Installation = Field(
        default_factory=Installation, description="what all chats together may use"
    )
    defaults: Defaults | None = Field(
        default=None, description="limits in all chats, until a chat has its own"
    )
    ceilings: Ceilings | None = Field(
        default=None, description="what no chat's own limits can pass"
    )
    people: dict[PersonName, PersonLimits] = Field(
        default_factory=dict[str, PersonLimits],
        description="limits of people in all chats, by channel and id",
    )
    context: Context = Field(default_factory=Context, description="what the model sees")
    memory: MemorySettings = Field(
        default_factory=MemorySettings, description="day files, and what the nights make of them"
    )
    retention: RetentionSettings = Field(
        default_factory=RetentionSettings, description="how long what is stored is kept"
    )
    backup: BackupSettings | None = Field(
        default=None, description="backups by the clock; none without this section"
    )
    log: Log = Field(default_factory=Log, description="logging")
    health: Health = Field(default_factory=Health, description="for programs that watch the bot")

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, timezone: str) -> str:
        if not is_zone(timezone):
            raise ValueError(f"is no IANA time zone{zone_hint(timezone)}")
        return timezone

    _variables: Mapping[str, str] = PrivateAttr(default_factory=dict[str, str])

    def given_by(self, variables: Mapping[str, str]) -> Config:
        """The same, come from variables of the environment: their names by the keys they stand for."""
        made = self.model_copy()
        made._variables = variables
        return made

    def as_given(self, text: str) -> str:
        """A sentence that names keys, for an operator who has written no file: it names variables."""
        for key, variable in self._variables.items():
            text = text.replace(key, variable)
        return text

    @property
    def zone(self) -> tzinfo:
        """The time zone of the bot."""
        return UTC if self.timezone == "UTC" else ZoneInfo(self.timezone)

    @property
    def zone_is_known(self) -> bool:
        """Whether somebody has said it: the configuration, or a system that is not set to UTC."""
        return "timezone" in self.model_fields_set

    @property
    def local_model(self) -> bool:
        """Whether the model that is embedded in this machine answers, for want of a provider."""
        return not self.providers

    def secrets(self) -> frozenset[str]:
        """Every value that must never reach a chat, a log or the database: those of the secret
        fields, and passwords within addresses."""
        found: set[str] = set()
        for value in _values(self):
            if isinstance(value, SecretStr):
                text = value.get_secret_value()
                found |= {text, *passwords(text)}
            elif isinstance(value, str):
                found.update(passwords(value))
        return frozenset(found - {""})


def passwords(text: str) -> set[str]:
    """The password within an address such as `http://user:password@host`, as written and
    decoded."""
    if "://" not in text or "@" not in text:
        return set()
    try:
        password = urlsplit(text).password or ""
    except ValueError:
        return set()
    return {password, unquote(password)} - {""}


def _values(value: Any) -> Iterator[Any]:
    """Every single value of a model, however deep."""
    match value:
        case BaseModel():
            for name in type(value).model_fields:
                yield from _values(getattr(value, name))
        case Mapping():
            for item in value.values():  # pyright: ignore[reportUnknownVariableType]
                yield from _values(item)
        case tuple() | list():
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                yield from _values(item)
        case _:
            yield value
