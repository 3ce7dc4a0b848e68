"""The one classifier of provider refusals for the whole project.

Typed status and code come first, words second: some words (`token limit`, `reduce`, `billing`)
stand in refusals of several kinds, and some providers give a code that means something else. The
tables are in `agent.providers.wordings`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from agent.errors import Refusal, RefusalKind
from agent.providers import wordings

K = RefusalKind
MOST_DETAIL = 500  # characters of a refusal that are logged
MOST_READ = 20_000  # characters of a body that are read; no refusal is longer

_HTML = re.compile(r"\s*<(?:!doctype|html|head|body)", re.IGNORECASE)
# Ids of accounts and projects, keys (masked ones too), bearer tokens, addresses, and every long
# word that has digits and letters. A request's id stays: support asks for it.
_SECRETS = re.compile(
    r"\b(?:sk|ak|pk|rk|org|proj|acct)[-_][\w*.-]{3,}"
    r"|\b(?:key|user|team|account|project|workspace)[-_](?=[\w-]*\d)[\w-]{3,}"
    r"|\S*\*{3,}\S*"
    r"|https?://\S+|\b[\w.+-]+@[\w-]+\.\w+"
    r"|\bbearer \S+"
    r"|(?!req_)\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{24,}\b",
    re.IGNORECASE,
)
_TYPED_KEYS = frozenset({"type", "code", "status", "error_code", "error_type", "reason"})


@dataclass(frozen=True, slots=True)
class _Said:
    """A body, read: all its words, the same in lower case, and its typed codes in lower case."""

    words: str
    lowered: str
    codes: frozenset[str]


def classify(status: int | None, body: object, retry_after_s: float | None = None) -> Refusal:
    """What a refusal wants.

    `body`: the response as text (JSON, plain, HTML, or nothing) or already parsed. `retry_after_s`:
    the Retry-After header in seconds; without it, what the words say. The numbers of the refusal:
    for an overflow the window and the input, for an output cap the largest answer that is allowed
    and the one that was asked for, for a request that is too large the quota and the request.
    """
    said = _read(body)
    if status is None:
        status = next((s for t, s in wordings.STATUS_OF_TYPE.items() if t in said.codes), None)
    kind = _kind(status, said)
    limit, requested = _numbers(kind, said.lowered)
    return Refusal(
        kind=kind,
        status=status,
        limit_tokens=limit,
        requested_tokens=requested,
        retry_after_s=_wait(said.lowered) if retry_after_s is None else retry_after_s,
        detail=detail_of(said.words),
    )


def refusal_of(error: Exception) -> Refusal:
    """A failed call's refusal, whatever the SDK or its HTTP library raised.

    Both SDKs put `status_code`, `response` and `body` on their errors of status; an error event in
    a stream has a body and no status of its own (Anthropic's: the stream's 200). Everything else
    that they or httpx2 raise means that the connection or the stream broke.
    """
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    if isinstance(status, int) and status >= 400:
        response: Any = getattr(error, "response", None)
        headers: Mapping[str, str] = {} if response is None else response.headers
        return classify(status, str(error) if body is None else body, _retry_after(headers))
    if body:
        return classify(None, body)
    return Refusal(K.TRANSIENT, detail=f"{type(error).__name__}: {detail_of(str(error))}")


def detail_of(text: str) -> str:
    """The words for the log: one bounded line, without ids of accounts, keys and addresses."""
    return _SECRETS.sub("[…]", " ".join(text[: 4 * MOST_DETAIL].split()))[:MOST_DETAIL]


def _read(body: object) -> _Said:
    """An HTML page says nothing; an error may be an object, flat or nested, or a bare string."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        body = body[:MOST_READ]
        if _HTML.match(body):
            return _Said("an HTML page", "", frozenset())
        try:
            body = json.loads(body)
        except ValueError:
            return _Said(str(body), str(body).lower(), frozenset())
    found = list(_leaves("", body))
    words = " ".join(text for _, text in found)
    codes = frozenset(text.lower() for key, text in found if key in _TYPED_KEYS)
    return _Said(words, words.lower(), codes)


