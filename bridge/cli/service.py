"""`galata service install`: a systemd unit of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from bridge.cli.options import CONFIG_FILE, FINE, CommandFailed, Options, say

NAME = "galata.service"
_CLOSING_S = 25  # beside the patience: deliver what is under way, write, close
_OF_A_SERVICE = ("HOME", "PATH")  # of the variables that configurations use; systemd sets few

_UNIT = """\
# Written by `galata service install`.
[Unit]
Description=Galata, an LLM agent in chat platforms
# Never given up: a full or read-only disk may be mended hours later.
StartLimitIntervalSec=0

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=15s
TimeoutStopSec={stop_s}s
KillMode=mixed
UMask=0077

[Install]
WantedBy=default.target
"""


def install(options: Options) -> int:
    """Write the unit, or print it, and say what to do with it. Raises `CommandFailed`."""
    config = _checked(options)
    text = unit(sys.executable, options.data.absolute(), config.absolute())
    if options.print_only:
        say(text.rstrip())
        return FINE
    path = _folder(options.environ) / NAME
    was_there = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from None
    say(
        f"{'replaced' if was_there else 'wrote'} {path}: it runs the bot of {config} on "
        f"{options.data}\n"
        "To start it now and at each boot, also when you are not logged in:\n"
        "  systemctl --user daemon-reload && systemctl --user enable --now galata\n"
        "  loginctl enable-linger\n"
        "Its log: journalctl --user --unit galata"
    )
    return FINE


def unit(python: str, data: Path, config: Path) -> str:
    """The unit's text."""
    from bridge.operation.signals import PATIENCE_S

    words = [
        _quoted(python),
        *("-P", "-m", "bridge", "run"),
        *("--data", _argument(data), "--config", _argument(config)),
    ]
    return _UNIT.format(command=" ".join(words), stop_s=int(PATIENCE_S) + _CLOSING_S)


def _checked(options: Options) -> Path:
    """The configuration, which must do without the variables of this shell."""
    from bridge.config import ENV_FILE, ConfigError, load

    path = options.config or Path(CONFIG_FILE)
    if not path.is_file():
        raise CommandFailed(
            f"{path} is not there: a service needs a configuration file (galata setup writes one)"
        )
    try:
        load(path, {name: options.environ.get(name, "") for name in _OF_A_SERVICE})
    except ConfigError as error:
        env_file = path.parent / ENV_FILE
        raise CommandFailed(
            f"{error}\nA service does not see the variables of your shell: keep what the file names "
            f"as ${{NAME}} in {env_file}, as NAME=…"
        ) from None
    return path


def _folder(environ: Mapping[str, str]) -> Path:
    """Where systemd looks for units of this user. Raises `CommandFailed`."""
    given, home = environ.get("XDG_CONFIG_HOME"), environ.get("HOME")
    if given:
        return Path(given) / "systemd" / "user"
    if home:
        return Path(home) / ".config" / "systemd" / "user"
    raise CommandFailed("HOME is not set: use --print, and put the unit where it belongs")


def _quoted(text: str) -> str:
    """A word as systemd reads it: quotes, backslashes and specifiers are escaped."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _argument(path: Path) -> str:
    """As `_quoted`, where variables are filled in as well."""
    return _quoted(str(path)).replace("$", "$$")
