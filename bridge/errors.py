"""What a chat is told when something fails: one clear sentence and an error id.

The log and the errors table get the trace, with secrets removed; the chat never does. A provider's
refusal is no fault of ours: the log gets one line of it, the errors table the provider's words.
"""

from __future__ import annotations

import logging
import math
import secrets
import traceback

from agent.errors import ProviderDown, ProviderError, RefusalKind
from bridge.log import Redactor
from bridge.texts import Say
from memory.errors import Linked, StoreError
from memory.operators.errorlog import ErrorLog

log = logging.getLogger(__name__)

# Letters and digits that cannot be mistaken for each other when somebody reads an id aloud.
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

_OF_REFUSAL = {
    RefusalKind.OVERFLOW: "error_overflow",
    RefusalKind.OUTPUT_CAP: "error_overflow",
    RefusalKind.REQUEST_TOO_LARGE: "error_too_large",
    RefusalKind.FORMAT: "error_format",
    RefusalKind.RATE_LIMIT: "error_rate_limit",
    RefusalKind.QUOTA: "error_quota",
    RefusalKind.AUTH: "error_auth",
    RefusalKind.TRANSIENT: "error_transient",
    RefusalKind.CONTENT_FILTER: "error_content_filter",
    RefusalKind.MEDIA: "error_media",
    RefusalKind.UNKNOWN: "error_unknown",
}


def sentence_key(error: BaseException) -> str:
    """The key of the text that tells a person about `error`."""
    if isinstance(error, ProviderError):
        if error.refusal.kind is RefusalKind.UNKNOWN and error.refusal.status is None:
            return "error"  # nobody refused: a mistake of ours
        return _OF_REFUSAL.get(error.refusal.kind, "error")
    if isinstance(error, ProviderDown):
        return _OF_REFUSAL.get(error.kind, "error")
    if isinstance(error, Linked):
        return "error_linked"
    if isinstance(error, StoreError | OSError):  # the database, or a day's file
        return "error_store"
    return "error"


def sentence(error: BaseException, say: Say, error_id: str) -> str:
    """What a person is told about `error`."""
    if isinstance(error, ProviderError) and error.refusal.kind is RefusalKind.RATE_LIMIT:
        wait_s = error.refusal.retry_after_s or 0
        if wait_s > _A_MINUTE_S:
            return say("error_rate_limit_for", minutes=math.ceil(wait_s / 60), id=error_id)
    return say(sentence_key(error), id=error_id)


_A_MINUTE_S = 90.0  # what "in a minute" covers

_RETRYING = {
    RefusalKind.TRANSIENT: "retrying",
    RefusalKind.RATE_LIMIT: "retrying_later",
    RefusalKind.OVERFLOW: "retrying_shorter",
    RefusalKind.REQUEST_TOO_LARGE: "retrying_shorter",
}


def retrying_key(why: RefusalKind | None) -> str:
    """The key of the text that tells why a model call is made again; None: another model is asked."""
    return "retrying_other" if why is None else _RETRYING.get(why, "retrying_changed")


_WHY_DOWN = {
    RefusalKind.AUTH: "provider_down_auth",
    RefusalKind.QUOTA: "provider_down_quota",
}


def outage_key(down: ProviderDown) -> str:
    """The key of the text that tells a chat why its question waits."""
    return _WHY_DOWN.get(down.kind, "provider_down")


class ErrorReporter:
    """Gives errors an id, logs them, and keeps them for `galata error ID`."""

    def __init__(self, errors: ErrorLog, redactor: Redactor) -> None:
        self._errors = errors
        self._redactor = redactor

    async def report(self, error: BaseException, place: str) -> str:
        """The error's new id. `place` says where it happened, in ids only. Never raises."""
        error_id = "".join(secrets.choice(_ALPHABET) for _ in range(8))
        if isinstance(error, ProviderError | ProviderDown):
            log.warning("error %s in %s: %s", error_id, place, _in_short(error))
        else:
            log.error("error %s in %s", error_id, place, exc_info=error)
        trace = "".join(traceback.format_exception(error))
        try:
            await self._errors.add(error_id, place, self._redactor.clean(trace))
        except StoreError as failure:
            log.warning("error %s could not be stored: %s", error_id, failure)
        return error_id


def _in_short(error: ProviderError | ProviderDown) -> str:
    """Without the provider's own words, which may quote what a person wrote."""
    if isinstance(error, ProviderDown):
        return str(error)
    return f"{error.provider}: {error.refusal.kind} (HTTP {error.refusal.status})"
