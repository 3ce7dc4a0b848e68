"""The keys of a policy, each declared once: kind, and who may set it. What it does for people is one
sentence of the catalogue (`key_…`), in each language.

`docs/limits.md`, `config.example.yaml`, `/limits` and the configuration's models are made from this
table. A key is here only when it has an effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from bridge.limits.kinds import MICRO, Choice, Kind, Number, YesNo
from bridge.limits.lists import ALL_TOPICS, Audience, Ids, People, Tools, Topics
from bridge.limits.names import Language, Model, Text, Zone
from bridge.limits.times import Blocks, Hours, Pause, Paused, QuietHours
from bridge.texts import Wording, wording

if TYPE_CHECKING:
    from bridge.session import Scope

T = TypeVar("T")

MOST_USD = 1_000_000 * MICRO
MOST_CONTEXT = 50
DEFAULT: Final = "default"  # a key with this value is removed


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """`default`: without any setting; None of a number: no limit. `example`: as in a chat's file.
    `topic`, `person`: may be set for a topic, for a person (by the operator). `at_top`: the
    configuration has it at its top instead of in `defaults`. `owners_only`: admins of a chat may not
    set it. `announced`: a change is told in the chat."""

    name: str
    kind: Kind[Any]
    default: T
    example: str
    topic: bool = False
    person: bool = False
    at_top: bool = False
    owners_only: bool = False
    announced: bool = False

    @property
    def sentence(self) -> Wording:
        """What it does, for people."""
        return wording(f"key_{self.name}")

    def show(self, value: T) -> str:
        """As a chat's file has it; an empty text where there is no limit."""
        return "" if value is None else self.kind.show(value)


def _count(most: int, unit: str, *, least: int = 0) -> Number:
    """`unit`: the text `words_…` of the catalogue."""
    words = wording(f"words_{unit}", least=least, most=most)
    return Number(most, words, least=least, sign="%" if unit == "percent" else "")


def _usd() -> Number:
    return Number(MOST_USD, wording("words_usd"), sign=r"\$|usd", micro=True, cost=True)


PAUSED: Final[Key[Paused]] = Key(
    "paused",
    Pause(),
    False,
    "no",
    topic=True,
)
WHO_CAN_ASK: Final = Key(
    "who_can_ask",
    Audience(),
    People(),
    "members",
)
ANSWER_WHEN: Final = Key(
    "answer_when",
    Choice(("mention_or_reply", "every_message")),
    "mention_or_reply",
    "mention_or_reply",
    topic=True,
    announced=True,
)
CONTEXT_MESSAGES: Final = Key(
    "context_messages",
    _count(MOST_CONTEXT, "messages"),
    0,
    "0",
    announced=True,
)
TOPICS: Final = Key(
    "topics",
    Topics(),
    ALL_TOPICS,
    "all",
)
EDITORS: Final = Key(
    "editors",
    Ids(wide=True),
    frozenset[str](),
    "[]",
    owners_only=True,
)
BLOCKED: Final[Key[frozenset[str]]] = Key(
    "blocked",
    Blocks(),
    frozenset[str](),
    "[]",
)
QUESTIONS_PER_MINUTE: Final[Key[int | None]] = Key(
    "questions_per_person_per_minute",
    _count(1_000, "questions"),
    None,
    "6",
    person=True,
)
QUESTIONS_PER_DAY: Final[Key[int | None]] = Key(
    "questions_per_person_per_day",
    _count(100_000, "questions"),
    None,
    "40",
    person=True,
)
COST_PER_PERSON: Final[Key[int | None]] = Key(
    "cost_per_person_per_day_usd",
    _usd(),
    None,
    "0.50",
    person=True,
)
COST_PER_DAY: Final[Key[int | None]] = Key(
    "cost_per_day_usd",
    _usd(),
    None,
    "3.00",
)
COST_PER_MONTH: Final[Key[int | None]] = Key(
    "cost_per_month_usd",
    _usd(),
    None,
    "40.00",
)
TOKENS_PER_DAY: Final[Key[int | None]] = Key(
    "tokens_per_day",
    _count(1_000_000_000_000, "tokens"),
    None,
    "500000",
)
WARN_AT: Final = Key(
    "warn_at_percent",
    _count(100, "percent", least=1),
    80,
    "80",
)
TIMEZONE: Final = Key(
    "timezone",
    Zone(),
    "UTC",
    "Europe/Berlin",
    at_top=True,
)
QUIET_HOURS: Final = Key(
    "quiet_hours",
    QuietHours(),
    Hours(),
    "22:00-07:00",
)
MODEL: Final = Key(
    "model",
    Model(),
    "",
    "claude-haiku",
    topic=True,
    person=True,
    at_top=True,
)
LANGUAGE: Final = Key(
    "language",
    Language(),
    "auto",
    "de",
    person=True,
    at_top=True,
)
INSTRUCTIONS: Final = Key(
    "instructions",
    Text(2_000),
    "",
    "Answer in at most five sentences.",
    topic=True,
    at_top=True,
    announced=True,
)
CONVERSATION: Final[Key[Scope]] = Key(
    "conversation",
    Choice(("one_per_person", "shared")),
    "shared",
    "shared",
    at_top=True,
)
WHO_CAN_STOP: Final = Key(
    "who_can_stop",
    Choice(("asker_and_admins", "anyone")),
    "asker_and_admins",
    "asker_and_admins",
    at_top=True,
)
WHEN_LIMIT_REACHED: Final = Key(
    "when_limit_reached",
    Choice(("silent", "tell_once", "tell_always")),
    "tell_once",
    "tell_once",
)
LONGEST_ANSWER: Final[Key[int | None]] = Key(
    "longest_answer_characters",
    _count(100_000, "characters", least=200),
    None,
    "8000",
    person=True,
)
TOOLS_OFF: Final = Key(
    "tools_off",
    Tools(),
    frozenset[str](),
    "[current_time]",
)
MEMORY: Final = Key(
    "memory",
    YesNo(narrow=False),
    True,
    "yes",
    announced=True,
)
WHO_CAN_TEACH: Final = Key(
    "who_can_teach",
    Audience(),
    People(),
    "members",
)
KEEP_DAYS: Final[Key[int | None]] = Key(
    "keep_days",
    _count(36_500, "days", least=1),
    None,
    "30",
    announced=True,
)

KEYS: Final[tuple[Key[Any], ...]] = (
    PAUSED,
    WHO_CAN_ASK,
    BLOCKED,
    TOPICS,
    ANSWER_WHEN,
    CONTEXT_MESSAGES,
    QUESTIONS_PER_MINUTE,
    QUESTIONS_PER_DAY,
    COST_PER_PERSON,
    COST_PER_DAY,
    COST_PER_MONTH,
    TOKENS_PER_DAY,
    WARN_AT,
    TIMEZONE,
    QUIET_HOURS,
    MODEL,
    LANGUAGE,
    INSTRUCTIONS,
    CONVERSATION,
    WHO_CAN_STOP,
    WHEN_LIMIT_REACHED,
    LONGEST_ANSWER,
    TOOLS_OFF,
    MEMORY,
    WHO_CAN_TEACH,
    KEEP_DAYS,
    EDITORS,
)
BY_NAME: Final[Mapping[str, Key[Any]]] = MappingProxyType({key.name: key for key in KEYS})
TOPIC_KEYS: Final = tuple(key for key in KEYS if key.topic)
PERSON_KEYS: Final = tuple(key for key in KEYS if key.person)
CEILING_KEYS: Final = tuple(key for key in KEYS if key.kind.ordered)
DEFAULT_KEYS: Final = tuple(key for key in KEYS if not key.at_top)
