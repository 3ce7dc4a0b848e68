"""`galata config check` and `galata config show`."""

from __future__ import annotations

from bridge.cli.options import FINE, Options, say


def check(options: Options) -> int:
    """Say that the configuration is fine; its faults come out as `CommandFailed`."""
    options.load_config()
    say(f"{options.config or 'environment'}: fine")
    return FINE


def show(options: Options) -> int:
    """The configuration as it is understood."""
    from bridge.config import masked

    say(masked(options.load_config()).rstrip())
    return FINE
