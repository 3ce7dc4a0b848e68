"""The one classifier of provider refusals for the whole project.

Typed status and code come first, words second, and numbers decide where the words are ambiguous.
The words are no list of sentences but of what sentences are made of (`agent.providers.vocabulary`):
an input and that it exceeds are an overflow in any provider's wording and in many languages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agent.errors import Refusal, RefusalKind
from agent.providers import vocabulary as words
from agent.providers import wordings
from agent.providers.refusal_numbers import Stated, requested_over_limit, stated
from agent.providers.refusal_text import Said, read
from agent.providers.wire import clean

K = RefusalKind
MOST_DETAIL = 500  # characters of a refusal that are logged

# Ids of accounts and projects, keys (masked ones too), bearer tokens, addresses, and every long
# word that has digits and letters. A request's id stays: support asks for it.
_SECRETS = re.compile(
    r"\b(?:sk|ak|pk|rk|org|proj|acct)[-_][\w*.-]{3,}"
    r"|\b(?:key|user|team|account|project|workspace)[-_](?=[\w-]{0,200}\d)[\w-]{3,}"
    r"|[^\s*]{0,64}\*{3,}\S*"
    r"|https?://\S+|\b(?<![\w.+-])[\w.+-]{1,80}@[\w-]+\.\w+"
    r"|\bbearer \S+"
    r"|(?!req_)\b(?<!-)(?=[\w-]{0,200}\d)(?=[\w-]{0,200}[A-Za-z])[\w-]{24,}\b",
    re.IGNORECASE,
)
# Modules whose exceptions mean that the connection or the stream broke.
_CONNECTION = frozenset(
    {"anthropic", "openai", "httpx2", "httpcore2", "httpx", "httpcore", "anyio", "h11"}
)


def classify(
    status: int | None, body: object, retry_after_s: float | None = None, *, provider: str = ""
) -> Refusal:
    """What a refusal wants.

    `body`: the response as text (JSON, plain, HTML, or nothing) or already parsed. `retry_after_s`:
    the Retry-After header in seconds; without it, what the words say. `provider`: its name or host,
    for words that two providers use differently. The numbers of the refusal: for an overflow the
    window and the input, for an output cap the largest answer that is allowed and the one that was
    asked for, for a request that is too large the quota and the request. Never raises.
    """
    said = read(body)
    status = _status(status, said)
    kind = _kind(status, said, provider.lower())
    limit, requested = _numbers(kind, said.text)
    return Refusal(
        kind=kind,
        status=status,
        limit_tokens=limit,
        requested_tokens=requested,
        retry_after_s=_wait(said) if retry_after_s is None else retry_after_s,
        detail=detail_of(said.words),
    )


def refusal_of(error: Exception) -> Refusal:
    """A failed call's refusal, whatever the SDK or its HTTP library raised.

    Both SDKs put `status_code`, `response` and `body` on their errors of status; an error event in
    a stream has a body and no status of its own (Anthropic's: the stream's 200). Everything else
    that they or httpx2 raise means that the connection or the stream broke. What is neither is a
    mistake of ours, which trying again does not mend.
    """
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    host = _host(error)
    if isinstance(status, int) and status >= 400:
        response: Any = getattr(error, "response", None)
        headers: Mapping[str, str] = {} if response is None else response.headers
        said = str(error) if body is None else body
        return classify(status, said, retry_after(headers), provider=host)
    if body:
        return classify(None, body, provider=host)
    kind = K.TRANSIENT if _is_connection(error) else K.UNKNOWN
    return Refusal(kind, detail=f"{type(error).__name__}: {detail_of(str(error))}")


def _host(error: Exception) -> str:
    try:
        return str(getattr(error, "request").url.host)  # noqa: B009 - httpx2 raises where it is unset
    except (AttributeError, RuntimeError):
        return ""


def _is_connection(error: Exception) -> bool:
    """An SDK's, an HTTP library's or the system's; or a chunk of the stream that is no JSON."""
    if isinstance(error, OSError | EOFError | json.JSONDecodeError | UnicodeDecodeError):
        return True
    return any(cls.__module__.partition(".")[0] in _CONNECTION for cls in type(error).__mro__)


