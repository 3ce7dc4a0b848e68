"""`galata backup PATH` and `galata restore ARCHIVE`."""

from __future__ import annotations

from datetime import UTC, datetime

from bridge.cli.options import FINE, CommandFailed, Options, say, tell


def back_up(options: Options) -> int:
    """One archive of everything, also while the bot runs. Raises `CommandFailed`."""
    from bridge.operation.backup import BackupFailed, file_name, make

    now = datetime.now(UTC)
    target = options.file / file_name(now) if options.file.is_dir() else options.file
    try:
        made = make(options.data, target, _config(options), now)
    except BackupFailed as error:
        raise CommandFailed(str(error)) from None
    say(f"{made.path}: {made.files} files, {made.size / 1e6:.1f} MB; it holds no secrets")
    return FINE


def restore(options: Options) -> int:
    """Unpack an archive into an empty folder and check it. Raises `CommandFailed`."""
    from bridge.operation.data_folder import FolderRefused, held
    from bridge.operation.restore import RestoreFailed
    from bridge.operation.restore import restore as unpack

    if not options.file.is_file():
        raise CommandFailed(f"{options.file} is not there")
    try:
        with held(options.data):
            restored = unpack(options.file, options.data)
    except (FolderRefused, RestoreFailed) as error:
        raise CommandFailed(str(error)) from None
    say(
        f"{options.data} holds the backup of {restored.made_at}: {restored.files} files, "
        f"{restored.messages} messages; the database is whole"
    )
    say(
        "what was said after that is not in it: in Slack, questions of that time that the bot has "
        "answered are not answered again, and others are"
    )
    if restored.config is not None:
        say(f"{restored.config} is its configuration; secrets are not in it: put them in again")
    return FINE


def _config(options: Options) -> str | None:
    """The configuration without secrets. One with faults is no reason to have no backup."""
    from bridge.config import masked

    try:
        return masked(options.load_config())
    except CommandFailed as error:
        tell(f"{error}\nThe backup is made without the configuration.")
        return None
