"""The keys of a policy, each declared once: kind, who may set it, and one sentence for people.

`docs/limits.md`, `config.example.yaml`, `/limits` and the configuration's models are made from this
table. A key is here only when it has an effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from bridge.limits.kinds import (
    MICRO,
    Choice,
    Kind,
    Language,
    Model,
    Number,
    Text,
    YesNo,
    Zone,
)
from bridge.limits.lists import ALL_TOPICS, Audience, Ids, People, Tools, Topics
from bridge.limits.times import Blocks, Hours, Pause, Paused, QuietHours
from bridge.texts import wording

if TYPE_CHECKING:
    from bridge.session import Scope

T = TypeVar("T")

MOST_USD = 1_000_000 * MICRO
MOST_CONTEXT = 50
DEFAULT: Final = "default"  # a key with this value is removed


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """`default`: without any setting; None of a number: no limit. `sentence`: what it does, for
    people. `example`: as in a chat's file. `topic`, `person`: may be set for a topic, for a person (by
    the operator). `at_top`: the configuration has it at its top instead of in `defaults`.
    `owners_only`: admins of a chat may not set it. `announced`: a change is told in the chat."""

    name: str
    kind: Kind[Any]
    default: T
    sentence: str
    example: str
    topic: bool = False
    person: bool = False
    at_top: bool = False
    owners_only: bool = False
    announced: bool = False

    def show(self, value: T) -> str:
        """As a chat's file has it; an empty text where there is no limit."""
        return "" if value is None else self.kind.show(value)


def _count(most: int, unit: str, *, least: int = 0) -> Number:
    """`unit`: the text `words_…` of the catalogue."""
    words = wording(f"words_{unit}", least=least, most=most)
    return Number(most, words, least=least)


def _usd() -> Number:
    return Number(MOST_USD, wording("words_usd"), micro=True, cost=True)


