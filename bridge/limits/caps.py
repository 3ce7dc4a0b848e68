"""What a policy lets a chat and a person use, and how a limit that is reached is told. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from bridge.limits.gate import Spending, usd
from bridge.limits.keys import (
    BY_NAME,
    COST_PER_DAY,
    COST_PER_MONTH,
    COST_PER_PERSON,
    QUESTIONS_PER_DAY,
    QUESTIONS_PER_MINUTE,
    TIMEZONE,
    TOKENS_PER_DAY,
)
from bridge.limits.policies import zone_of
from bridge.limits.policy import BUILT_IN, CEILINGS, Policy
from bridge.texts import Say, Wording, wording
from channels.base import Address
from memory.clock import stamp
from memory.costs.days import Cap, Day, Used, midnight, next_day, next_month
from memory.inbox import Full, Window
from memory.usage import Cost, PersonCap

SHARE = 3  # without another setting one person can use a third of a group's day
MINUTE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Reach:
    """A limit that is reached: its key, what is used and allowed as people read it, and from when on
    it is open again (None: not by waiting). `share`: of a group's day; `everywhere`: over all chats,
    set by the operator. `held`: what running requests have reserved, where only that leaves no room:
    it opens when they are over. `installation`: a limit of all chats together, whose text says all."""

    key: str
    used: str | Wording = ""
    limit: str | Wording = ""
    opens: datetime | None = None
    share: bool = False
    everywhere: bool = False
    held: str | Wording = ""
    installation: bool = False


def caps_of(policy: Policy, *, private: bool) -> list[Cap]:
    """What of cost and tokens may be used; the person's own caps first."""
    caps: list[Cap] = []
    person, day, tokens = policy[COST_PER_PERSON], policy[COST_PER_DAY], policy[TOKENS_PER_DAY]
    if person is not None:
        caps.append(Cap(COST_PER_PERSON.name, "person_cost", person))
    elif not private:
        if day is not None:
            caps.append(Cap(COST_PER_DAY.name, "person_cost", day // SHARE))
        if tokens is not None:
            caps.append(Cap(TOKENS_PER_DAY.name, "person_tokens", tokens // SHARE))
    for key, measure, limit in (
        (COST_PER_DAY, "chat_cost", day),
        (COST_PER_MONTH, "month_cost", policy[COST_PER_MONTH]),
        (TOKENS_PER_DAY, "chat_tokens", tokens),
    ):
        if limit is not None:
            caps.append(Cap(key.name, measure, limit))  # type: ignore[arg-type]
    return caps


def windows_of(policy: Policy, sent_at: datetime, day: Day) -> list[Window]:
    """What of questions may be asked, for one that was sent at `sent_at`. One that comes late, after
    an outage, counts for the time at which it was sent."""
    windows: list[Window] = []
    now = stamp(sent_at)
    per_minute, per_day = policy[QUESTIONS_PER_MINUTE], policy[QUESTIONS_PER_DAY]
    if per_minute is not None:
        since = stamp(sent_at - MINUTE)
        windows.append(Window(QUESTIONS_PER_MINUTE.name, per_minute, since, now))
    if per_day is not None:
        windows.append(Window(QUESTIONS_PER_DAY.name, per_day, *_day_around(policy, now, day)))
    return windows


def _day_around(policy: Policy, now: str, day: Day) -> tuple[str, str]:
    if now >= day.began_at:
        return _just_before(day.began_at), stamp(datetime.max.replace(tzinfo=UTC))
    zone = zone_of(policy)
    began = midnight(datetime.fromisoformat(now).astimezone(zone).date(), zone)
    return _just_before(stamp(began)), _just_before(day.began_at)


def _just_before(moment: str) -> str:
    return stamp(datetime.fromisoformat(moment) - timedelta(microseconds=1))


def reached(cap: Cap, used: Used, now: datetime, zone: tzinfo) -> Reach:
    """A cap of cost or tokens."""
    tokens = cap.measure.endswith("_tokens")
    later = next_month if cap.measure.startswith("month") else next_day
    held = amount(cap.held(used), tokens=tokens) if cap.spent(used) < cap.limit else ""
    return Reach(
        cap.key,
        amount(cap.spent(used), tokens=tokens),
        amount(cap.limit, tokens=tokens),
        later(used.day, now, zone) if cap.limit and not held else None,
        share=cap.measure.startswith("person") and cap.key != COST_PER_PERSON.name,
        held=held,
    )


def everywhere(cost: Cost, cap: PersonCap, zone: tzinfo) -> Reach:
    """What one person may use over all chats; `zone`: the installation's."""
    tomorrow = datetime.fromisoformat(cap.since).astimezone(zone).date() + timedelta(days=1)
    held = amount(cost.held, tokens=False) if cost.spent < cap.limit else ""
    return Reach(
        COST_PER_PERSON.name,
        amount(cost.spent, tokens=False),
        amount(cap.limit, tokens=False),
        midnight(tomorrow, zone) if cap.limit and not held else None,
        everywhere=True,
        held=held,
    )


def of_installation(one: Spending) -> Reach:
    """What all chats together may use."""
    return Reach(
        one.text,
        usd(one.cost.spent),
        usd(one.most),
        one.opens if one.most and not one.held else None,
        held=usd(one.cost.held) if one.held else "",
        installation=True,
    )


def full(found: Full, day: Day, now: datetime, zone: tzinfo) -> Reach:
    """A window of questions."""
    window = found.window
    if window.key == QUESTIONS_PER_MINUTE.name:
        oldest = datetime.fromisoformat(found.oldest) if found.oldest else None
        opens = None if oldest is None else oldest + MINUTE
    else:
        opens = next_day(day, now, zone)
    return Reach(window.key, str(found.count), str(window.most), opens if window.most else None)


def sentence(reach: Reach, policy: Policy, say: Say, at: Address) -> str:
    """Which limit, how much is used, when it opens again in the chat's time, who can raise it."""
    zone = zone_of(policy)
    if reach.installation:
        then = reach.opens
        opens = "" if then is None else f"{then.astimezone(zone):%Y-%m-%d %H:%M} ({zone})"
        text = f"limit_{reach.key}"
        return say(text, used=reach.used, limit=reach.limit, held=reach.held, opens=opens)
    key = BY_NAME[reach.key]
    text = say(
        _text_of(reach),
        used=reach.used,
        limit=reach.limit,
        key=reach.key,
    )
    opens = say("limit_held", held=reach.held) if reach.held else ""
    if reach.opens is not None:
        near = reach.opens - datetime.now(UTC) <= MINUTE
        local = reach.opens.astimezone(zone)
        when = f"{local:%H:%M:%S}" if near else f"{local:%Y-%m-%d %H:%M}"
        opens = say("limit_opens", when=when, zone=zone)
        if at.private and policy.origin(TIMEZONE) == BUILT_IN:
            opens = f"{opens} {say('zone_unknown')}"
    by_operator = at.private or reach.everywhere or policy.origin(key) == CEILINGS
    who = "limit_raised_by_operator" if by_operator else _raised_by_admins(say, at)
    return " ".join(filter(None, (text, opens, say(who))))


def _raised_by_admins(say: Say, at: Address) -> str:
    if at.thread is None or say.capabilities.commands_in_threads:
        return "limit_raised_by_admins"
    return "limit_raised_by_admins_in_threads"


def _text_of(reach: Reach) -> str:
    if reach.everywhere:
        return "limit_everywhere"
    return "limit_share" if reach.share else f"limit_{reach.key}"


def amount_of(cap: Cap, value: int) -> str | Wording:
    """As people read it."""
    return amount(value, tokens=cap.measure.endswith("_tokens"))


def amount(value: int, *, tokens: bool) -> str | Wording:
    """As people read it: tokens, or a cost in micro-dollars."""
    return wording("amount_tokens", count=f"{value:,}") if tokens else f"{usd(value)} USD"