def detail_of(text: str) -> str:
    """The words for the log: one bounded line, without ids of accounts, keys and addresses."""
    return _SECRETS.sub("[…]", " ".join(clean(text[: 4 * MOST_DETAIL]).split()))[:MOST_DETAIL]


def _status(status: int | None, said: Said) -> int | None:
    """The status that counts: a relay's own 400 or 500, or a stream's 200, says less than what the
    provider behind it answered."""
    if status is not None and status not in (200, 400) and status < 500:
        return status
    stated = [int(code) for _, code in said.keyed if re.fullmatch("[45][0-9][0-9]", code)]
    stated += [int(code) for code in wordings.STATUS_IN_WORDS.findall(said.text)]
    stated += [s for name, s in wordings.STATUS_OF_EXCEPTION.items() if name in said.text]
    if status is None or status <= 400:
        stated += [s for name, s in wordings.STATUS_OF_TYPE.items() if name in said.codes]
    telling = sorted(s for s in stated if s not in (400, status))
    return telling[0] if telling else (400 if 400 in stated else status)


def _kind(status: int | None, said: Said, provider: str) -> RefusalKind:
    if words.REQUEST_TOO_LARGE.search(said.text) or _is_over_minute(said.text):
        return K.REQUEST_TOO_LARGE
    if _is_quota(said, provider) or status == 402:
        return K.QUOTA
    if status == 429:
        return _when_429(said)
    if status in (401, 403, 404, 405, 407, 410, 451):
        return _when_denied(status, said)
    found = _found(said)
    if status is not None and status >= 500:
        return found if found in _SAID_BY_SERVERS else K.TRANSIENT
    if found is not None:
        return found
    return K.TRANSIENT if status is None else wordings.BY_STATUS.get(status, K.UNKNOWN)


# What a 5xx can hide: a relay passes another server's refusal on, and some servers refuse with 500.
_SAID_BY_SERVERS = frozenset({K.OVERFLOW, K.OUTPUT_CAP, K.MEDIA, K.CONTENT_FILTER})


def _when_429(said: Said) -> RefusalKind:
    if words.OVERLOADED.search(said.text) and not words.RATE.search(said.text):
        return K.TRANSIENT
    window = words.WINDOW.search(said.text) and words.OVERFLOW.search(said.text)
    if _typed(said) is K.OVERFLOW or (window and not _is_rate(said.text)):
        return K.OVERFLOW
    return K.RATE_LIMIT


def _when_denied(status: int, said: Said) -> RefusalKind:
    for pattern, kind in (
        (words.RATE, K.RATE_LIMIT),
        (words.CONTENT_FILTER, K.CONTENT_FILTER),
    ):
        if status in (403, 404) and pattern.search(said.text):
            return kind
    if status == 404 and _is_media(said.text):
        return K.MEDIA
    return wordings.BY_STATUS[status]


def _is_over_minute(text: str) -> bool:
    """One request that is larger than a minute allows, so that waiting never helps."""
    return bool(words.PERIOD.search(text)) and requested_over_limit(text) is not None


def _is_quota(said: Said, provider: str) -> bool:
    typed = _typed(said) is K.QUOTA
    if not typed and not words.QUOTA.search(said.text):
        return False
    plain = f"{said.text} {' '.join(said.codes)}"
    money = any(code in said.codes for code in ("arrearage",)) or "overdue" in plain
    if wordings.QUOTA_MEANS_RATE.search(provider) and not money:
        return "current quota" not in plain and "insufficient_quota" not in said.codes
    return not words.QUOTA_OF_A_PERIOD.search(plain)


def _typed(said: Said) -> RefusalKind | None:
    for code, kind in wordings.CODES.items():
        if code in said.codes:
            return kind
    return next((kind for key, kind in wordings.KEYED_CODES.items() if key in said.keyed), None)


def _found(said: Said) -> RefusalKind | None:
    """By code, else by words; only numbers know better than a code that says overflow."""
    typed = _typed(said)
    if typed in (None, K.OVERFLOW) and _is_cap(said.text):
        return K.OUTPUT_CAP
    return typed or _spoken(said)


def _spoken(said: Said) -> RefusalKind | None:
    """What the sentences say; the order is that of certainty."""
    for test, kind in _WORDS:
        if test(said.text):
            return kind
    for pattern, kind in wordings.CODE_PARTS:
        if any(pattern.search(code) for code in said.codes):
            return kind
    return K.TRANSIENT if words.TRANSIENT.search(said.text) else None


