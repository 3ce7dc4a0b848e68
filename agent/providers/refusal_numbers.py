"""The numbers of tokens that a refusal states, and what each of them means.

A few wordings say it with signs (`188059 + 20000 > 200000`) and have a pattern of their own. For all
others each number is told from its neighbours (`input`, `maximum`, `in the completion`), and where
the words say nothing by comparing: an input that is refused is larger than its limit. A number that
only looks like one (an error code, a size in bytes, a date, a per-minute limit) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

from agent.providers import number_words, vocabulary


@dataclass(frozen=True, slots=True)
class Stated:
    """Tokens. `limit`: the window. `used`: the input. `output`: what was asked for as answer.
    `room`: the largest answer that is allowed."""

    limit: int | None = None
    used: int | None = None
    output: int | None = None
    room: int | None = None

    @property
    def fits(self) -> bool:
        """Whether the input alone fits, so that the answer that was asked for is what does not."""
        return self.limit is not None and self.used is not None and self.used < self.limit


@dataclass(frozen=True, slots=True)
class _Number:
    value: int
    label: str  # limit, used, input, output, or nothing
    tokens: bool  # whether the word stands there
    code: bool  # whether it may be an error code
    named: bool  # whether the parameter of the answer's size stands directly before it


LEAST = 64  # tokens; no window is smaller, and positions and counts of messages are
_MOST = 40  # numbers that are looked at
_CLAUSE = 70  # characters that can say what the number after them means

_THOUSANDS = re.compile(
    r"(?<![a-z0-9_.,-])\d{1,3}(?:(?:,\d{2,3})*,\d{3}|(?:\.\d{3})+|(?:['_]\d{3})+)(?![\d.,]\d)"
)
# Thousands set apart by spaces, as many languages write them. Two numbers that only stand side by
# side look the same: a status or a code before them decides.
_SPACED = re.compile(
    r"(?<![\d.,-])(?<!code )(?<!status )(?<!http )(?<!error )\d{1,3}(?: \d{3})+(?![\d.,]\d|\d)"
)
_NOT_NUMBERS = re.compile(r"<\d{3}>|https?://\S+|\b\d{4}[-/]\d\d[-/]\d\d\S*|\b\d+:\d+\S*")
_OF_TOKENS = re.compile(r"(?<=[\dkm])-(?=tokens?\b)")  # a 131072-token window
_NUMBER = re.compile(
    r"(?<![a-z0-9_.#$-])(?<!\D/)(?P<digits>\d{1,9})(?P<part>\.\d{1,2})?(?!\d)"
    r"(?P<unit> ?[km](?![a-z0-9])|万|萬)?(?![_-]|\.?\d|[a-su-z]| ?%)"
)
_TIMES = {"k": 1_000, "m": 1_000_000, "万": 10_000, "萬": 10_000}
_OTHER_UNIT = re.compile(
    r"\s?(?:bytes?|[kmg]i?b|b|pixels?|px|char|symbol|letter|seconds?|secs?|ms|s|min|minutes?|hours?|h|"
    r"days?|images?|pages?|messages?|requests?|quer|calls?|times|times?|files?|tools?|functions?|usd|"
    r"credits?|neurons?|字节|字符|个字|文字|글자|символ|秒|分|小时|天|次|张|條|条消息|초|секунд|минут)(?![a-z])"
)
_NAMED = re.compile(
    r"(?:\bcode|status|http|errno|error|line|column|row|index|position|version|port|\bid|"
    r"batch of size|batch[ _]size|slot|"
    r"message|step|page|attempt|retries|wait|错误码|代码|код)[ :=#(\[\"']*$"
)
_PARAMETER = re.compile(r"max_\w*tokens['\" :=(]*(?:of |value of )?$")
_AT_END = re.compile(r"\)\s*(?:[.\"'}]|$)")
# Numbers of what is too much, which are neither the limit nor the input.
_EXCESS = re.compile(
    r"\bby (?:at least |about )?\x00|超出了? ?\x00 ?个"
    r"|\x00 ?tokens? (?:over|too many|too long|more than)\b"
)

# What only signs and single providers say. `limit`, `used`, `output` and `room` as in `Stated`.
_LITERAL = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?P<used>\d+) \+ (?P<output>\d+) > (?P<limit>\d+)",
        r"\((?P<output>\d+) > (?P<limit>\d+) - (?P<used>\d+)\)",
        r"max_tokens: (?P<output>\d+) > context_window: .{0,80}available_tokens: (?P<room>\d+)",
        # vLLM; the maximum input length that it goes on with is what the answer leaves of the window.
        r"passed (?P<used>\d+) input .{0,40} (?P<output>\d+) output .{0,70} is only (?P<limit>\d+)",
        # It counts no further than its window: "at least" says nothing of the input.
        r"requested (?P<output>\d+) output tokens and your prompt contains at least",
        r"given: (?P<used>\d+) inputs? tokens and (?P<output>\d+) max_new",
    )
)
_SUM_LIMIT = re.compile(r"must be <= (\d+)")


def stated(text: str, *, cap: bool) -> Stated:
    """The numbers in a uniform text; `cap`: whether it speaks of the answer's size alone."""
    text = _joined(text)
    for pattern in _LITERAL:
        found = pattern.search(text)
        if found is not None:
            literal = {name: int(number) for name, number in found.groupdict().items()}
            limit = _SUM_LIMIT.search(text)
            if limit is not None:
                literal.setdefault("limit", int(limit[1]))
            return Stated(**literal)
    numbers = _without_code(list(_numbers(text)))
    if cap:
        return _cap(numbers)
    return _window(numbers, both=vocabulary.OUTPUT.search(text) is not None)


