"""The questions of `galata setup` about the model: a key, and which model, checked with a real call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from agent.settings import ModelSettings, PriceSettings, ProviderSettings
from bridge.cli.options import CommandFailed, say, tell
from bridge.cli.probe import ProbeFailed, probe_model
from bridge.cli.setup_answers import Endpoint
from bridge.cli.setup_changes import free_name
from bridge.cli.setup_earlier import Earlier
from bridge.cli.setup_secrets import Offer, ask_secret, given_offer, kept_offer
from bridge.cli.terminal import Refused, ask
from bridge.configuration.environment import MODEL_VARIABLE, PROVIDER_VARIABLES
from bridge.configuration.known_models import DEFAULTS, model_settings

ANTHROPIC_PREFIX = "sk-ant-"
_QUESTION = "Key of Anthropic (sk-ant-...) or OpenAI"
_MOST_OF_AN_ID = 200  # characters
_MOST_OF_A_PRICE = 10_000  # USD for a million tokens


@dataclass(frozen=True, slots=True)
class _Way:
    """A provider, reached with one key or another: its entry's name, its settings but for the key,
    and the model to ask for."""

    name: str
    kind: str
    settings: Mapping[str, Any]
    model: ModelSettings

    @property
    def base_url(self) -> str | None:
        """Its address, where it is not the usual one."""
        return self.settings.get("base_url")

    @property
    def may_be_keyless(self) -> bool:
        """Whether it is an endpoint of one's own."""
        return self.kind == "openai" and self.base_url is not None

    def endpoint(self, key: str) -> Endpoint:
        """The answer."""
        return Endpoint(self.name, self.kind, {"api_key": key} if key else {}, self.base_url)


def ask_first_model(given: Mapping[str, str]) -> tuple[Endpoint, ModelSettings]:
    """Ask for a key until a model answers with it: the one that the variables `given` name, else
    the provider's small one. Raises `CommandFailed`."""
    known = [variables["api_key"] for variables in PROVIDER_VARIABLES.values()]
    offer = next((given_offer(name, given) for name in known if given.get(name)), Offer())
    needed = not _usual("openai", "openai", given).may_be_keyless
    while True:
        key = ask_secret(_QUESTION, offer, needed=needed)
        kind = _kind_of(key)
        way = _usual(kind, kind, given)
        if _answers(way, way.model, key):
            return way.endpoint(key), _priced(way.model)


def ask_model_again(earlier: Earlier, given: Mapping[str, str]) -> tuple[Endpoint, ModelSettings]:
    """Ask for a key and a model, until it answers. Enter keeps the earlier ones; the key of another
    provider leads to that one. Raises `CommandFailed`."""
    current, offer = _current(earlier), kept_offer(_key(earlier))
    has_key = "api_key" in earlier.section(("providers", current.name))
    while True:
        key = ask_secret(
            _question_again(current, offer.value),
            offer,
            needed=has_key or not current.may_be_keyless,
        )
        alike = key == offer.value or _is_alike(key, offer.value, current.kind)
        way = current if alike else _other(_kind_of(key), earlier, given)
        model = _model(way, ask("Model", _model_id, default=way.model.id), earlier)
        if _answers(way, model, key):
            return way.endpoint(key), _priced(model)


def _usual(kind: str, name: str, given: Mapping[str, str]) -> _Way:
    """The provider as the variables describe it."""
    address = given.get(PROVIDER_VARIABLES[kind]["base_url"])
    settings = {"kind": kind, **({"base_url": address} if address else {})}
    model = model_settings(kind, name, given.get(MODEL_VARIABLE) or DEFAULTS[kind])
    return _Way(name, kind, settings, model)


def _current(earlier: Earlier) -> _Way:
    """The provider and the model that answer now."""
    config = earlier.config
    model = config.models[config.model]
    return _Way(
        model.provider,
        config.providers[model.provider].kind,
        _but_for_the_key(earlier, model.provider),
        model,
    )


