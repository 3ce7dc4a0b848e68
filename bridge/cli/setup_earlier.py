"""What `galata setup` finds: a configuration whose answers are offered again, and what is kept in
variables."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import BaseModel, SecretStr

from bridge.cli.setup_answers import Answers, Endpoint
from bridge.config import Config, ConfigError, load
from bridge.yaml_source import Path as KeyPath
from bridge.yaml_source import Unparsable, Value, dotted, parse

# A secret that setup asks for may be missing or wrong in an earlier configuration. It is read with
# one of these in its place, which is never offered.
_IN_PLACE = {
    "token": "0:unset",
    "bot_token": "xoxb-unset",
    "app_token": "xapp-unset",
    "signing_secret": "unset",
    "api_key": "unset",
}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Earlier:
    """A configuration that can be gone on from. `text` and `values`: as written. `unset`: the keys,
    dotted, of secrets that are missing or wrong."""

    text: str
    values: Mapping[str, Value]
    config: Config
    unset: frozenset[str]

    def answers(self) -> Answers:
        """What it says, but for the channels."""
        model = self.config.models[self.config.model]
        settings = self.config.providers[model.provider]
        key = settings.api_key
        return Answers(
            channels=(),
            provider=Endpoint(
                model.provider,
                settings.kind,
                {} if key is None else {"api_key": key.get_secret_value()},
                settings.base_url,
            ),
            model=model,
            timezone=self.config.timezone,
            limit_usd=self.config.installation.cost_per_month_usd,
        )

    def section(self, path: KeyPath) -> dict[str, Any]:
        """What the file sets for a channel or a provider; nothing where it is not there."""
        found: BaseModel | None
        match path:
            case ("channels", "telegram"):
                found = self.config.channels.telegram
            case ("channels", "slack"):
                found = self.config.channels.slack
            case (_, name):
                found = self.config.providers.get(str(name))
            case _:
                raise ValueError(path)
        return {} if found is None else found.model_dump(exclude_unset=True)

    def secret(self, path: KeyPath) -> str:
        """The secret at a path; empty where there is none, or a wrong one."""
        value = self.section(path[:-1]).get(str(path[-1]))
        if not isinstance(value, SecretStr) or dotted(path) in self.unset:
            return ""
        return value.get_secret_value()

    def variable(self, path: KeyPath) -> str | None:
        """The variable that alone gives the secret at a path; None where it is from elsewhere."""
        return _variable(_at(self.values, path))

    def has_channel(self, name: str) -> bool:
        """Whether that channel is on."""
        return bool(self.section(("channels", name)))

    def lacks(self, *path: str) -> bool:
        """Whether a secret below `path` is missing or wrong."""
        return any(key.startswith(f"{dotted(path)}.") for key in self.unset)


def read_earlier(path: Path, raw: bytes, environ: Mapping[str, str]) -> Earlier:
    """The configuration in the file. Raises `ConfigError` where it has faults that the questions
    cannot mend, with all of them."""
    try:
        config, unset = load(path, environ), frozenset[str]()
    except ConfigError as error:
        given = _in_place(raw, error)
        try:
            config = load(path, {**environ, **dict(given.values())})
        except ConfigError:
            raise error from None
        unset = frozenset(given)
    text = raw.decode("utf-8")
    return Earlier(text, parse(raw).values, config, unset)


def variables(env_text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the environment gives, else `.env`; nothing empty."""
    kept = dotenv_values(stream=io.StringIO(env_text), interpolate=False)
    both = {**{name: value or "" for name, value in kept.items()}, **_filled(environ)}
    return _filled(both)


def _filled(values: Mapping[str, str]) -> dict[str, str]:
    return {name: value.strip() for name, value in values.items() if value.strip()}


def _in_place(raw: bytes, error: ConfigError) -> dict[str, tuple[str, str]]:
    """For each fault of a secret that stands in a variable of its own: the variable, and what to
    read in its place. Raises `error` where there is any other fault."""
    try:
        values = parse(raw).values
    except Unparsable:
        raise error from None
    secrets = {dotted(path): path for path in _secret_paths(values)}
    found: dict[str, tuple[str, str]] = {}
    for fault in error.faults:
        path = secrets.get(fault.key, ())
        name = _variable(_at(values, path))
        if name is None:
            raise error
        found[fault.key] = (name, _IN_PLACE[str(path[-1])])
    return found


def _secret_paths(values: Mapping[str, Value]) -> list[KeyPath]:
    return [
        (group, name, key)
        for group in ("channels", "providers")
        for name, section in _items(values.get(group))
        for key, _ in _items(section)
        if key in _IN_PLACE
    ]


def _items(value: Value | None) -> list[tuple[str, Value]]:
    return list(value.items()) if isinstance(value, dict) else []


def _at(values: Mapping[str, Value], path: KeyPath) -> str:
    """The text at a path, as written; empty without one."""
    place: Value = dict(values)
    for part in path:
        place = dict(_items(place)).get(str(part), "")
    return place if isinstance(place, str) else ""


def _variable(written: str) -> str | None:
    found = _VARIABLE.fullmatch(written)
    return found[1] if found else None
