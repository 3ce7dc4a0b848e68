"""What `galata setup` writes: a short config.yaml, and `.env` with the secrets."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.settings import ModelSettings
from bridge.cli.options import CommandFailed
from bridge.environment import CHANNEL_VARIABLES, PROVIDER_VARIABLES

MODEL_NAME = "default"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A channel (`telegram`, `slack`) or a provider (`anthropic`, `openai`): its secrets by the
    configuration's key, and the address of its API where it is not the usual one."""

    name: str
    secrets: Mapping[str, str]
    base_url: str | None


@dataclass(frozen=True, slots=True)
class Answers:
    """Everything that setup found out. `limit_usd`: USD per month."""

    channel: Endpoint
    provider: Endpoint
    model: ModelSettings
    timezone: str
    limit_usd: float

    def secrets(self) -> dict[str, str]:
        """The secrets by the variables that hold them."""
        variables = (
            (self.provider, PROVIDER_VARIABLES[self.provider.name]),
            (self.channel, CHANNEL_VARIABLES[self.channel.name]),
        )
        return {
            names[key]: value
            for endpoint, names in variables
            for key, value in endpoint.secrets.items()
        }


def config_text(answers: Answers) -> str:
    """The configuration: 15 lines at most."""
    provider, channel, model = answers.provider, answers.channel, answers.model
    lines = [
        "# Every key: config.example.yaml. The secrets are in .env.",
        f"timezone: {answers.timezone}",
        f"model: {MODEL_NAME}",
        "providers:",
        f"  {provider.name}: {_section(provider, PROVIDER_VARIABLES, kind=provider.name)}",
        "models:",
        f"  {MODEL_NAME}:",
        f"    provider: {provider.name}",
        f"    id: {_quoted(model.id)}",
        f"    context_tokens: {model.context_tokens}",
        *([f"    price: {_price(model)}"] if model.price else []),
        "channels:",
        f"  {channel.name}: {_section(channel, CHANNEL_VARIABLES)}",
        "limits:",
        f"  cost_per_month_usd: {_number(answers.limit_usd)}",
    ]
    return "\n".join(lines) + "\n"


def env_text(present: str, secrets: Mapping[str, str]) -> str:
    """The lines of `present` that set something else, then the secrets."""
    ours = re.compile(rf"\s*(export\s+)?({'|'.join(map(re.escape, secrets))})\s*=")
    lines = [line for line in present.splitlines() if not ours.match(line)]
    lines += [f"{name}='{value}'" for name, value in secrets.items()]
    return "\n".join(lines) + "\n"


def write_private(path: Path, text: str) -> None:
    """Replace a file at once, readable for its owner alone. Raises `CommandFailed`."""
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        fresh.replace(path)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from None


def read_present(path: Path) -> str:
    """The file's text; nothing when it is not there. Raises `CommandFailed`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        raise CommandFailed(f"{path} cannot be read as text; nothing was written") from None


def _section(endpoint: Endpoint, variables: Mapping[str, Mapping[str, str]], **first: str) -> str:
    parts = dict(first)
    for key in endpoint.secrets:
        parts[key] = '"${' + variables[endpoint.name][key] + '}"'
    if endpoint.base_url is not None:
        parts["base_url"] = _quoted(endpoint.base_url)
    return "{" + ", ".join(f"{key}: {value}" for key, value in parts.items()) + "}"


def _price(model: ModelSettings) -> str:
    if model.price is None:
        return ""
    values = model.price.model_dump(mode="json", exclude_none=True)
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _quoted(text: str) -> str:
    """As a double-quoted YAML text in which nothing is a reference."""
    return json.dumps(text.replace("${", "$${"))