def _other(kind: str, earlier: Earlier, given: Mapping[str, str]) -> _Way:
    """The provider of that kind at its usual address: an entry that is there, else a new one."""
    config = earlier.config
    usual = _usual(kind, free_name(kind, config.providers), given)
    for name, provider in config.providers.items():
        if (provider.kind, provider.base_url) == (kind, usual.base_url):
            models = [model for model in config.models.values() if model.provider == name]
            fresh = model_settings(kind, name, usual.model.id)
            return _Way(name, kind, _but_for_the_key(earlier, name), next(iter(models), fresh))
    return usual


def _but_for_the_key(earlier: Earlier, name: str) -> Mapping[str, Any]:
    section = earlier.section(("providers", name))
    return {key: value for key, value in section.items() if key != "api_key"}


def _key(earlier: Earlier) -> str:
    config = earlier.config
    return earlier.secret(("providers", config.models[config.model].provider, "api_key"))


def _is_alike(key: str, current: str, kind: str) -> bool:
    """Whether a key is for the provider in use: of the same make as the one that it has."""
    of_anthropic = current.startswith(ANTHROPIC_PREFIX) if current else kind == "anthropic"
    return key.startswith(ANTHROPIC_PREFIX) is of_anthropic


def _question_again(current: _Way, key: str) -> str:
    """Says to whom a key that is typed will be shown."""
    if current.base_url is None:
        return _QUESTION
    host = urlsplit(current.base_url).netloc.rpartition("@")[2]
    other = "OpenAI" if _is_alike(ANTHROPIC_PREFIX, key, current.kind) else "Anthropic (sk-ant-...)"
    return f"Key of {current.name} at {host}, or of {other}"


def _kind_of(key: str) -> str:
    return "anthropic" if key.startswith(ANTHROPIC_PREFIX) else "openai"


def _model(way: _Way, model_id: str, earlier: Earlier) -> ModelSettings:
    """The settings of the model: as the file has them, else as they are known."""
    there = (way.model, *earlier.config.models.values())
    same = [model for model in there if (model.provider, model.id) == (way.name, model_id)]
    return next(iter(same), model_settings(way.kind, way.name, model_id))


def _model_id(text: str) -> str:
    if not text.isprintable() or len(text) > _MOST_OF_AN_ID:
        raise Refused("the provider's name for the model, such as claude-haiku-5-5")
    return text


def _answers(way: _Way, model: ModelSettings, key: str) -> bool:
    """Whether the model answers; says so, or why not. Raises `CommandFailed`."""
    try:
        settings = ProviderSettings.model_validate(
            {**way.settings, **({"api_key": key} if key else {})}
        )
        asyncio.run(probe_model(way.name, settings, model))
    except ValidationError:
        variable = PROVIDER_VARIABLES[way.kind]["base_url"]  # an earlier section is valid
        raise CommandFailed(f"{variable} is no address such as https://host/path") from None
    except ProbeFailed as error:
        tell(f"  {way.name}, {model.id}: {error}")
        return False
    say(f"  fine: {model.id} answers")
    return True


def _priced(model: ModelSettings) -> ModelSettings:
    """The model with its price, which nobody may know but who pays it."""
    if model.price is not None:
        return model
    say("  its price is not known, and without one no limit in USD can be kept to")
    read, written = (
        ask(f"USD per million {what} tokens (0: it costs nothing)", _usd)
        for what in ("input", "output")
    )
    price = PriceSettings(input=read, output=written, as_of=datetime.now(UTC).date())
    return model.model_copy(update={"price": price})


def _usd(text: str) -> float:
    try:
        price = float(text.removeprefix("$"))
    except ValueError:
        raise Refused("a number such as 0.25") from None
    if not 0 <= price < _MOST_OF_A_PRICE:
        raise Refused(f"a number from 0 to {_MOST_OF_A_PRICE}")
    return price
