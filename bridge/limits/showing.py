"""What `/limits` shows: values, and what is used of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bridge.limits.caps import caps_of
from bridge.limits.gate import usd
from bridge.limits.keys import Key
from bridge.limits.policy import CEILINGS, Policy
from bridge.texts import Say
from memory.costs.days import Cap, Measure, Used

_MARKUP = re.compile(r"[*`~<>\\|]|\]\(|://|(?<!\w)_|_(?!\w)")


def use_of(policy: Policy, used: Used, say: Say, *, private: bool) -> list[str]:
    """Today's and this month's use, against the caps where there are some."""
    caps: dict[str, Cap] = {cap.measure: cap for cap in caps_of(policy, private=private)}
    lines = [
        say("limits_today", used=_of("chat_cost", used, caps, say)),
        say("limits_month", used=_of("month_cost", used, caps, say)),
        say("limits_you", used=_of("person_cost", used, caps, say)),
    ]
    if "chat_tokens" in caps:
        lines.append(say("limits_tokens", used=_of("chat_tokens", used, caps, say)))
    if used.held.chat_tokens:
        cost, tokens = usd(used.held.chat_cost), f"{used.held.chat_tokens:,}"
        lines.append(say("limits_held", cost=cost, tokens=tokens))
    return lines


def _of(measure: Measure, used: Used, caps: Mapping[str, Cap], say: Say) -> str:
    money = not measure.endswith("_tokens")
    value = Cap("", measure, 0).spent(used)
    shown = [usd(value) if money else f"{value:,}"]
    cap = caps.get(measure)
    if cap is not None:
        shown.append(usd(cap.limit) if money else f"{cap.limit:,}")
    text = say("limits_of").join(shown)
    return f"{text} USD" if money else text


def code(text: str) -> str:
    """As code, so that nothing in it is Markdown."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, room = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{room}{text}{room}{fence}"


def plain(text: str) -> str:
    """As it is, or as code where it would be read as Markdown."""
    return code(text) if _MARKUP.search(text) else text


def value_of(key: Key[Any], policy: Policy, say: Say) -> str:
    """A key with its value, as it would stand in the chat's file."""
    shown = key.show(policy[key]) or say("limits_none")
    ceiling = f" ({say('limits_ceiling')})" if policy.origin(key) == CEILINGS else ""
    return f"{code(f'{key.name}: {shown}')}{ceiling}"
