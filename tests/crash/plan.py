"""What happens in a round, drawn from one seed: where and when the bot dies, and what people and
platforms do meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

WRITES: Final = (
    "Inbox.put",
    "Inbox.put_stop",
    "Inbox.close",
    "Runs.begin",
    "Runs.previewed",
    "Runs.settle",
    "Runs.withdraw",
    "Conversations.append",
    "UsageStore.book",
    "Outbox.mark",
    "Outbox.close",
)
REQUESTS: Final = (
    "sendMessage",
    "editMessageText",
    "editMessageReplyMarkup",
    "setMessageReaction",
    "getUpdates",
    "chat.postMessage",
    "chat.update",
    "reactions.add",
    "reactions.remove",
    "conversations.history",
)
STEPS: Final = (
    "the start",
    "settling",
    "delivering",
    "a model call",
    "acknowledging to Slack",
)
POINTS: Final = (
    *(f"{when} {write}" for write in WRITES for when in ("before", "in", "after")),
    *(f"{when} {what}" for what in (*REQUESTS, *STEPS) for when in ("before", "after")),
    "before the tool",
    "in the tool",
)
START_POINTS: Final = ("before the start", "after the start", "before conversations.history")
STOP_POINTS: Final = (
    "before the stop",
    "after the stop",
    "before closing",
    "after closing",
    "at the end",
)
"""Those of a graceful stop."""

What = Literal["ask", "again", "cancel", "press", "trouble"]


@dataclass(frozen=True, slots=True)
class Act:
    """Something that happens `at` seconds after a start. `place`, `person`, `choice` are drawn numbers
    that the round turns into one of those that there are."""

    at: float
    what: What
    place: int
    person: int
    choice: int


@dataclass(frozen=True, slots=True)
class Life:
    """One process. `point` None: it is killed after `after_s`; else the `nth` time after `after_s` that
    it is there. `stop_s`: when it is asked to stop in order. `down_s`: how long nobody runs
    afterwards."""

    point: str | None
    nth: int
    after_s: float
    stop_s: float | None
    down_s: float
    acts: tuple[Act, ...]


def lives(seed: str, count: int, *, busy: int, points: Sequence[str]) -> Iterator[Life]:
    """`points` come in their order, with a random instant after every third; `busy` is about how many
    questions are asked in each life."""
    chance = random.Random(seed)
    named = iter(points)
    for number in range(count):
        point = None if number % 4 == 3 else next(named, None)
        stopping = point in STOP_POINTS or chance.random() < 0.08
        early = stopping or point in START_POINTS
        yield Life(
            point,
            1 if early else chance.choice((1, 1, 2, 3)),
            0.0 if early else chance.uniform(0.0, 1.5),
            chance.uniform(0.2, 0.8) if stopping else None,
            chance.choice((0.0, 0.0, 0.1, 0.4)),
            tuple(_acts(chance, busy)),
        )


def _acts(chance: random.Random, busy: int) -> Iterator[Act]:
    def act(what: What) -> Act:
        return Act(
            chance.uniform(0.0, 0.9),
            what,
            chance.randrange(10**6),
            chance.randrange(10**6),
            chance.randrange(10**6),
        )

    for _ in range(chance.randint(max(1, busy - 1), busy + 1)):
        yield act("ask")
    for what, likely in (("again", 0.5), ("cancel", 0.25), ("press", 0.15), ("trouble", 0.5)):
        if chance.random() < likely:
            yield act(what)  # type: ignore[arg-type]