def _leaves(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Each string and number in a JSON value, with the key that it stands under."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key, str(value)
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[object, object]", value).items():
            yield from _leaves(str(name).lower(), inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            yield from _leaves(key, inner)


def _kind(status: int | None, said: _Said) -> RefusalKind:
    text = said.lowered
    if wordings.REQUEST_TOO_LARGE.search(text):
        return K.REQUEST_TOO_LARGE
    if _is_quota(said):
        return K.QUOTA
    if status == 429:
        return K.RATE_LIMIT
    if status in (401, 402, 403, 404):
        return wordings.BY_STATUS[status]
    if status is not None and status >= 500:
        return K.OVERFLOW if _is_overflow(said) else K.TRANSIENT
    spoken = _by_words(said)
    if spoken is not None:
        return spoken
    if status is None:
        return K.TRANSIENT
    return wordings.BY_STATUS.get(status, K.UNKNOWN)


def _is_quota(said: _Said) -> bool:
    if wordings.DASHSCOPE_THROTTLING.search(said.lowered):
        return False
    typed = any(wordings.CODES.get(code) is K.QUOTA for code in said.codes)
    return typed or wordings.QUOTA.search(said.lowered) is not None


def _is_overflow(said: _Said) -> bool:
    typed = any(wordings.CODES.get(code) is K.OVERFLOW for code in said.codes)
    return typed or wordings.OVERFLOW.search(said.lowered) is not None


# For 400, 413, 422 and errors without a status; the order is that of certainty.
_WORDS = (
    (wordings.MEDIA, K.MEDIA),
    (wordings.RATE_LIMIT, K.RATE_LIMIT),
    (wordings.CONTENT_FILTER, K.CONTENT_FILTER),
    (wordings.AUTH, K.AUTH),
    (wordings.OVERFLOW, K.OVERFLOW),
    (wordings.FORMAT, K.FORMAT),
)


def _by_words(said: _Said) -> RefusalKind | None:
    if _is_output_cap(said.lowered):
        return K.OUTPUT_CAP
    for code, kind in wordings.CODES.items():
        if code in said.codes:
            return kind
    return next((kind for pattern, kind in _WORDS if pattern.search(said.lowered)), None)


def _is_output_cap(text: str) -> bool:
    """Said outright, or the input alone fits and only input and answer together do not."""
    if wordings.OUTPUT_CAP.search(text):
        return True
    stated = _stated(text)
    return "output" in stated and "used" in stated and stated["used"] < stated.get("limit", 0)


def _stated(text: str) -> dict[str, int]:
    """The numbers of the first pattern that matches, by their names."""
    for pattern in wordings.NUMBERS:
        found = pattern.search(text)
        if found is not None:
            return {name: int(number) for name, number in found.groupdict().items()}
    return {}


def _numbers(kind: RefusalKind, text: str) -> tuple[int | None, int | None]:
    stated = _stated(text) if kind in (K.OVERFLOW, K.OUTPUT_CAP, K.REQUEST_TOO_LARGE) else {}
    if kind is not K.OUTPUT_CAP:
        return stated.get("limit"), stated.get("used")
    room = stated.get("room")
    if room is None and "limit" in stated and "used" in stated:
        room = max(0, stated["limit"] - stated["used"])
    return room, stated.get("output")


def _wait(text: str) -> float | None:
    found = wordings.WAIT.search(text)
    if found is None:
        return None
    return float(found["seconds"]) / (1000 if found["unit"] == "ms" else 1)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms` (OpenAI, Anthropic), else seconds or a date (RFC 9110)."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return None if value is None else max(0.0, float(value))
    except ValueError:
        return _until(value)


def _until(date: str | None) -> float | None:
    try:
        then = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())