PAUSED: Final[Key[Paused]] = Key(
    "paused",
    Pause(),
    False,
    "While it is yes, nothing is answered here, also not later; in a topic also while the chat has "
    "it.",
    "no",
    topic=True,
)
WHO_CAN_ASK: Final = Key(
    "who_can_ask",
    Audience(),
    People(),
    "Who is answered in a group: members, admins, or the people of a list of ids.",
    "members",
)
ANSWER_WHEN: Final = Key(
    "answer_when",
    Choice(("mention_or_reply", "every_message")),
    "mention_or_reply",
    "In groups: what is answered, where the bot can see it; what others pass on, and commands for "
    "other bots, never are.",
    "mention_or_reply",
    topic=True,
    announced=True,
)
CONTEXT_MESSAGES: Final = Key(
    "context_messages",
    _count(MOST_CONTEXT, "messages"),
    0,
    "In groups: how many of the newest messages that are not for the bot it keeps in mind, never on "
    "disk, and shows to the model with a question as what others said.",
    "0",
    announced=True,
)
TOPICS: Final = Key(
    "topics",
    Topics(),
    ALL_TOPICS,
    "In which topics of a group questions are answered: all, or those of a list (1 is General).",
    "all",
)
EDITORS: Final = Key(
    "editors",
    Ids(wide=True),
    frozenset[str](),
    "Ids of people who may set limits here beside the group's admins; set by an owner or in a file.",
    "[]",
    owners_only=True,
)
BLOCKED: Final[Key[frozenset[str]]] = Key(
    "blocked",
    Blocks(),
    frozenset[str](),
    "Ids of people who are not answered here; their /cancel works all the same.",
    "[]",
)
QUESTIONS_PER_MINUTE: Final[Key[int | None]] = Key(
    "questions_per_person_per_minute",
    _count(1_000, "questions"),
    None,
    "How many questions one person may ask within 60 seconds.",
    "6",
    person=True,
)
QUESTIONS_PER_DAY: Final[Key[int | None]] = Key(
    "questions_per_person_per_day",
    _count(100_000, "questions"),
    None,
    "How many questions one person may ask in a day.",
    "40",
    person=True,
)
COST_PER_PERSON: Final[Key[int | None]] = Key(
    "cost_per_person_per_day_usd",
    _usd(),
    None,
    "What one person's answers may cost in a day; without it a third of a group's day.",
    "0.50",
    person=True,
)
COST_PER_DAY: Final[Key[int | None]] = Key(
    "cost_per_day_usd",
    _usd(),
    None,
    "What all answers in the chat may cost in a day.",
    "3.00",
)
COST_PER_MONTH: Final[Key[int | None]] = Key(
    "cost_per_month_usd",
    _usd(),
    None,
    "What all answers in the chat may cost in a calendar month.",
    "40.00",
)
TOKENS_PER_DAY: Final[Key[int | None]] = Key(
    "tokens_per_day",
    _count(1_000_000_000_000, "tokens"),
    None,
    "Tokens read and written for the chat in a day; it works for models without a price too.",
    "500000",
)
WARN_AT: Final = Key(
    "warn_at_percent",
    _count(100, "percent", least=1),
    80,
    "At how much of the chat's budget its admins are told, in private or else here; at 100 % they are "
    "in any case.",
    "80",
)
TIMEZONE: Final = Key(
    "timezone",
    Zone(),
    "UTC",
    "The chat's time zone: when a new day begins, and the clock that the model sees.",
    "Europe/Berlin",
    at_top=True,
)
QUIET_HOURS: Final = Key(
    "quiet_hours",
    QuietHours(),
    Hours(),
    "When answers make no sound, and what nobody has asked for waits.",
    "22:00-07:00",
)
MODEL: Final = Key(
    "model",
    Model(),
    "",
    "Which model answers: one of the operator's list.",
    "claude-haiku",
    topic=True,
    person=True,
    at_top=True,
)
LANGUAGE: Final = Key(
    "language",
    Language(),
    "auto",
    "The language of the answers and of the bot's own texts (where it has them in that language); "
    "auto: that of each person.",
    "de",
    person=True,
    at_top=True,
)
INSTRUCTIONS: Final = Key(
    "instructions",
    Text(2_000),
    "",
    "What the model is told about this chat, after the operator's own instructions.",
    "Answer in at most five sentences.",
    topic=True,
    at_top=True,
    announced=True,
)
CONVERSATION: Final[Key[Scope]] = Key(
    "conversation",
    Choice(("one_per_person", "shared")),
    "shared",
    "In groups: one conversation for all, or one for each person.",
    "shared",
    at_top=True,
)
WHO_CAN_STOP: Final = Key(
    "who_can_stop",
    Choice(("asker_and_admins", "anyone")),
    "asker_and_admins",
    "Who may stop an answer in a group, besides owners.",
    "asker_and_admins",
    at_top=True,
)
WHEN_LIMIT_REACHED: Final = Key(
    "when_limit_reached",
    Choice(("silent", "tell_once", "tell_always")),
    "tell_once",
    "Whether somebody whose question meets a limit is told so: once until it opens again, each time, "
    "or never.",
    "tell_once",
)
LONGEST_ANSWER: Final[Key[int | None]] = Key(
    "longest_answer_characters",
    _count(100_000, "characters", least=200),
    None,
    "Longer answers are cut there.",
    "8000",
    person=True,
)
TOOLS_OFF: Final = Key(
    "tools_off",
    Tools(),
    frozenset[str](),
    "Tools that the model is not given here.",
    "[current_time]",
)
MEMORY: Final = Key(
    "memory",
    YesNo(narrow=False),
    True,
    "Whether anything is kept for good here, in notes and in what the bot knows; no: nothing is added, "
    "and nothing of it is shown to the model.",
    "yes",
    announced=True,
)
WHO_CAN_TEACH: Final = Key(
    "who_can_teach",
    Audience(),
    People(),
    "In groups: who may have something kept for good, by /remember or by asking for it.",
    "members",
)
KEEP_DAYS: Final[Key[int | None]] = Key(
    "keep_days",
    _count(36_500, "days", least=1),
    None,
    "How many days messages, answers and the notes of days are kept here, where that is less than the "
    "operator keeps them; what the bot knows for good stays.",
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
