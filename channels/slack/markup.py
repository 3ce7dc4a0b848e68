"""Slack's own markup in what people write, to readable text and back.

docs.slack.dev/messaging/formatting-message-text: `&`, `<` and `>` are entities; what stands in angle
brackets is a person, a channel, a command to all, or a link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_MARKUP = re.compile(r"<([@#!]?)([^<>|\n]*)(?:\|([^<>\n]*))?>")
_PERSON = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>\n]*)?>")


def mentioned(text: str) -> tuple[str, ...]:
    """The ids of the people named in a text as Slack sends it, in order, each once."""
    return tuple(dict.fromkeys(_PERSON.findall(text)))


def readable(text: str, names: Mapping[str, str]) -> str:
    """The text as a person sees it. `names` are those of people by id; others stay ids."""
    read = _MARKUP.sub(lambda match: _shown(match, names), text)
    return read.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def without_mention(text: str, person: str) -> str:
    """The text as Slack sends it without the mentions of `person`, and what set them off."""
    kept, done = "", 0
    for match in _PERSON.finditer(text):
        if match.group(1) != person:
            continue
        kept += text[done : match.start()]
        done = match.end()
        if not kept.strip():
            done += len(text[done:]) - len(text[done:].lstrip(" ,:"))
        elif kept[-1].isspace() and text[done : done + 1].isspace():
            done += 1
    return (kept + text[done:]).strip()


def escaped(text: str) -> str:
    """Plain text as Slack wants it in `text`, so that nothing in it is read as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shown(match: re.Match[str], names: Mapping[str, str]) -> str:
    sign, target, label = match.groups()
    if not sign and ":" not in target:  # no address: just brackets
        return match.group()
    show = _SHOWN.get(sign, _link)
    return show(target, label or "", names)


def _person(target: str, label: str, names: Mapping[str, str]) -> str:
    return "@" + (names.get(target) or label or target)


def _channel(target: str, label: str, _names: Mapping[str, str]) -> str:
    return "#" + (label or target)


def _all(target: str, label: str, _names: Mapping[str, str]) -> str:
    if label:  # a group of people, or a date as it was written
        return label
    return "@" + target.partition("^")[0]


def _link(target: str, label: str, _names: Mapping[str, str]) -> str:
    bare = target.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in (target, bare) or target.endswith("//" + label):
        return bare
    return f"{label} ({target})"


_SHOWN: Mapping[str, Callable[[str, str, Mapping[str, str]], str]] = {
    "@": _person,
    "#": _channel,
    "!": _all,
    "": _link,
}
