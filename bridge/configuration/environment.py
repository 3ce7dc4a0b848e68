"""The configuration that is used without a file: keys and tokens from the environment.

A key switches its provider on, a token its channel; with neither key the embedded model answers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agent.settings import ModelSettings
from bridge.configuration.cross_checks import no_header_value
from bridge.configuration.faults import ConfigError, validation_faults
from bridge.configuration.known_models import DEFAULTS, model_settings
from bridge.configuration.settings import Config
from bridge.timezones import is_zone, system_zone, zone_hint
from bridge.yaml_source import Document, Fault, dotted

log = logging.getLogger(__name__)

ENVIRONMENT = "environment"

# The variables that are read, by the key that they stand for. The first provider that is there is
# used.
PROVIDER_VARIABLES = {
    "anthropic": {"api_key": "ANTHROPIC_API_KEY", "base_url": "ANTHROPIC_BASE_URL"},
    "openai": {"api_key": "OPENAI_API_KEY", "base_url": "OPENAI_BASE_URL"},
}
CHANNEL_VARIABLES = {
    "telegram": {"token": "TELEGRAM_BOT_TOKEN", "base_url": "TELEGRAM_BASE_URL"},
    "slack": {
        "bot_token": "SLACK_BOT_TOKEN",
        "app_token": "SLACK_APP_TOKEN",
        "base_url": "SLACK_BASE_URL",
    },
}
_KEYS = {
    dotted((section, name, part)): variable
    for section, table in (("providers", PROVIDER_VARIABLES), ("channels", CHANNEL_VARIABLES))
    for name, variables in table.items()
    for part, variable in variables.items()
}
MODEL_VARIABLE = "GALATA_MODEL"
_OWN_ENDPOINT = "OPENAI_BASE_URL"  # an endpoint of one's own may need no key


def from_environment(environ: Mapping[str, str]) -> Config:
    """The configuration that the environment gives. Raises `ConfigError`, which names variables."""
    given = {name: value.strip() for name, value in environ.items() if value.strip()}
    faults = _half_given(given)
    model = _model(given)
    faults += _bad_keys(model.get("providers", {}))
    channels = {name: found for name in CHANNEL_VARIABLES if (found := _channel(name, given))}
    if faults:
        channels.pop("slack", None)
    document: dict[str, Any] = {
        "channels": channels,
        # In a terminal the log would run through the conversation.
        "log": {"level": "INFO" if channels else "WARNING"},
        **model,
    }
    if (zone := default_zone(environ)) is not None:
        document["timezone"] = zone
    try:
        config = Config.model_validate(document)
    except ValidationError as error:
        faults += [
            Fault(0, 0, _variable(fault.key), fault.message)
            for fault in validation_faults(error, Document())
        ]
    else:
        if not faults:
            return config.given_by(_KEYS)
    raise ConfigError(ENVIRONMENT, faults)


def default_zone(environ: Mapping[str, str]) -> str | None:
    """The system's time zone; None, with a warning, when the system names none but UTC: then chats are
    in UTC until they tell theirs.

    Raises `ConfigError` when TZ is not an IANA name.
    """
    named = environ.get("TZ", "").removeprefix(":")
    if named and not named.startswith("/") and not is_zone(named):
        message = f"is no IANA time zone{zone_hint(named)}"
        raise ConfigError(ENVIRONMENT, [Fault(0, 0, "TZ", message)])
    zone = system_zone(environ)
    if zone is None:
        log.warning(
            "no time zone is known: UTC is used where a chat does not tell its own;"
            " set timezone in the config, or TZ"
        )
    return zone


def _model(given: Mapping[str, str]) -> dict[str, Any]:
    for kind, variables in PROVIDER_VARIABLES.items():
        own_endpoint = kind == "openai" and _OWN_ENDPOINT in given
        if variables["api_key"] in given or own_endpoint:
            name = given.get(MODEL_VARIABLE, DEFAULTS[kind])
            model: ModelSettings = model_settings(kind, kind, name)
            settings = {key: given[var] for key, var in variables.items() if var in given}
            return {
                "providers": {kind: {"kind": kind, **settings}},
                "models": {"default": model},
                "model": "default",
            }
    return {}


def _bad_keys(providers: Mapping[str, Mapping[str, str]]) -> list[Fault]:
    """Keys that no request could carry."""
    return [
        Fault(0, 0, PROVIDER_VARIABLES[kind]["api_key"], message)
        for kind, settings in providers.items()
        if (message := no_header_value(settings.get("api_key", ""))) is not None
    ]


def _channel(name: str, given: Mapping[str, str]) -> dict[str, str]:
    """The channel's settings, or nothing when its (first) token is not there."""
    variables = CHANNEL_VARIABLES[name]
    if next(iter(variables.values())) not in given:
        return {}
    return {key: given[variable] for key, variable in variables.items() if variable in given}


def _half_given(given: Mapping[str, str]) -> list[Fault]:
    """Slack needs two tokens."""
    tokens = ("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN")
    missing = [token for token in tokens if token not in given]
    if len(missing) != 1:
        return []
    other = next(token for token in tokens if token not in missing)
    return [Fault(0, 0, missing[0], f"is not set, but {other} is: Slack needs both")]


def _variable(key: str) -> str:
    """The variable that gave the value of `key`; the key itself for all others."""
    return _KEYS.get(key, key)