def requested_over_limit(text: str) -> tuple[int, int] | None:
    """The limit of a minute and the one request that is larger, where both are stated."""
    text = _joined(text)
    signs = number_words.OVER_MINUTE.search(text)
    if signs is not None:
        return int(signs["limit"]), int(signs["asked"])
    limit, asked = number_words.MINUTE_LIMIT.search(text), number_words.REQUESTED.search(text)
    if limit is not None and asked is not None:
        pair = int(limit["number"]), int(asked["number"])
        return pair if pair[1] > pair[0] else None
    return _one_over_another(text)


def _one_over_another(text: str) -> tuple[int, int] | None:
    """Of two numbers of tokens the larger, where it is said of one request, over the smaller."""
    values = sorted({number.value for number in _numbers(text)})
    if len(values) != 2 or not vocabulary.TOKEN.search(text) or number_words.USED_UP.search(text):
        return None
    before = text[: text.index(str(values[1]))]
    return (values[0], values[1]) if number_words.ONE_REQUEST.search(before) else None


def _joined(text: str) -> str:
    """Without thousands separators, and without what is no number of anything."""
    text = _OF_TOKENS.sub(" ", _NOT_NUMBERS.sub(" ", text))
    text = _SPACED.sub(lambda found: found[0].replace(" ", ""), text)
    return _THOUSANDS.sub(_without_separators, text)


def _without_separators(found: re.Match[str]) -> str:
    """A dot sets thousands apart in many languages, unless what stands around says that it does not:
    37.044 seconds, version 1.234, 0.125."""
    before, rest = found.string[: found.start()], found.string[found.end() :]
    if "." in found[0] and (
        found[0].startswith("0") or _OTHER_UNIT.match(rest) or _NAMED.search(before[-_CLAUSE:])
    ):
        return found[0]
    return re.sub(r"[.,'_]", "", found[0])


def _numbers(text: str) -> Iterator[_Number]:
    """Numbers of tokens, with what the words around them say."""
    previous = 0
    for found in islice(_NUMBER.finditer(text), _MOST):
        before, after = text[previous : found.start()][-_CLAUSE:], text[found.end() :][:_CLAUSE]
        value = _value(found)
        label, behind = _label(before, after)
        if value < LEAST and not behind:
            continue
        previous = found.end()
        if _OTHER_UNIT.match(after) or _NAMED.search(before):
            continue
        if _EXCESS.search(f"{before}\0{after}"):
            continue
        if after.startswith(" (exclusive)"):
            value -= 1
        code = before.endswith("(") and _AT_END.match(after) is not None and _is_code(value)
        tokens = number_words.TOKENS.match(after) is not None
        yield _Number(value, label, tokens, code, _PARAMETER.search(before) is not None)


def _is_code(value: int) -> bool:
    """Of a number in parentheses at the end: MiniMax and Zhipu put their codes of four digits there."""
    return 1_000 <= value < 10_000 and not _round(value)


