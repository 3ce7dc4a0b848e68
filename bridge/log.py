"""Logging: ids and sizes, JSON by a switch, and secrets nowhere.

The redactor sits on every handler and cleans what is formatted, traces included, so that a token in
a URL or in an exception of a library does not get out. Chat texts and stored errors go through it as
well. What libraries log that carry messages is cut down to the words that are the library's own: they
print bodies of requests and responses, at ERROR too.
"""

from __future__ import annotations

import copy
import json
import logging
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

MASK = "[secret]"

# Tokens that are recognisable by their form, also when nobody told us their value.
_PATTERNS = re.compile(
    r"\bbot\d{6,}:[A-Za-z0-9_-]{20,}"  # Telegram's token within a URL
    r"|\b\d{6,}:[A-Za-z0-9_-]{30,}"  # Telegram's token
    r"|\bxox[a-z]-[A-Za-z0-9-]{8,}|\bxapp-[A-Za-z0-9-]{8,}"  # Slack
    r"|\bsk-[A-Za-z0-9_-]{16,}"  # Anthropic and OpenAI
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{8,}"
)

# Libraries that log URLs, and so Telegram's token, at INFO (field case 163).
_NOISY = ("httpx", "httpx2", "httpcore", "httpcore2", "telegram", "slack_bolt", "slack_sdk",
          "anthropic", "openai", "apscheduler", "aiosqlite", "aiohttp.access", "aiohttp.client",
          "watchfiles")  # fmt: skip


# Libraries through which messages go. PTB logs a response that is no JSON as a whole, Bolt a request
# that nothing handles.
_CARRYING = ("httpx", "httpx2", "httpcore", "httpcore2", "telegram", "slack_bolt", "slack_sdk",
             "channels.slack.sdk", "anthropic", "openai", "aiohttp.client")  # fmt: skip
_NAMES = re.compile(rf"(?:{'|'.join(map(re.escape, _CARRYING))})(?:[.:]|$)")
_OWN_WORDS = re.compile(r"[A-Za-z][A-Za-z ,.'-]{0,79}")  # how such a line begins, before any value


def withheld(record: logging.LogRecord) -> logging.LogRecord:
    """The record, of a library that carries messages only its first words, the size of the rest, the
    place in its code and the type of an exception."""
    if not _NAMES.match(record.name):
        return record
    begins = _OWN_WORDS.match(str(record.msg).partition("%")[0])
    words = begins[0].strip() if begins else ""
    error = record.exc_info[0] if record.exc_info else None
    rest = f"{len(record.getMessage()) - len(words)} more characters withheld"
    place = f"{record.filename}:{record.lineno}"
    only = copy.copy(record)
    kept = [rest, place] if error is None else [rest, error.__name__, place]
    only.msg = f"{words} ({', '.join(kept)})"
    only.args = only.exc_info = only.exc_text = only.stack_info = None
    return only


class Redactor:
    """Replaces secrets in texts. Values of six characters or more are replaced wherever they stand."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._known: re.Pattern[str] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """More values that must never get out."""
        self._values |= {value for value in secrets if len(value) >= 6}
        longest_first = sorted(self._values, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def clean(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return _PATTERNS.sub(MASK, text)


class _CleanFormatter(logging.Formatter):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redactor = redactor

    def formatMessage(self, record: logging.LogRecord) -> str:
        """One line, whatever was put into it: a line break must not forge a record."""
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.clean(super().format(withheld(record)))


class _JsonFormatter(logging.Formatter):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        record = withheld(record)
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        cleaned = {key: self._redactor.clean(value) for key, value in document.items()}
        return json.dumps(cleaned, ensure_ascii=False)


def setup(level: str, *, as_json: bool, redactor: Redactor) -> None:
    """Log to standard error at `level`; replaces the handlers of the root logger."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter(redactor) if as_json else _CleanFormatter(redactor))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
