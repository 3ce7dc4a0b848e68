"""Everything that `galata doctor` checks once Galata's packages are known to be its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bridge.cli import checks_here, checks_there
from bridge.cli.finding import Finding
from bridge.cli.options import CommandFailed, Options
from bridge.config import ENV_FILE, Config
from bridge.log import Redactor
from bridge.operation.data_folder import DATABASE
from memory.errors import StoreError, StoreTooOld
from memory.settings import BackupSettings


def examine(options: Options) -> list[Finding]:
    """All findings, without secrets; what needs the configuration is left out when that is bad."""
    findings: list[Finding] = [checks_here.python(), checks_here.libraries()]
    config, told = _configuration(options)
    redactor = Redactor(() if config is None else config.secrets())
    findings += told
    findings += checks_here.files(options.data, _secrets(options))
    path = options.data / DATABASE
    size = path.stat().st_size if path.is_file() else None
    findings += asyncio.run(_asked(checks_here.database(path, size), config))
    if config is not None and size is not None:
        findings += asyncio.run(_moved(path, config))
    if config is not None and size is not None:
        findings.append(asyncio.run(_backups(options.data, config.backup)))
    clean = [replace(one, text=redactor.clean(one.text)) for one in findings]
    return clean if config is None else [_as_given(one, config) for one in clean]


def _as_given(finding: Finding, config: Config) -> Finding:
    named = config.as_given
    return replace(finding, text=named(finding.text), fix=named(finding.fix))


def _configuration(options: Options) -> tuple[Config | None, list[Finding]]:
    try:
        config = options.load_config()
    except CommandFailed as error:
        faults = [Finding("FAIL", "config", line) for line in str(error).splitlines()]
        return None, faults + _exposed(options, frozenset())
    open_to_others = _exposed(options, config.secrets())
    return config, open_to_others or [Finding("ok", "config", _source(options))]


def _exposed(options: Options, secrets: frozenset[str]) -> list[Finding]:
    return [] if options.config is None else checks_here.config_file(options.config, secrets)


def _source(options: Options) -> str:
    return "the environment" if options.config is None else str(options.config)


def _secrets(options: Options) -> Path | None:
    """The file of secrets that the configuration reads."""
    return None if options.config is None else options.config.parent / ENV_FILE


async def _backups(data: Path, settings: BackupSettings | None) -> Finding:
    now = datetime.now(UTC)
    if settings is None:
        return checks_here.backups_by_hand(data, now)
    try:
        return await checks_here.backups(data, settings, now)
    except StoreTooOld:
        return Finding("note", "backup", "not known before the next start")
    except StoreError as error:
        return Finding("FAIL", "backup", f"not known: {error}")


async def _moved(path: Path, config: Config) -> list[Finding]:
    try:
        return await checks_here.moved_chats(path, config)
    except StoreError:
        return []  # the check of the database has said so


async def _asked(database: Awaitable[Finding], config: Config | None) -> list[Finding]:
    """The checks that wait for others, all at once."""
    if config is None:
        return [await database]
    models = asyncio.ensure_future(checks_there.models(config))
    found = await asyncio.gather(
        database,
        checks_there.telegram(config),
        checks_there.members(config),
        checks_there.slack(config),
    )
    first, *rest = (finding for finding in found if finding is not None)
    return [first, *await models, *rest]
