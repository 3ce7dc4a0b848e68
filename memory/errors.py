"""What can go wrong in the store, and with the files of memories.

StoreError
 ├── StoreUnavailable   locked, full, read-only, or no database: nothing was stored
 │    ├── IndexDamaged  the index of the search is damaged, which is built anew
 │    └── StoreDamaged  the file itself is damaged: nothing will be stored until another start
 ├── StoreTooNew        the database was written by a newer version of Galata
 └── StoreTooOld        it was written by an older version, and only a start of the bot may change it

OSError
 └── Linked             a file or folder of a memory is a link, and none is followed
"""

from __future__ import annotations

import errno
from pathlib import Path


class StoreError(Exception):
    """The root of this tree; the text says what, where and what to do."""


class StoreUnavailable(StoreError):
    """Nothing was stored; the same call may work later."""


class IndexDamaged(StoreUnavailable):
    """The index of the search is damaged; the file is whole, and holds what the index is made of."""


class StoreDamaged(StoreUnavailable):
    """The file is damaged; nothing more is written into it."""


class StoreTooNew(StoreError):
    """The database's schema is newer than this program."""


class StoreTooOld(StoreError):
    """The database's schema is older than this program, and is not brought up to date here."""


class Linked(OSError):
    """A file or folder of a memory is a link, which may lead out of it: it is not followed."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ELOOP, "it is a link, and none is followed", str(path))