def _value(found: re.Match[str]) -> int:
    unit = (found["unit"] or "").strip()
    return round(float(found["digits"] + (found["part"] or "")) * _TIMES.get(unit, 1))


def _without_code(numbers: list[_Number]) -> list[_Number]:
    """A number that may be a code is one, unless it is the limit of the only other number."""
    rest = [number for number in numbers if not number.code]
    return numbers if len(rest) == 1 and rest[0].label != "limit" else rest


def _label(before: str, after: str) -> tuple[str, bool]:
    """What stands directly behind the number says most, then what stands nearest before it."""
    behind = number_words.CLAUSE_END.split(after, maxsplit=1)[0]
    for name, pattern in number_words.BEHIND.items():
        if pattern.match(behind):
            return name, name in ("input", "output")
    ends = {
        name: max((found.end() for found in pattern.finditer(before)), default=0)
        for name, pattern in number_words.BEFORE.items()
    }
    name = max(ends, key=lambda name: ends[name])
    return (name if ends[name] else ""), False


def _window(numbers: list[_Number], *, both: bool) -> Stated:
    """Of a text that speaks of the window; `both`: and of the answer too."""
    by_sum = _by_sum(numbers)
    if by_sum is not None:
        return by_sum
    output = _last(numbers, "output")
    values = sorted({number.value for number in numbers})
    if len(values) == 2 and output == values[1]:  # more than the window: the two together
        output = None
    rest = [number for number in numbers if number.value != output]
    values = sorted({number.value for number in rest})
    if len(values) == 1:
        return _single(rest[0], output)
    limit, used = _last(rest, "limit"), _last(rest, "input") or _last(rest, "used")
    fits = limit is not None and used is not None and used < limit
    if len(values) == 2 and (limit is None or used is None or (fits and not both)):
        limit, used = values
    return Stated(limit=limit, used=used, output=output)


def _single(number: _Number, output: int | None) -> Stated:
    """One number that is not the answer's: without a word for tokens it must look like a window."""
    if not number.tokens and not _round(number.value):
        return Stated(used=number.value if number.label == "input" else None, output=output)
    if number.label in ("input", "used"):
        return Stated(used=number.value, output=output)
    return Stated(limit=number.value, output=output)


def _round(value: int) -> bool:
    """Whether it is near a multiple of 256 or 500, as windows are and error codes are not."""
    return any(abs(value - step * round(value / step)) <= 1 for step in (256, 500))


def _by_sum(numbers: list[_Number]) -> Stated | None:
    """Input and answer that add up to a stated total, beside the window."""
    values = list(dict.fromkeys(number.value for number in numbers))
    labels = {number.value: number.label for number in reversed(numbers)}
    for first, second in combinations(values, 2):
        others = [value for value in values if value not in (first, second, first + second)]
        if first + second not in values:
            continue
        if not others and "output" in (labels[first], labels[second]):
            others = [first + second]  # the two fill the window to the last token
        if not others:
            continue
        output: int | None = min(first, second)
        for value in (first, second):
            if labels[value] == "output":
                output = value
        used = first + second - (output or 0)
        if labels[first] == labels[second] == "input":  # messages and functions: no answer in it
            used, output = first + second, None
        limit = next((value for value in others if labels[value] == "limit"), others[0])
        if labels[first + second] == "limit" and limit != first + second:  # window = input + rest
            continue
        return Stated(limit=limit, used=used, output=output)
    return None


def _cap(numbers: list[_Number]) -> Stated:
    """Of a text that speaks of the answer's size."""
    given, limit = _last(numbers, "input"), _last(numbers, "limit")
    values = sorted({number.value for number in numbers})
    if given is not None and limit is not None and given < limit:
        rest = [value for value in values if value not in (given, limit)]
        if rest:  # the room, if it is stated, is the smaller one
            return Stated(limit=limit, used=given, output=rest[-1])
    if len(values) == 1:
        only = numbers[0]
        asked = only.label == "used" or only.named
        return Stated(output=only.value) if asked else Stated(room=only.value)
    if len(values) > 1:
        return Stated(room=values[0], output=values[-1])
    return Stated()


def _last(numbers: list[_Number], label: str) -> int | None:
    return next((number.value for number in reversed(numbers) if number.label == label), None)
