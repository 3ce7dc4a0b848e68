"""Text and entities as Telegram counts them: UTF-16 units, bounds, nesting, automatic detection.

`as_typed` is a person's client: it turns `code`, **bold** and ``` fences into entities.
`checked` is the server's view of what a bot sends: it refuses with the real wordings, trims
and adds what Telegram finds by itself (mentions, commands, links, hashtags, addresses).
"""

import re
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

MAX_TEXT = 4096  # core.telegram.org/bots/api#sendmessage: 1-4096 characters after entities parsing
MAX_CAPTION = 1024  # core.telegram.org/bots/api#senddocument
MAX_ENTITIES = 100  # core.telegram.org/api/entities

KNOWN_TYPES = frozenset(
    [
        "mention",
        "hashtag",
        "cashtag",
        "bot_command",
        "url",
        "email",
        "phone_number",
        "bold",
        "italic",
        "underline",
        "strikethrough",
        "spoiler",
        "blockquote",
        "expandable_blockquote",
        "code",
        "pre",
        "text_link",
        "text_mention",
        "custom_emoji",
        "date_time",
    ]
)
# What a message finds by itself: sending these is allowed and changes nothing.
AUTOMATIC = frozenset(
    ["mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"]
)
_NEED = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}
_CODE = frozenset({"code", "pre"})
_QUOTES = frozenset({"blockquote", "expandable_blockquote"})

_FOUND = re.compile(
    r"(?P<url>https?://[^\s<>\"]*[^\s<>\".,;:!?)\]])"
    r"|(?<![\w.+-])(?P<email>[\w.+-]+@[\w-]+\.[\w.-]*\w)"
    r"|(?<![\w/])(?P<bot_command>/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?)(?![\w/])"
    r"|(?<![\w@])(?P<mention>@[A-Za-z][A-Za-z0-9_]{2,31})(?!\w)"
    r"|(?<![\w#])(?P<hashtag>#\w*[^\W\d]\w*)"
)
_TYPED = re.compile(
    r"```(?:(?P<language>[\w+#-]+)\n)?(?P<pre>.+?)```"
    r"|`(?P<code>[^`\n]+)`"
    r"|\*\*(?P<bold>\S(?:.*?\S)?)\*\*"
    r"|__(?P<italic>\S(?:.*?\S)?)__"
    r"|~~(?P<strikethrough>\S(?:.*?\S)?)~~"
    r"|\|\|(?P<spoiler>\S(?:.*?\S)?)\|\|",
    re.DOTALL,
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# The high byte of the second unit of a pair.
_LOW_SURROGATE = (b"\xdc", b"\xdd", b"\xde", b"\xdf")
# TDLib replaces control characters by spaces and drops carriage returns.
_CONTROL = {code: " " for code in range(32) if code not in (10, 13)} | {13: None}
_BLANK = " \n\t\u200b\u2028\u2029\u00a0"
# A text of these alone is empty to TDLib; others that nobody sees (U+2063) are sent.
_EMPTY = "".join(
    chr(code)
    for first, last in (
        *((0x20, 0x20), (0x0A, 0x0A), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E)),
        *((0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x205F), (0x2800, 0x2800)),
        *((0x3000, 0x3000), (0xFEFF, 0xFEFF), (0xFFFC, 0xFFFC), (0xE0000, 0xE007F)),
    )
    for code in range(first, last + 1)
)


class TextRefused(Exception):
    """The text is not acceptable; `str()` is Telegram's wording without the status prefix."""


