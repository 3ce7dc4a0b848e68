"""What the buttons of `/limits` offer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from bridge.limits.editing import passes
from bridge.limits.keys import BY_NAME, KEYS, TOPIC_KEYS, Key
from bridge.limits.kinds import Choice, Known, Number, YesNo
from bridge.limits.lists import Audience
from bridge.limits.names import Language, Model
from bridge.limits.numbers import Wrong
from bridge.limits.policy import Values
from bridge.limits.times import Pause
from bridge.texts import Say
from channels.base import Button

ACTION: Final = "limits"  # of the buttons

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "who": (
        "paused",
        "who_can_ask",
        "blocked",
        "topics",
        "answer_when",
        "context_messages",
        "who_can_stop",
    ),
    "questions": (
        "questions_per_person_per_minute",
        "questions_per_person_per_day",
        "when_limit_reached",
    ),
    "money": (
        "cost_per_person_per_day_usd",
        "cost_per_day_usd",
        "cost_per_month_usd",
        "tokens_per_day",
        "warn_at_percent",
    ),
    "answers": (
        "model",
        "language",
        "instructions",
        "longest_answer_characters",
        "quiet_hours",
        "tools_off",
    ),
    "memory": ("memory", "who_can_teach", "keep_days"),
}
REST: Final = "rest"  # the group of the keys that are in none

_MONEY = ("0.10", "0.50", "1.00", "3.00", "10.00", "40.00")
_COUNTS = ("5", "10", "20", "40", "100")
_CHARACTERS = ("1000", "2000", "4000", "8000")
_TOKENS = ("50000", "200000", "500000", "1000000", "5000000")

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "careful": (
        "questions_per_person_per_minute: 3",
        "questions_per_person_per_day: 10",
        "cost_per_day_usd: 0.50",
        "cost_per_month_usd: 5.00",
    ),
    "team": (
        "questions_per_person_per_minute: 6",
        "questions_per_person_per_day: 40",
        "cost_per_day_usd: 3.00",
        "cost_per_month_usd: 40.00",
    ),
    "busy": (
        "questions_per_person_per_minute: 10",
        "questions_per_person_per_day: 100",
        "cost_per_day_usd: 10.00",
        "cost_per_month_usd: 150.00",
    ),
}
_WITHOUT_PRICES: Final = {"careful": 100_000, "team": 500_000, "busy": 2_000_000}  # tokens a day


def groups(*, topic: bool) -> dict[str, list[Key[Any]]]:
    """The keys that can be set, by group; groups without any are left out."""
    allowed = TOPIC_KEYS if topic else KEYS
    named = {name: group for group, names in GROUPS.items() for name in names}
    found: dict[str, list[Key[Any]]] = {group: [] for group in (*GROUPS, REST)}
    for key in allowed:
        found[named.get(key.name, REST)].append(key)
    return {group: keys for group, keys in found.items() if keys}


def offers(key: Key[Any], known: Known, ceilings: Values) -> list[str]:
    """Values to choose from, as they are written; none that could not be set."""
    written: Collection[str] = ()
    match key.kind:
        case YesNo() | Pause():
            written = ("yes", "no")
        case Choice():
            written = key.kind.words_in_order
        case Audience():
            written = ("members", "admins")
        case Language():
            written = ("auto", "en", "zh", "de", "es", "fr")
        case Model():
            written = sorted(known.models or ())
        case Number():
            written = _numbers(key.kind, key.name)
        case _:
            written = ()
    return [one for one in written if _can_be(key, one, known, ceilings)]


def _numbers(kind: Number, name: str) -> Sequence[str]:
    if kind.micro:
        return _MONEY
    if name.startswith("tokens"):
        return _TOKENS
    return _CHARACTERS if name.endswith("characters") else _COUNTS


def _can_be(key: Key[Any], written: str, known: Known, ceilings: Values) -> bool:
    try:
        value = key.kind.read(written, known)
    except Wrong:
        return False
    return not passes(key, value, ceilings)


def preset(name: str, known: Known, ceilings: Values) -> str:
    """The lines of a preset, brought down to the ceilings. Raises `KeyError`."""
    lines = [(name, value) for name, _, value in (one.partition(": ") for one in PRESETS[name])]
    if known.unpriced:
        lines = [line for line in lines if not line[0].startswith("cost_")]
        lines.append(("tokens_per_day", str(_WITHOUT_PRICES[name])))
    shown: list[str] = []
    for key, written in ((BY_NAME[name], value) for name, value in lines):
        value = key.kind.read(written, known)
        if key.name in ceilings:
            value = key.kind.meet(value, ceilings[key.name])
        shown.append(f"{key.name}: {key.show(value)}")
    return "\n".join(shown)


class Menu:
    """The buttons of one dialogue. Their values are `id:step`, with what it is about, and a number."""

    def __init__(self, id_: int, say: Say) -> None:
        self._id = id_
        self._say = say

    def home(self, *, topic: bool, private: bool) -> tuple[Button, ...]:
        """Groups of keys, presets, the text; `private`: it can be gone on with in private."""
        say = self._say
        found = [
            self._button(say(f"limits_group_{name}"), "group", name) for name in groups(topic=topic)
        ]
        if not topic:
            found.append(self._button(say("limits_presets"), "presets"))
        found.append(self._button(say("limits_as_text"), "text"))
        if private:
            found.append(self._button(say("limits_private"), "private"))
        return tuple(found)

    def group(self, name: str, *, topic: bool) -> tuple[Button, ...]:
        """A button for each key."""
        keys = groups(topic=topic).get(name, [])
        found = [self._button(key.name, "key", key.name) for key in keys]
        return (*found, self._back("home"))

    def key(self, key: Key[Any], values: Sequence[str], group: str) -> tuple[Button, ...]:
        """A button for each value, another one, none."""
        say = self._say
        found = [self._button(value, "value", key.name, str(n)) for n, value in enumerate(values)]
        found.append(self._button(say("limits_other"), "other", key.name))
        found.append(self._button(say("limits_default"), "default", key.name))
        return (*found, self._back("group", group))

    def presets(self) -> tuple[Button, ...]:
        """One for each."""
        found = [
            self._button(self._say(f"limits_preset_{name}"), "preset", name) for name in PRESETS
        ]
        return (*found, self._back("home"))

    def confirm(self, mark: str) -> tuple[Button, ...]:
        """Apply, of the lines with this mark, and Discard."""
        say = self._say
        return (
            self._button(say("limits_apply"), "apply", mark),
            self._button(say("limits_discard"), "discard"),
        )

    def back(self) -> tuple[Button, ...]:
        """To where it began."""
        return (self._back("home"),)

    def _back(self, *step: str) -> Button:
        return self._button(self._say("limits_back"), *step)

    def _button(self, label: str, *step: str) -> Button:
        return Button(label, ACTION, ":".join((str(self._id), *step)))


def group_of(key: Key[Any], *, topic: bool) -> str:
    """The group in which a key is found."""
    return next(name for name, keys in groups(topic=topic).items() if key in keys)
