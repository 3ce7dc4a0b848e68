"""Kinds of values that are lists: people by id, tools by name, and who is meant by both."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from bridge.limits.kinds import Known
from bridge.limits.numbers import Wrong
from bridge.suggestions import nearest
from bridge.texts import Wording, wording
from bridge.yaml_source import Value

# Senders that stand for many people: Telegram's anonymous admin, its service account, and the bot
# that writes for channels. Nobody can be let in or kept out by one of them.
SHARED_IDS = frozenset(("1087968824", "777000", "136817688"))

_MARKS: Final = "“”„«»‘’‚"
_ID = re.compile(r"[A-Za-z0-9_.:@-]{1,64}", re.ASCII)
ALL_TOPICS = frozenset(("all",))
_TOPIC = re.compile(r"[0-9]{1,20}", re.ASCII)
_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_IDS_WORDS: Final = wording("words_ids")
_TOPICS_WORDS: Final = wording("words_topics")
_TOOLS_WORDS: Final = wording("words_tools")
_AUDIENCE_WORDS: Final = wording("words_audience")


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of people: those that are kept out, more is narrower; `wide`: those that may something."""

    words: Wording = _IDS_WORDS
    ordered: bool = True
    wide: bool = False

    def read(self, written: Value, known: Known) -> frozenset[str]:
        """Also one id, or ids with commas between."""
        return frozenset(_ids(written))

    def show(self, value: frozenset[str]) -> str:
        """As a list in order."""
        return _listed(value)

    def meet(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
        """What allows only what both allow."""
        return one & other if self.wide else one | other


@dataclass(frozen=True, slots=True)
class Topics:
    """`all`, or ids of topics: fewer is narrower. As a value all is `ALL_TOPICS`."""

    words: Wording = _TOPICS_WORDS
    ordered: bool = True

    def read(self, written: Value, known: Known) -> frozenset[str]:
        """Numbers, as they stand in a topic's link."""
        if isinstance(written, str) and written.strip().lower() == "all":
            return ALL_TOPICS
        items = _items(written)
        if not items or any(_TOPIC.fullmatch(item) is None for item in items):
            raise Wrong("topics", words=self.words)
        return frozenset(items)

    def show(self, value: frozenset[str]) -> str:
        """The word, or the list in order."""
        return "all" if value == ALL_TOPICS else _listed(value)

    def meet(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
        """Those of both."""
        if ALL_TOPICS in (one, other):
            return other if one == ALL_TOPICS else one
        return one & other


@dataclass(frozen=True, slots=True)
class Tools:
    """Names of tools that are off: more is narrower."""

    words: Wording = _TOOLS_WORDS
    ordered: bool = True

    def read(self, written: Value, known: Known) -> frozenset[str]:
        """They must be tools that there are."""
        names = _items(written)
        for name in names:
            if known.tools is not None and name not in known.tools:
                there, near = ", ".join(sorted(known.tools)), nearest(name, known.tools)
                if near is not None:
                    raise Wrong("no_tool_near", near=near, there=there)
                raise Wrong("no_tool", there=there)
            if _TOOL.fullmatch(name) is None:
                raise Wrong("tool_names")
        return frozenset(names)

    def show(self, value: frozenset[str]) -> str:
        """As a list in order."""
        return _listed(value)

    def meet(self, one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
        """Those of both."""
        return one | other


@dataclass(frozen=True, slots=True)
class People:
    """Who is meant: everybody, or `admins` only, or people of some `ids` only, or both."""

    admins: bool = False
    ids: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Audience:
    """`members`, `admins`, or a list of ids."""

    words: Wording = _AUDIENCE_WORDS
    ordered: bool = True

    def read(self, written: Value, known: Known) -> People:
        """An empty list would be nobody: that is what `paused` is for."""
        word = written.strip().lower() if isinstance(written, str) else ""
        if word in ("members", "member", "everybody"):
            return People()
        if word in ("admins", "admin"):
            return People(admins=True)
        parts = _items(written)
        ids = [part for part in parts if part.lower() != "admins"]
        if len(ids) < len(parts):  # as `show` writes what a ceiling has made of both
            return People(True, frozenset(_ids(list(ids))))
        if not ids:
            raise Wrong("nobody")
        if isinstance(written, str) and not any(char.isdigit() for char in written):
            raise Wrong("words", words=self.words)
        return People(False, frozenset(_ids(written)))

    def show(self, value: People) -> str:
        """The word or the list."""
        if value.ids is None:
            return "admins" if value.admins else "members"
        return _listed([*(("admins",) if value.admins else ()), *sorted(value.ids)])

    def meet(self, one: People, other: People) -> People:
        """Those who are meant by both."""
        if one.ids is None or other.ids is None:
            ids = other.ids if one.ids is None else one.ids
        else:
            ids = one.ids & other.ids
        return People(one.admins or other.admins, ids)


def _items(written: Value) -> list[str]:
    if isinstance(written, dict):
        raise Wrong("no_list")
    found = re.split(r"[,\s]+", written) if isinstance(written, str) else written
    if not all(isinstance(item, str) for item in found):
        raise Wrong("list_of_single")
    items = [unquoted(item) for item in found if isinstance(item, str)]
    return [item for item in items if item]


def unquoted(item: str) -> str:
    """Without the quotation marks that a phone writes, which YAML does not know."""
    return item.strip().strip(_MARKS).strip()


def _ids(written: Value) -> list[str]:
    items = _items(written)
    for item in items:
        if item in SHARED_IDS:
            raise Wrong("shared_id", id=item)
        if _ID.fullmatch(item) is None or not any(char.isdigit() for char in item):
            raise Wrong("no_ids")
    return items


def _listed(items: Collection[str]) -> str:
    ordered = items if isinstance(items, list) else sorted(items)
    return f"[{', '.join(ordered)}]"
