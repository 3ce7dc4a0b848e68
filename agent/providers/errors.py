"""The one classifier of provider refusals for the whole project.

Typed status and code first, words second: many providers say one thing by status and another in words,
and some words (`token limit`, `reduce`, `billing`) stand in refusals of several kinds. The order of
the rules is the order of certainty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from agent.errors import Refusal, RefusalKind

K = RefusalKind
MOST_DETAIL = 500  # characters of a refusal that are logged

_SECRETS = re.compile(
    r"\b(?:sk|ak|org|key|proj|req|user|team|acct)[-_][A-Za-z0-9_-]{4,}|https?://\S+|<[^>]{1,80}>"
)
_HTML = re.compile(r"<!doctype html|<html", re.IGNORECASE)

# Words that mean one thing whatever the status: (pattern, kind). First match wins.
_RULES: tuple[tuple[str, RefusalKind], ...] = (
    (r"too large for model.*\botpm\b|output tokens per minute", K.REQUEST_TOO_LARGE),
    (r"request too large for", K.REQUEST_TOO_LARGE),
    (r"media exceeds size|image exceeds|image dimensions exceed|could not process image", K.MEDIA),
    (r"overdue|arrearage|good standing|free tier .* exhausted|credit balance", K.QUOTA),
    (r"account balance|is suspended|exceeded_current_quota_error|insufficient balance", K.QUOTA),
    (r"throttl|rate limit|requests? rate|too many requests|request limit", K.RATE_LIMIT),
    (r"tokens? per (?:min|day)|\btpm\b|\brpm\b|quota exceeded for metric", K.RATE_LIMIT),
    (r"resource_exhausted|please try again in [\d.]+ ?m?s|for this period", K.RATE_LIMIT),
    (r"content management policy|content_filter|content exists risk", K.CONTENT_FILTER),
    (r"data_inspection_failed|inappropriate content|\b1301\b", K.CONTENT_FILTER),
    (
        r"range of max_tokens|invalid max_tokens|max_(?:completion_)?tokens is too large",
        K.OUTPUT_CAP,
    ),
    (r"available_tokens", K.OUTPUT_CAP),
    (r"tool_use|tool_result|tool_calls?|function call turn|reasoning_content", K.FORMAT),
    (r"prefill|must be non-empty|non-whitespace|at least one message|tool names", K.FORMAT),
    (r"invalid `?signature`?|should match pattern|\b1214\b|text is not set", K.FORMAT),
    (r"expected string, got list|must be a string|must be string", K.FORMAT),
)

_OVERFLOW = re.compile(
    r"context[ _]?(?:length|window|size|limit)|prompt is too long|prompt too long|input is too long"
    r"|input too long|too many tokens|maximum prompt length|max_prompt_tokens|tokens in request"
    r"|longer than the model|input length|input token count|prompt tokens|exceeds? max(?:imum)? length"
    r"|exceeded model token limit|token limit exceeded|prompt token count|less than \d+ tokens"
    r"|prompt exceeds|maximum size|prompt contains \d+ tokens|model_context_window_exceeded|超长"
    r"|最大token限制|最大上下文长度|输入长度超过|\b1261\b|\b1210\b|\b336103\b|prompt is too long after",
    re.IGNORECASE,
)

_BY_STATUS = {401: K.AUTH, 402: K.QUOTA, 403: K.AUTH, 404: K.AUTH, 408: K.TRANSIENT, 409: K.TRANSIENT,
              413: K.OVERFLOW, 422: K.FORMAT, 429: K.RATE_LIMIT}  # fmt: skip

# Where the numbers stand: named groups limit, used, output.
_NUMBERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<used>\d+) \+ (?P<output>\d+) > (?P<limit>\d+)",
        r"prompt is too long: (?P<used>\d+) tokens > (?P<limit>\d+)",
        r"requested (?P<output>\d+) output tokens and your prompt contains at least (?P<used>\d+)",
        r"maximum context length is (?P<limit>\d+).*?(?:resulted in|requested) (?P<used>\d+)",
        r"input token count \(?(?P<used>\d+)\)? exceeds .*?\((?P<limit>\d+)\)",
        r"token count is (?P<used>\d+) but model only supports up to (?P<limit>\d+)",
        r"token limit: (?P<limit>\d+) \(requested: (?P<used>\d+)\)",
        r"maximum prompt length is (?P<limit>\d+).*?contains (?P<used>\d+)",
        r"input length \(?(?P<used>\d+)\)?.*?(?:length|tokens)? ?(?:of|\() ?(?P<limit>\d+)",
        r"prompt tokens \((?P<used>\d+)\) exceed model maximum \((?P<limit>\d+)\)",
        r"prompt contains (?P<used>\d+) tokens.*?with (?P<limit>\d+) maximum",
        r"input \((?P<used>\d+) tokens\) is longer .*?\((?P<limit>\d+) tokens\)",
        r"request \((?P<used>\d+) tokens\) exceeds .*?\((?P<limit>\d+) tokens\)",
        r"token count of (?P<used>\d+) exceeds the limit of (?P<limit>\d+)",
        r"cannot exceed (?P<limit>\d+) - received (?P<used>\d+)",
        r"less than (?P<limit>\d+) tokens\. given: (?P<used>\d+)",
        r"context length of (?P<limit>\d+)",
        r"maximum context length is (?P<limit>\d+)",
        r"maximum context length of (?P<limit>\d+)",
        r"limit:? (?P<limit>\d+), requested (?P<used>\d+)",
        r"range of max_tokens (?:is|should be) \[\d+, (?P<limit>\d+)\]",
        r"range of input length should be \[\d+, (?P<limit>\d+)\]",
        r"available_tokens: (?P<limit>\d+)",
    )
)
_WAIT = re.compile(r"try again in (?P<seconds>[\d.]+) ?(?P<unit>ms|s)\b", re.IGNORECASE)


def classify(status: int | None, body: str, retry_after_s: float | None = None) -> Refusal:
    """What a refusal wants. `body` is the response's text (JSON, plain, HTML, or nothing);
    `retry_after_s` is the Retry-After header in seconds."""
    text = words_of(body)
    kind = _kind(status, text)
    limit, used = _numbers(text) if kind in _HAVE_NUMBERS else (None, None)
    return Refusal(
        kind=kind,
        status=status,
        limit_tokens=limit,
        requested_tokens=used,
        retry_after_s=retry_after_s if retry_after_s is not None else _wait(text),
        detail=detail_of(text),
    )


_HAVE_NUMBERS = {K.OVERFLOW, K.OUTPUT_CAP, K.REQUEST_TOO_LARGE}


def words_of(body: str) -> str:
    """Everything a body says: message, type, code and param of any shape of JSON, else the text; an
    HTML page says nothing."""
    if _HTML.search(body[:2_000]):
        return "an HTML page"
    try:
        document: object = json.loads(body)
    except ValueError:
        return body
    found: list[str] = []
    _collect(document, found)
    return " ".join(found)


def _collect(value: object, found: list[str]) -> None:
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        found.append(str(value))
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            _collect(inner, found)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            _collect(inner, found)


def _kind(status: int | None, text: str) -> RefusalKind:
    lowered = text.lower()
    sums = re.search(r"(\d+) \+ \d+ > (\d+)", text)
    if sums is not None and int(sums[1]) < int(sums[2]):
        return K.OUTPUT_CAP
    if "your prompt contains at least" in lowered:
        return K.OUTPUT_CAP
    if (
        status == 429
        and "check your plan and billing" in lowered
        and "insufficient_quota" in lowered
    ):
        return K.RATE_LIMIT if "allocationquota" in lowered else K.QUOTA
    if status == 503 and "too many requests" in lowered:
        return K.TRANSIENT
    for pattern, kind in _RULES:
        if re.search(pattern, lowered):
            return kind
    if status != 429 and _OVERFLOW.search(text):
        return K.OVERFLOW
    if status is not None and status in _BY_STATUS:
        return _BY_STATUS[status]
    if status is None or status >= 500:
        return K.TRANSIENT
    return K.UNKNOWN


def _numbers(text: str) -> tuple[int | None, int | None]:
    for pattern in _NUMBERS:
        found = pattern.search(text)
        if found is not None:
            groups = found.groupdict()
            limit, used = groups.get("limit"), groups.get("used")
            return int(limit) if limit else None, int(used) if used else None
    return None, None


def _wait(text: str) -> float | None:
    found = _WAIT.search(text)
    if found is None:
        return None
    seconds = float(found["seconds"])
    return seconds / 1000 if found["unit"] == "ms" else seconds


def detail_of(text: str) -> str:
    """The words for the log: bounded, without ids of accounts, keys and URLs."""
    return _SECRETS.sub("[…]", text)[:MOST_DETAIL]


def refusal_of(error: Exception) -> Refusal:
    """A failed call's refusal, whatever the SDK or its HTTP library raised.

    Both SDKs put `status_code`, `response` and `body` on their status errors; everything else that
    they or httpx2 raise in mid-stream means that the connection or the stream broke.
    """
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 400:
        response: Any = getattr(error, "response", None)
        headers: Mapping[str, str] = response.headers if response is not None else {}
        return classify(status, _body(error, response), _retry_after(headers))
    body = getattr(error, "body", None)
    if body:  # an error event inside a stream: typed, without a status of its own
        text = json.dumps(body) if not isinstance(body, str) else body
        return classify(_status_of_type(text), text)
    return Refusal(K.TRANSIENT, detail=f"{type(error).__name__}: {detail_of(str(error))}")


def _body(error: Exception, response: Any) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, str) and body:
        return body
    if body is not None:
        return json.dumps(body)
    text: Callable[[], str] | str = getattr(response, "text", "")
    return text if isinstance(text, str) else str(error)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "")
    try:
        return float(value)
    except ValueError:
        return None


_STATUS_OF_TYPE = {
    "overloaded_error": 529,
    "api_error": 500,
    "server_error": 500,
    "rate_limit_error": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "request_too_large": 413,
    "billing_error": 402,
}


def _status_of_type(text: str) -> int | None:
    for name, status in _STATUS_OF_TYPE.items():
        if name in text:
            return status
    return None
