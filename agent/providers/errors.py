"""The one classifier of provider refusals for the whole project.

Typed status and code come first, words second, and numbers decide where the words are ambiguous. The
words are no list of sentences but of what sentences are made of: an input and that it is too long are
an overflow in any provider's wording, and in many languages.

    refusal_text     a body, whoever wrapped it, as words, uniform text and codes
    refusal_kind     what it wants;      vocabulary, denials and wordings hold the words and the codes
    refusal_numbers  what it states;     number_words holds the words around numbers and waits
    languages        more languages, an entry each
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agent.errors import Refusal, RefusalKind
from agent.providers import number_words, vocabulary, wordings
from agent.providers.refusal_kind import kind_of, speaks_of_answer
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
    kind = kind_of(status, said, provider.lower())
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


async def read_refusal(error: Exception) -> Refusal:
    """The same beside the event loop: the first refusal of a process compiles its patterns, which takes
    0.2 s, and a body may be long."""
    return await asyncio.to_thread(refusal_of, error)


def tells_words(error: Exception) -> bool:
    """Whether the text of a failed call's exception holds what the provider said."""
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    return isinstance(status, int) or bool(body)


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


def _numbers(kind: RefusalKind, text: str) -> tuple[int | None, int | None]:
    if kind is K.REQUEST_TOO_LARGE:
        return requested_over_limit(text) or (None, None)
    if vocabulary.CHARACTERS.search(text):
        return None, None
    if kind is K.OVERFLOW:
        numbers = stated(text, cap=False)
        too_few = numbers.used and numbers.limit and numbers.used < numbers.limit
        return numbers.limit, None if too_few else numbers.used  # by how much, then: not how many
    if kind is not K.OUTPUT_CAP:
        return None, None
    numbers = stated(text, cap=speaks_of_answer(text))
    return _room(numbers), numbers.output


def _room(numbers: Stated) -> int | None:
    if numbers.room is None and numbers.limit is not None and numbers.used is not None:
        return max(0, numbers.limit - numbers.used)
    return numbers.room


def _wait(said: Said) -> float | None:
    """Seconds, as the words say: `7m12s`, `26 seconds`, `20 秒后`."""
    found = number_words.WAIT.search(said.text)
    if found is not None:
        return sum(_seconds(part) for part in number_words.WAIT_PART.finditer(found[0]))
    plain = number_words.WAIT_PLAIN.search(said.text)
    return float(plain["number"]) / (1000 if plain["unit"] else 1) if plain else None


def _seconds(part: re.Match[str]) -> float:
    unit = next(s for pattern, s in number_words.WAIT_UNITS if re.fullmatch(pattern, part["unit"]))
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
