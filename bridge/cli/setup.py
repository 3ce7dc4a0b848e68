"""`galata setup`: from a clone to the first answer, with four questions and no editor.

Every answer is checked with a real call before the next question. At the end the bot runs, and
prints the one-time link that makes whoever opens it first its owner.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from agent.settings import ModelSettings, ProviderSettings
from bridge.cli.options import CONFIG_FILE, FINE, WRONG_USE, Options, say, tell
from bridge.cli.probe import ProbeFailed, probe_model, probe_slack, probe_telegram
from bridge.cli.run import start
from bridge.cli.setup_files import (
    Answers,
    Endpoint,
    config_text,
    env_text,
    read_present,
    write_private,
)
from bridge.cli.terminal import Refused, ask, confirm
from bridge.config import ENV_FILE, load
from bridge.environment import CHANNEL_VARIABLES, MODEL_VARIABLE, PROVIDER_VARIABLES
from bridge.known_models import DEFAULTS, model_settings
from bridge.settings import Limits
from bridge.timezones import is_zone, system_zone, zone_hint
from channels.errors import ChannelError
from channels.slack.settings import SlackSettings
from channels.telegram.settings import TelegramSettings

ANTHROPIC_PREFIX = "sk-ant-"
_SLACK_STEPS = """\
1. https://api.slack.com/apps -> Create New App -> From a manifest: paste what
   `galata slack manifest` prints.
2. Install it to the workspace: OAuth & Permissions shows the bot token (xoxb-...).
3. Basic Information -> App-Level Tokens: one with connections:write (xapp-...).
"""


def setup(options: Options) -> int:
    """Ask, check, write config.yaml and .env, and start the bot. Raises `CommandFailed`."""
    if not sys.stdin.isatty():
        tell("galata: setup asks questions, so it needs a terminal")
        return WRONG_USE
    config_file = options.config or Path(CONFIG_FILE)
    env_file = config_file.parent / ENV_FILE
    if not _may_write(config_file, env_file):
        say("Nothing was changed.")
        return FINE
    environ = options.environ
    channel = _slack(environ) if options.slack else _telegram(environ)
    provider, model = _model(environ)
    zone = ask("Time zone", _zone, default=system_zone(environ) or "UTC")
    limit = ask("Spending limit per month, in USD", _limit, default="20")
    answers = Answers(channel, provider, model, zone, limit)
    secrets = answers.secrets()
    write_private(env_file, env_text(read_present(env_file), secrets))
    write_private(config_file, config_text(answers))
    say(f"\nWrote {config_file} and {env_file}. The bot starts now; Ctrl-C ends it.")
    say(f"Later: make run CONFIG={config_file}\n")
    _warn_of_environment(secrets, environ)
    left = {name: value for name, value in environ.items() if name not in secrets}
    return start(load(config_file, left), options.data, console=False)


def _may_write(config_file: Path, env_file: Path) -> bool:
    """Whether nothing is there yet, or whoever asks wants it replaced."""
    if config_file.exists():
        return confirm(f"{config_file} is here already. Replace it (and the keys in {env_file})?")
    return not env_file.exists() or confirm(f"{env_file} is here already. Set the keys in it?")


def _telegram(environ: Mapping[str, str]) -> Endpoint:
    variables = CHANNEL_VARIABLES["telegram"]
    base_url = environ.get(variables["base_url"]) or None
    given = environ.get(variables["token"], "")

    def take(token: str) -> Endpoint:
        try:
            settings = TelegramSettings.model_validate({"token": token, "base_url": base_url})
            bot = asyncio.run(probe_telegram(settings))
        except ValidationError as error:
            raise Refused(_first(error)) from None
        except ChannelError as error:
            raise Refused(str(error)) from None
        say(f"  fine: @{bot.username}")
        return Endpoint("telegram", {"token": token}, base_url)

    question = f"Bot token from @BotFather{_or_given(given, variables['token'])}"
    return ask(question, take, default=given, hidden=True)


def _slack(environ: Mapping[str, str]) -> Endpoint:
    variables = CHANNEL_VARIABLES["slack"]
    base_url = environ.get(variables["base_url"]) or None
    say(_SLACK_STEPS)
    while True:
        tokens = {
            key: ask(
                f"{name}{_or_given(environ.get(variables[key], ''), variables[key])}",
                _secret,
                default=environ.get(variables[key], ""),
                hidden=True,
            )
            for key, name in (("bot_token", "Bot token"), ("app_token", "App-level token"))
        }
        try:
            settings = SlackSettings.model_validate({**tokens, "base_url": base_url})
            bot = asyncio.run(probe_slack(settings))
        except ValidationError as error:
            tell(f"  {_first(error)}")
        except ChannelError as error:
            tell(f"  {error}")
        else:
            say(f"  fine: {bot.name} in {bot.team}")
            return Endpoint("slack", tokens, base_url)


def _model(environ: Mapping[str, str]) -> tuple[Endpoint, ModelSettings]:
    given = next(
        ((name, environ[name]) for name in _key_variables() if environ.get(name)), ("", "")
    )

    def take(key: str) -> tuple[Endpoint, ModelSettings]:
        provider, model = _provider(key, environ)
        try:
            settings = ProviderSettings.model_validate(
                {"kind": provider.name, "base_url": provider.base_url, **provider.secrets}
            )
            asyncio.run(probe_model(provider.name, settings, model))
        except ValidationError as error:
            raise Refused(_first(error)) from None
        except ProbeFailed as error:
            raise Refused(f"{provider.name}, {model.id}: {error}") from None
        say(f"  fine: {model.id} answers")
        if model.price is None:
            say("  its price is not known: add it in the file, else no limit can stop it")
        return provider, model

    question = f"Key of Anthropic (sk-ant-...) or OpenAI{_or_given(given[1], given[0])}"
    return ask(question, take, default=given[1], hidden=True)


def _provider(key: str, environ: Mapping[str, str]) -> tuple[Endpoint, ModelSettings]:
    """Whose key it is, and the model that it is for. An endpoint of one's own may need no key."""
    kind = "anthropic" if key.startswith(ANTHROPIC_PREFIX) else "openai"
    base_url = environ.get(PROVIDER_VARIABLES[kind]["base_url"]) or None
    keyless = not key and kind == "openai" and base_url is not None
    secrets = {} if keyless else {"api_key": _secret(key)}
    model = model_settings(kind, kind, environ.get(MODEL_VARIABLE) or DEFAULTS[kind])
    return Endpoint(kind, secrets, base_url), model


