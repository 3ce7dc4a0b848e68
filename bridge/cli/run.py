"""`galata run` and `galata chat`."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bridge.cli.options import Options

if TYPE_CHECKING:
    from bridge.config import Config
    from bridge.reloading import Source

OWNER_ONLY = 0o077  # files that are created are nobody else's business


def run(options: Options) -> int:
    """The channels that are configured; the terminal too, where there is one, or nothing else."""
    with _without_collecting():
        config = options.load_config()
        on = config.channels.telegram or config.channels.slack
        console = on is None or sys.stdin.isatty()
        return start(config, options, console=console, reloads=True)


def chat(options: Options) -> int:
    """The terminal only."""
    from bridge.configuration.settings import Channels

    with _without_collecting():
        config = options.load_config()
        quiet = {} if "level" in config.log.model_fields_set else {"level": "WARNING"}
        terminal_only = config.model_copy(
            update={"channels": Channels(), "log": config.log.model_copy(update=quiet)}
        )
        return start(terminal_only, options, console=True)


@contextmanager
def _without_collecting() -> Generator[None]:
    """Modules are no garbage, and looking for it takes a tenth of a start. The app collects again once
    the last of them is imported."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def start(config: Config, options: Options, *, console: bool, reloads: bool = False) -> int:
    """Run the bot until it ends; its exit code. `reloads`: what changes in the configuration's file is
    taken over. Raises `CommandFailed`."""
    if config.local_model:
        from bridge.cli.embedded import prepare

        prepare()
    os.umask(OWNER_ONLY)
    from bridge.app import run_app
    from bridge.operation.token_lock import runtime_folder

    runtime = runtime_folder(options.environ)
    source = _source(options) if reloads else None
    return asyncio.run(
        run_app(config, data=options.data, runtime=runtime, console=console, source=source)
    )


def _source(options: Options) -> Source | None:
    from bridge.config import load
    from bridge.reloading import Source

    path = options.config
    return None if path is None else Source(path, lambda: load(path, options.environ))
