"""What a process that died has left of memory files in the making: it may hold what was forgotten."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from memory.markdown.files import FRESH, locked, names
from memory.markdown.versions import FOLDER
from memory.scopes import CHANGES, FACTS, day_of

log = logging.getLogger(__name__)


def clear_leftovers(memory: Path) -> int:
    """Remove them in all scopes' folders; how many. Blocks. What cannot be removed is logged."""
    cleared = 0
    for folder in sorted(memory.iterdir()) if memory.is_dir() else []:
        try:
            if folder.is_dir() and not folder.is_symlink() and any(_left(folder)):
                with locked(folder):  # nobody has one in the making
                    for path in _left(folder):
                        path.unlink(missing_ok=True)
                        cleared += 1
        except OSError as error:
            log.warning("%s keeps what a crash has left in it: %s", folder.name, error)
    return cleared


def _left(folder: Path) -> Iterator[Path]:
    for one in (folder, folder / CHANGES, folder / FOLDER):
        for name in names(one):
            of = name.removesuffix(FRESH)
            if name.endswith(FRESH) and (of in ("", FACTS) or day_of(of) is not None):
                yield one / name