def _key_variables() -> list[str]:
    return [variables["api_key"] for variables in PROVIDER_VARIABLES.values()]


def _or_given(value: str, variable: str) -> str:
    return f" (hidden; Enter: that of {variable})" if value else " (hidden)"


def _secret(text: str) -> str:
    """A key or token as it can stand in a header and in `.env`."""
    if not text:
        raise Refused("nothing was typed; what you paste is not shown, so press Enter after it")
    if not text.isascii() or not text.isprintable() or set(text) & set(" '\"\\"):
        raise Refused("it holds characters that no key has; was more than the key copied?")
    return text


def _zone(name: str) -> str:
    if not is_zone(name):
        raise Refused(f"that is no IANA time zone{zone_hint(name)}")
    return name


def _limit(text: str) -> float:
    try:
        limit = float(text.removeprefix("$"))
        if not math.isfinite(limit):
            raise Refused("a number such as 20")
        return Limits(cost_per_month_usd=limit).cost_per_month_usd
    except ValidationError as error:
        raise Refused(_first(error)) from None
    except ValueError:
        raise Refused("a number such as 20") from None


def _warn_of_environment(secrets: Mapping[str, str], environ: Mapping[str, str]) -> None:
    for name, value in secrets.items():
        if environ.get(name, value) != value:
            tell(f"{name} is set differently in the environment, which goes before .env: unset it")


def _first(error: ValidationError) -> str:
    """What is wrong, without the value."""
    found = error.errors(include_input=False, include_url=False)[0]
    return found["msg"].removeprefix("Value error, ")
