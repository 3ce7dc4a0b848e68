"""What can go wrong in the store.

StoreError
 ├── StoreUnavailable   locked, full, read-only, or no database: nothing was stored
 ├── StoreTooNew        the database was written by a newer version of Galata
 └── StoreTooOld        it was written by an older version, and only a start of the bot may change it
"""

from __future__ import annotations


class StoreError(Exception):
    """The root of this tree; the text says what, where and what to do."""


class StoreUnavailable(StoreError):
    """Nothing was stored; the same call may work later."""


class StoreTooNew(StoreError):
    """The database's schema is newer than this program."""


class StoreTooOld(StoreError):
    """The database's schema is older than this program, and is not brought up to date here."""
