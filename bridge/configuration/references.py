"""`${NAME}` and `${file:/path}` within values: secrets that are not written into the file itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_MOST_BYTES = 64 * 1024  # of a file that holds one secret
# `$${` gives a plain `${`.
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<what>[^}]*)(?P<end>\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = "file:"


class Unresolved(Exception):
    """A reference cannot be resolved; the text says which, and what to do."""


class References:
    """Resolves references from the environment, else from a `.env` file (`fallback`).

    `where` names that file in messages.
    """

    def __init__(self, environ: Mapping[str, str], fallback: Mapping[str, str], where: str) -> None:
        self._environ = environ
        self._fallback = fallback
        self._where = where

    def resolve(self, text: str) -> str:
        """The text with every reference replaced. Raises `Unresolved`."""
        if "${" not in text:
            return text
        return _REFERENCE.sub(self._replace, text)

    def _replace(self, found: re.Match[str]) -> str:
        what: str | None = found["what"]
        if what is None:
            return "${"
        if found["end"] and what.startswith(_FILE):
            return _read(Path(what.removeprefix(_FILE)))
        if not found["end"] or not _NAME.fullmatch(what):
            raise Unresolved("a reference is written ${NAME} or ${file:/path}; $${ for a plain ${")
        value = self._environ.get(what) or self._fallback.get(what)
        if not value:
            raise Unresolved(f"{what} is not set: set it in the environment or in {self._where}")
        return value


def _read(path: Path) -> str:
    if not path.is_absolute():
        raise Unresolved("the path after ${file: must begin with /")
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
        value = raw.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        raise Unresolved(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Unresolved(f"{path} is not UTF-8 text") from None
    if not value or len(raw) > _MOST_BYTES:
        raise Unresolved(f"{path} is empty or larger than {_MOST_BYTES} bytes")
    return value