def _is_media(text: str) -> bool:
    """A picture or file that cannot be taken; its share of the tokens is no fault of its own."""
    return any(
        not words.TOKEN.search(text[max(0, found.start() - 40) : found.end() + 20])
        for found in words.MEDIA.finditer(text)
    )


def _is_rate(text: str) -> bool:
    return bool(
        words.RATE.search(text) or (words.PERIOD.search(text) and words.EXCEEDS.search(text))
    )


def _is_overflow(text: str) -> bool:
    """Said outright, or made of its parts: a window, or an input counted in tokens, and that it is
    exceeded, by a word for it or by two numbers."""
    if words.FIELD_TOO_LONG.search(text):
        return False
    if words.OVERFLOW.search(text):
        return True
    counted = words.WINDOW.search(text) or (words.INPUT.search(text) and words.TOKEN.search(text))
    if not counted or words.CHARACTERS.search(text):
        return False
    numbers = stated(text, cap=False)
    compared = (numbers.used or 0) > (numbers.limit or numbers.used or 0)
    return compared or words.EXCEEDS.search(text) is not None


def _is_cap(text: str) -> bool:
    """The answer that was asked for is too long; or input and answer are, and the input fits."""
    if words.NOT_A_CAP.search(text) or _is_rate(text):
        return False
    if words.OUTPUT_CAP.search(text) and not words.SUM.search(text):
        numbers = stated(text, cap=True)
        return numbers.used is None or numbers.fits
    if not _is_overflow(text):
        return False
    numbers = stated(text, cap=False)
    counted_so_far = numbers.used is None and numbers.output is not None and numbers.limit is None
    both = numbers.output is not None or words.OUTPUT.search(text) is not None
    return counted_so_far or (numbers.fits and both)


_WORDS: tuple[tuple[Callable[[str], object], RefusalKind], ...] = (
    (_is_media, K.MEDIA),
    (_is_rate, K.RATE_LIMIT),
    (words.CONTENT_FILTER.search, K.CONTENT_FILTER),
    (_is_overflow, K.OVERFLOW),
    (words.AUTH.search, K.AUTH),
    (words.FORMAT.search, K.FORMAT),
)


def _numbers(kind: RefusalKind, text: str) -> tuple[int | None, int | None]:
    if kind is K.REQUEST_TOO_LARGE:
        return requested_over_limit(text) or (None, None)
    if words.CHARACTERS.search(text):
        return None, None
    if kind is K.OVERFLOW:
        numbers = stated(text, cap=False)
        return numbers.limit, numbers.used
    if kind is not K.OUTPUT_CAP:
        return None, None
    alone = bool(words.OUTPUT_CAP.search(text)) and not words.SUM.search(text)
    numbers = stated(text, cap=alone)
    return _room(numbers), numbers.output


def _room(numbers: Stated) -> int | None:
    if numbers.room is None and numbers.limit is not None and numbers.used is not None:
        return max(0, numbers.limit - numbers.used)
    return numbers.room


def _wait(said: Said) -> float | None:
    """Seconds, as the words say: `7m12s`, `26 seconds`, `20 秒后`."""
    found = words.WAIT.search(said.text)
    if found is not None:
        return sum(_seconds(part) for part in words.WAIT_PART.finditer(found[0]))
    plain = words.WAIT_PLAIN.search(said.text)
    return float(plain["number"]) / (1000 if plain["unit"] else 1) if plain else None


def _seconds(part: re.Match[str]) -> float:
    unit = next(s for pattern, s in words.WAIT_UNITS if re.fullmatch(pattern, part["unit"]))
    return float(part["number"]) * unit


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: `retry-after-ms` (OpenAI, Anthropic), else seconds or a date (RFC 9110).
    The names are in lower case, or the mapping does not mind."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        seconds = float(value or "") if milliseconds is None else float(milliseconds) / 1000
    except ValueError:
        return _until(value)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(date: str | None) -> float | None:
    try:
        then = parsedate_to_datetime(date or "")
    except (ValueError, OverflowError):
        return None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(UTC)).total_seconds())
