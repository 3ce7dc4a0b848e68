"""`galata setup`: from a clone to the first answer, with four questions and no editor.

Every answer is checked with a real call. Once more, or for the other channel, it goes on from what
is there: Enter keeps an answer, and only what differs is written. Nothing is written before the last
question. At the end the bot runs, and prints the one-time link that makes whoever opens it first
its owner.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from bridge.cli.options import (
    CONFIG_FILE,
    FAILED,
    WRONG_USE,
    CommandFailed,
    Options,
    say,
    tell,
)
from bridge.cli.run import start
from bridge.cli.setup_answers import Answers, number
from bridge.cli.setup_changes import again, first
from bridge.cli.setup_channels import ask_channel
from bridge.cli.setup_earlier import Earlier, read_earlier, variables
from bridge.cli.setup_files import (
    copy_beside,
    env_of,
    env_text,
    must_be_writable,
    read_file,
    write_private,
)
from bridge.cli.setup_model import ask_first_model, ask_model_again
from bridge.cli.terminal import Refused, ask, confirm
from bridge.config import ENV_FILE, Config, ConfigError, load
from bridge.configuration.settings import Installation
from bridge.timezones import is_zone, system_zone, zone_hint

_CHANNELS = {"telegram": "Telegram", "slack": "Slack"}


def setup(options: Options) -> int:
    """Ask, check, write config.yaml and .env, and start the bot. Raises `CommandFailed`."""
    if not sys.stdin.isatty():
        tell("galata: setup asks questions, so it needs a terminal")
        return WRONG_USE
    config_file = options.config or Path(CONFIG_FILE)
    env_file = config_file.parent / ENV_FILE
    must_be_writable(config_file.parent)
    there = {path: read_file(path) for path in (env_file, config_file)}
    env = env_of(there[env_file], env_file)
    channel = "slack" if options.slack else "telegram"
    given = variables(env, options.environ)
    contents: dict[Path, bytes] = {}
    try:
        earlier = _earlier(config_file, there[config_file], options.environ)
    except ConfigError as error:
        copy = copy_beside(config_file)
        if not _start_over(config_file, copy, error):
            return FAILED
        earlier, contents = None, {copy: there[config_file] or b""}
    if earlier is None:
        written = first(first_answers(channel, given))
    else:
        written = again(earlier, _ask_again(config_file, channel, earlier, given))
    contents[env_file] = env_text(env, written.secrets).encode()
    contents[config_file] = written.config.encode()
    _write(contents, there)
    say(f"Later: make run CONFIG={config_file}\n")
    return start(_load(config_file, options.environ, written.secrets), options, console=False)


def _earlier(path: Path, raw: bytes | None, environ: Mapping[str, str]) -> Earlier | None:
    """The configuration that is there, if one is. Raises `ConfigError`."""
    return None if raw is None else read_earlier(path, raw, environ)


def _write(contents: Mapping[Path, bytes], there: Mapping[Path, bytes | None]) -> None:
    """Replace what differs from what was there before the questions. Raises `CommandFailed`, and
    changes nothing, when somebody has changed it meanwhile."""
    for path, content in there.items():
        if read_file(path) != content:
            raise CommandFailed(f"{path} has been changed meanwhile; nothing was written")
    write_private(
        {path: content for path, content in contents.items() if content or there.get(path)}
    )
    changed = [
        str(path) for path, content in contents.items() if content != (there.get(path) or b"")
    ]
    say(f"\nWritten: {', '.join(changed) or 'nothing, all is as it was'}.")
    say("The bot starts now; Ctrl-C ends it.")


def _start_over(config_file: Path, copy: Path, error: ConfigError) -> bool:
    """Whether a configuration that cannot be used is to be replaced. Raises `CommandFailed` where
    the fault is not in it."""
    tell(str(error))
    if error.source != str(config_file):
        raise CommandFailed("Nothing was changed.")
    tell(f"{config_file} cannot be used as it is: mend it, or start over.")
    if confirm(f"Start over, and keep a copy of it as {copy}?"):
        return True
    say("Nothing was changed.")
    return False


def first_answers(channel: str, given: Mapping[str, str]) -> Answers:
    """All the questions, four of them. `given`: what the environment or `.env` offers."""
    endpoint = ask_channel(channel, None, given)
    provider, model = ask_first_model(given)
    zone = system_zone(given)
    if len(endpoint.secrets) == 1:
        zone = ask("Time zone", _zone, default=zone or "UTC")
    elif zone is not None:  # a question less for the second token
        say(f"  time zone: {zone}, this system's; timezone in the configuration changes it")
    else:
        say("  time zone: each person's, as Slack has it; timezone in the configuration changes it")
    return Answers(
        (endpoint,), provider, model, zone, _ask_limit(Installation().cost_per_month_usd)
    )


def _ask_again(
    config_file: Path, channel: str, earlier: Earlier, given: Mapping[str, str]
) -> Answers:
    """The same, with the earlier answers; for a channel that is new, only what concerns it. What
    the configuration lacks to run is asked in any case."""
    is_new = not earlier.has_channel(channel)
    stays = f"{_CHANNELS[channel]} is added" if is_new else "Enter keeps an answer"
    say(f"{config_file} is here: {stays}, and all else in it stays.")
    lacking = [name for name in _CHANNELS if name != channel and earlier.lacks("channels", name)]
    channels = tuple(ask_channel(name, earlier, given) for name in (channel, *lacking))
    kept = replace(earlier.answers(), channels=channels)
    if is_new and not earlier.lacks("providers"):
        return kept
    provider, model = ask_model_again(earlier, given)
    zone = ask("Time zone", _zone, default=kept.timezone or "UTC")
    return Answers(channels, provider, model, zone, _ask_limit(kept.limit_usd))


def _zone(name: str) -> str:
    if not is_zone(name):
        raise Refused(f"that is no IANA time zone{zone_hint(name)}")
    return name


def _ask_limit(default: float) -> float:
    """USD per month. None is refused, unless the configuration had it so."""

    def take(text: str) -> float:
        try:
            limit = float(text.removeprefix("$"))
            limit = Installation(cost_per_month_usd=limit).cost_per_month_usd
        except ValidationError:
            raise Refused("a number from 0.01 to 1000000, such as 20") from None
        except ValueError:
            raise Refused("a number such as 20") from None
        if limit == 0 and default:
            raise Refused("with 0 the bot would never answer")
        return limit

    return ask("Spending limit per month, in USD", take, default=number(default))


def _load(config_file: Path, environ: Mapping[str, str], typed: Mapping[str, str]) -> Config:
    """What was written. What was typed goes before the environment, this time. Raises
    `CommandFailed`."""
    for name, value in typed.items():
        if environ.get(name, value) != value:
            tell(f"{name} is set differently in the environment, which goes before .env: unset it")
    left = {name: value for name, value in environ.items() if name not in typed}
    try:
        return load(config_file, left)
    except ConfigError as error:
        raise CommandFailed(str(error)) from None
