"""What happens in a round, drawn from one seed: where and when the bot dies, and what people and
platforms do meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

WRITES: Final = (
    "Inbox.put",
    "Inbox.put_question",
    "Inbox.mark",
    "Inbox.put_stop",
    "Inbox.close",
    "Runs.take",
    "Runs.begin",
    "Runs.previewed",
    "Runs.settle",
    "Runs.withdraw",
    "Conversations.append",
    "Conversations.open",
    "Conversations.speaker",
    "UsageStore.book",
    "Runs.reserve",
    "UsageStore.settle",
    "ErrorLog.add",
    "Snapshots.made",
    "UnreadPlaces.leave",
    "Outbox.add",
    "Outbox.mark",
    "Outbox.close",
)
REQUESTS: Final = (
    "sendMessage",
    "editMessageText",
    "editMessageReplyMarkup",
    "deleteMessage",
    "sendChatAction",
    "setMessageReaction",
    "getUpdates",
    "chat.postMessage",
    "chat.update",
    "chat.delete",
    "reactions.add",
    "reactions.remove",
    "conversations.history",
    "conversations.replies",
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

What = Literal[
    "ask", "ask twice", "ask and cancel", "command", "again", "cancel", "press", "trouble"
]
OTHERS: Final[tuple[What, ...]] = (
    *("ask", "ask", "ask", "again", "again"),
    *("cancel", "press", "command", "trouble", "trouble"),
)


@dataclass(frozen=True, slots=True)
class Act:
    """Something that happens `gap_s` after the one before. `platform` and `kind` may be any ("");
    `place`, `person`, `choice` are drawn numbers that stand for one of those that there are."""

    gap_s: float
    what: What
    platform: str
    kind: str
    place: int
    person: int
    choice: int


@dataclass(frozen=True, slots=True)
class Life:
    """One process. `point` None: it is killed after `after_s`; else the `nth` time after `after_s` that
    it is there. `stop_s`: when it is asked to stop in order. `down_s`: how long nobody runs
    afterwards. `acts` has no end."""

    point: str | None
    nth: int
    after_s: float
    stop_s: float | None
    down_s: float
    acts: Iterator[Act]


SHORT_S: Final = (0.0, 0.0, 0.1, 0.4)
OUTAGE_S: Final = 1.5  # what a bot takes for a long outage where there are such, for half an hour


def lives(
    seed: str, points: Sequence[str | None], *, pace_s: float, outages: bool = False
) -> Iterator[Life]:
    """One for each point, None standing for an instant; an act every `pace_s` on the average.
    `outages`: nobody runs for long after some of them."""
    for number, point in enumerate(points):
        chance = random.Random(f"{seed}:{number}")
        in_order = point in STOP_POINTS or (point or "").endswith("Runs.withdraw")
        stopping = in_order or (point is None and chance.random() < 0.3)
        early = stopping or point in START_POINTS
        yield Life(
            point,
            1 if early else chance.choice((1, 1, 1, 2, 3)),
            chance.uniform(0.05, 1.2)
            if point is None
            else 0.0
            if early
            else chance.uniform(0, 0.4),
            chance.uniform(0.25, 0.7) if stopping else None,
            chance.choice((*SHORT_S, 2 * OUTAGE_S, 2 * OUTAGE_S) if outages else SHORT_S),
            _acts(chance, point or "", pace_s),
        )


def _acts(chance: random.Random, point: str, pace_s: float) -> Iterator[Act]:
    """Most of them lead to the point, some do not."""
    what, platform, kind = _way_to(point)
    while True:
        leads = chance.random() < 0.6
        yield Act(
            chance.expovariate(1 / pace_s),
            what if leads else chance.choice(OTHERS),
            platform if leads else "",
            kind if leads else "",
            *(chance.randrange(10**6) for _ in range(3)),
        )


def _way_to(point: str) -> tuple[What, str, str]:
    """What a person does where (platform) with which kind of question, so that the point is met."""
    return WAYS.get(point.partition(" ")[2], ("ask", "", ""))


_IN_TELEGRAM: Final[tuple[What, str, str]] = ("ask", "telegram", "")
_IN_SLACK: Final[tuple[What, str, str]] = ("ask", "slack", "")
WAYS: Final[dict[str, tuple[What, str, str]]] = {
    "Inbox.put_stop": ("ask and cancel", "", "slow"),
    "Outbox.add": ("ask and cancel", "", "slow"),
    "Inbox.put": ("command", "telegram", ""),
    "Inbox.mark": ("ask twice", "", "slow"),
    "setMessageReaction": ("ask twice", "telegram", "slow"),
    "reactions.add": ("ask twice", "slack", "slow"),
    "reactions.remove": ("ask twice", "slack", "slow"),
    "Outbox.mark": ("ask", "", "long"),
    "editMessageReplyMarkup": ("ask", "telegram", "long"),
    "sendMessage": _IN_TELEGRAM,
    "editMessageText": _IN_TELEGRAM,
    "getUpdates": _IN_TELEGRAM,
    "chat.postMessage": _IN_SLACK,
    "chat.update": _IN_SLACK,
    "acknowledging to Slack": _IN_SLACK,
    "the tool": ("ask", "", "tool"),
    "Runs.withdraw": ("ask", "", "slow"),
    "Runs.previewed": ("ask", "", "slow"),
}