def units(text: str) -> int:
    """Length in UTF-16 code units, which is what every offset and limit counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def piece(text: str, entity: Json) -> str:
    """The part of `text` that an entity covers."""
    raw = text.encode("utf-16-le", "surrogatepass")
    start = entity["offset"] * 2
    return raw[start : start + entity["length"] * 2].decode("utf-16-le", "surrogatepass")


def split_units(text: str, size: int = MAX_TEXT) -> list[str]:
    """Cuts as a Telegram client cuts a long paste: whole characters, at most `size` units each."""
    parts: list[str] = []
    start = used = 0
    for index, character in enumerate(text):
        width = 2 if character > "\uffff" else 1
        if used + width > size:
            parts.append(text[start:index])
            start, used = index, 0
        used += width
    return [*parts, text[start:]]


def found(text: str, taken: Sequence[Json] = ()) -> list[Json]:
    """The entities that Telegram sees in plain text, outside of code and links in `taken`."""
    if not any(sign in text for sign in "/@#"):
        return []
    blocked = [e for e in taken if e["type"] in _CODE | AUTOMATIC | {"text_link", "text_mention"}]
    entities: list[Json] = []
    for match in _FOUND.finditer(text):
        offset, length = units(text[: match.start()]), units(match.group())
        if not any(_overlap(e["offset"], e["length"], offset, length) for e in blocked):
            entities.append({"type": match.lastgroup, "offset": offset, "length": length})
    return entities


def as_typed(text: str) -> tuple[str, list[Json]]:
    """Plain text and entities of what a person typed into a client."""
    plain, entities, position = "", [], 0
    for match in _TYPED.finditer(text):
        kind = next(k for k, v in match.groupdict().items() if v is not None and k != "language")
        plain += text[position : match.start()]
        inner = match.group(kind)
        entity: Json = {"type": kind, "offset": units(plain), "length": units(inner)}
        if match.group("language"):
            entity["language"] = match.group("language")
        entities.append(entity)
        plain += inner
        position = match.end()
    plain += text[position:]
    return plain, in_order([*entities, *found(plain, entities)])


def in_order(entities: Sequence[Json]) -> list[Json]:
    """Outer entities first, as the server lists them."""
    return sorted(entities, key=lambda e: (e["offset"], -e["length"]))


def checked(
    text: str, entities: Sequence[Json], *, limit: int = MAX_TEXT, too_long: str, empty: str | None
) -> tuple[str, list[Json]]:
    """What the server stores for a bot's text.

    Raises `TextRefused` for an entity out of bounds, inside a surrogate pair, of an unknown type,
    without its url, crossing another one or too many of them; for a text over `limit` units; and
    for a blank text when `empty` names the wording.
    """
    if _LONE_SURROGATE.search(text):
        raise TextRefused("strings must be encoded in UTF-8")
    if len(entities) > MAX_ENTITIES:
        raise TextRefused("ENTITIES_TOO_LONG")
    for entity in entities:
        _check_shape(entity)
    if entities:
        _check_bounds(text, entities)
        _check_nesting(entities)
    text, kept = _trimmed(text, entities)
    if not text.strip(_EMPTY) and empty is not None:
        raise TextRefused(empty)
    if units(text) > limit:
        raise TextRefused(too_long)
    return text, in_order([*kept, *found(text, kept)])


def _overlap(a: int, a_length: int, b: int, b_length: int) -> bool:
    return a < b + b_length and b < a + a_length


def _check_shape(entity: Json) -> None:
    if not isinstance(entity, dict):
        raise TextRefused("can't parse MessageEntity: expected an Object")
    for field in ("type", "offset", "length"):
        if field not in entity:
            raise TextRefused(f"can't parse MessageEntity: Can't find field \"{field}\"")
    if entity["type"] not in KNOWN_TYPES:
        raise TextRefused("can't parse MessageEntity: Unsupported type specified")
    need = _NEED.get(entity["type"])
    if need is not None and need not in entity:
        raise TextRefused(f"can't parse MessageEntity: Can't find field \"{need}\"")
    if need == "url":
        _check_url(str(entity["url"]))


def _check_url(url: str) -> None:
    if url.startswith("tg://"):
        return
    match = re.match(r"(?:([a-z][a-z0-9+.-]*)://)?(.*)", url, re.IGNORECASE | re.DOTALL)
    assert match is not None
    if (match.group(1) or "http").lower() not in ("http", "https", "ton", "tonsite"):
        raise TextRefused(f"entity URL '{url}' is invalid: Unsupported URL protocol")
    host = re.split(r"[/?#]", match.group(2))[0]
    if "." not in host or re.search(r"\s", host) or host.startswith("."):
        raise TextRefused(f"entity URL '{url}' is invalid: Wrong HTTP URL")


def _check_bounds(text: str, entities: Sequence[Json]) -> None:
    raw = text.encode("utf-16-le")
    size = len(raw) // 2
    for entity in entities:
        start, length = entity["offset"], entity["length"]
        if start < 0 or length <= 0:
            raise TextRefused(f"entity has an empty or negative range at UTF-16 offset {start}")
        if start > size:
            raise TextRefused(f"entity begins after the end of the text at UTF-16 offset {start}")
        for verb, position in (("begins", start), ("ends", start + length)):
            if raw[position * 2 + 1 : position * 2 + 2] in _LOW_SURROGATE:
                byte = len(raw[: position * 2 - 2].decode("utf-16-le").encode())
                raise TextRefused(
                    f"entity {verb} in a middle of a UTF-16 symbol at byte offset {byte}"
                )
        if start + length > size:
            raise TextRefused(_ends_late(start, start + length))


def _ends_late(start: int, end: int) -> str:
    return (
        f"entity beginning at UTF-16 offset {start} ends after the end of the text "
        f"at UTF-16 offset {end}"
    )


def _check_nesting(entities: Sequence[Json]) -> None:
    """Entities may lie inside each other, never across; nothing lies in code, no quote in a quote.

    Crossing ones are refused with the wording for a late end, as the real server does.
    """
    ordered = in_order(entities)
    for index, outer in enumerate(ordered):
        end = outer["offset"] + outer["length"]
        for inner in ordered[index + 1 :]:
            if inner["offset"] >= end:
                break
            late = inner["offset"] + inner["length"] > end
            in_code = bool({inner["type"], outer["type"]} & _CODE)
            if late or in_code or (inner["type"] in _QUOTES and outer["type"] in _QUOTES):
                raise TextRefused(_ends_late(inner["offset"], inner["offset"] + inner["length"]))


def _trimmed(text: str, entities: Sequence[Json]) -> tuple[str, list[Json]]:
    """Without control characters and without blank ends; entities move along."""
    dropped = [units(text[:i]) for i, character in enumerate(text) if character == "\r"]
    clean = text.translate(_CONTROL)
    left = clean[: len(clean) - len(clean.lstrip(_BLANK))]
    shift, body = units(left), clean.strip(_BLANK)
    end_of_text, kept = units(body), []
    for entity in entities:
        if entity["type"] in AUTOMATIC:
            continue
        start, end = entity["offset"], entity["offset"] + entity["length"]
        start -= sum(position < start for position in dropped) + shift
        end -= sum(position < end for position in dropped) + shift
        start, end = max(start, 0), min(end, end_of_text)
        if end > start:
            kept.append({**entity, "offset": start, "length": end - start})
    return body, kept
