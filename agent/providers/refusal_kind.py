"""What a refusal wants, from its status, its codes, its words and its numbers, in this order.

A code or a status decides where it means one thing. Where it does not, the sentence is looked at for
what it speaks of: the pieces are in `agent.providers.vocabulary` and `agent.providers.denials`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from agent.errors import RefusalKind
from agent.providers import denials, wordings
from agent.providers import vocabulary as words
from agent.providers.refusal_numbers import requested_over_limit, stated
from agent.providers.refusal_text import Said

K = RefusalKind
_IDENTIFIER = re.compile(r"[a-z]+(?:_[a-z]+)+")


def kind_of(status: int | None, said: Said, provider: str) -> RefusalKind:
    """The kind of a refusal that was read; `provider` is its name or host in lower case."""
    if denials.REQUEST_TOO_LARGE.search(said.text) or _is_over_minute(said.text):
        return K.REQUEST_TOO_LARGE
    if _is_quota(said, provider) or status == 402:
        return K.QUOTA
    if status == 429:
        return _when_429(said)
    if status == 413 and (_is_rate(said.text) or "rate_limit_exceeded" in said.codes):
        return K.REQUEST_TOO_LARGE  # too large for the quota's minute
    if status in (401, 403, 404, 405, 407, 410, 451):
        return _when_denied(status, said)
    found = _found(said)
    if status is not None and status >= 500:
        hidden = found in _SAID_BY_SERVERS or denials.ORDER.search(said.text)
        return found if found and hidden else K.TRANSIENT
    if found is not None:
        return found
    return wordings.BY_STATUS.get(status, K.UNKNOWN) if status and status >= 400 else K.TRANSIENT


# What a 5xx can hide: a relay passes another server's refusal on, and some servers refuse with 500.
_SAID_BY_SERVERS = frozenset({K.OVERFLOW, K.OUTPUT_CAP, K.MEDIA, K.CONTENT_FILTER})


def _when_429(said: Said) -> RefusalKind:
    if denials.OVERLOADED.search(said.text) and not denials.RATE.search(said.text):
        return K.TRANSIENT
    window = words.WINDOW.search(said.text) and words.OVERFLOW.search(said.text)
    if _typed(said) is K.OVERFLOW or (window and not _is_rate(said.text)):
        return K.OVERFLOW
    return K.RATE_LIMIT


def _when_denied(status: int, said: Said) -> RefusalKind:
    for pattern, kind in (
        (denials.RATE, K.RATE_LIMIT),
        (denials.CONTENT_FILTER, K.CONTENT_FILTER),
    ):
        if status in (403, 404) and pattern.search(said.text):
            return kind
    if status == 404 and _is_media(said.text):
        return K.MEDIA
    if status == 404 and denials.NO_SERVER_WITH_TOOLS.search(said.text):
        return K.FORMAT
    return wordings.BY_STATUS[status]


def _is_over_minute(text: str) -> bool:
    """One request that is larger than a minute allows, so that waiting never helps."""
    return bool(denials.PERIOD.search(text)) and requested_over_limit(text) is not None


def _is_quota(said: Said, provider: str) -> bool:
    typed = _typed(said) is K.QUOTA
    if not typed and not denials.QUOTA.search(said.text):
        return False
    if denials.QUOTA_OF_A_PERIOD.search(said.words.lower()):
        return False
    ambiguous = "insufficient_quota" in said.codes or "current quota" in said.text
    return not (ambiguous and wordings.QUOTA_MEANS_RATE.search(provider))


def _typed(said: Said) -> RefusalKind | None:
    """By a code that means one thing, also where it stands in a sentence."""
    codes = said.codes.union(_IDENTIFIER.findall(said.text))
    for code, kind in wordings.CODES.items():
        if code in codes:
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
    if denials.TRANSIENT.search(said.text):
        return K.TRANSIENT
    # In a language that nobody has taught us, two numbers of tokens say enough.
    return K.OVERFLOW if words.TOKEN.search(said.text) and _is_more(said.text) else None


def _is_media(text: str) -> bool:
    """A picture or file that cannot be taken; its share of the tokens is no fault of its own."""
    return any(
        not words.TOKEN.search(text[max(0, found.start() - 40) : found.end() + 20])
        for found in denials.MEDIA.finditer(text)
    )


def _is_rate(text: str) -> bool:
    return bool(
        denials.RATE.search(text) or (denials.PERIOD.search(text) and words.EXCEEDS.search(text))
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
    return words.EXCEEDS.search(text) is not None or _is_more(text)


def _is_more(text: str) -> bool:
    """Whether the numbers are an input, or an input and an answer, and the smaller limit that they
    exceed."""
    numbers = stated(text, cap=False)
    if numbers.limit is None or numbers.used is None:
        return False
    return numbers.used + (numbers.output or 0) > numbers.limit


def speaks_of_answer(text: str) -> bool:
    """Whether only the answer that was asked for is too long, whatever the input."""
    return words.OUTPUT_CAP.search(text) is not None and words.SUM.search(text) is None


def _is_cap(text: str) -> bool:
    """The answer that was asked for is too long; or input and answer are, and the input fits."""
    if words.NOT_A_CAP.search(text) or _is_rate(text):
        return False
    if speaks_of_answer(text):
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
    (denials.CONTENT_FILTER.search, K.CONTENT_FILTER),
    (_is_overflow, K.OVERFLOW),
    (denials.AUTH.search, K.AUTH),
    (denials.FORMAT.search, K.FORMAT),
    (words.FIELD_TOO_LONG.search, K.FORMAT),
)
