"""`/usage`: the own share, and for a group's admins what the chat has used, when and for what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from bridge.answers import Answer, Handlers
from bridge.chats.rights import Rights
from bridge.inbound import readable
from bridge.limits.caps import amount
from bridge.limits.keys import COST_PER_DAY, TOKENS_PER_DAY
from bridge.limits.policies import zone_of
from bridge.limits.showing import use_of
from bridge.runs.turn_plan import TurnServices
from bridge.speakers import plain_name
from bridge.texts import Say, Wording
from channels.base import InboundMessage
from memory.conversations import SessionPlace
from memory.costs.chat_usage import ChatUsage, Part
from memory.costs.days import Place

WEEK, MONTH = 7, 30  # days
MOST_CAUSES = 3
_WIDTH: Final = 12  # of the longest bar
_LEVELS: Final = "▁▂▃▄▅▆▇█"


class UsageCommand:
    """`names`: whether admins are told who has used how much."""

    def __init__(self, services: TurnServices, rights: Rights, *, names: bool) -> None:
        self._services = services
        self._rights = rights
        self._usage: ChatUsage = services.chat_usage
        self._names = names

    @property
    def commands(self) -> Handlers:
        """`/usage`."""
        return {"usage": self.show}

    async def show(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        """Own share first; the rest for those who may see it."""
        address, person = message.address, message.sender.id
        policy = self._services.policies.of(address, person)
        zone, place = zone_of(policy), (address.channel, address.account, address.chat)
        used = await self._services.usage.used(place, person, zone)
        today = date.fromisoformat(used.day.label)
        tokens = policy[COST_PER_DAY] is None and policy[TOKENS_PER_DAY] is not None
        own = use_of(policy, used, say, private=address.private)[2]
        lines = [f"**{say('usage')}**", own]
        for days, key in ((WEEK, "usage_own_week"), (MONTH, "usage_own_month")):
            first = (today - timedelta(days=days - 1)).isoformat()
            share = await self._usage.own(place, person, first)
            lines.append(say(key, used=_amount(share, tokens=tokens or _unpriced(share))))
        if address.private or await self._rights.over_all(message):
            lines += await self._of_chat(place, today, say)
        return Answer("\n".join(lines), silent=True)

    async def _of_chat(self, place: Place, today: date, say: Say) -> list[str]:
        first = today - timedelta(days=MONTH - 1)
        found = {part.name: part for part in await self._usage.days(place, first.isoformat())}
        days = [
            found.get(day.isoformat(), Part(day.isoformat(), 0, 0))
            for day in (first + timedelta(days=n) for n in range(MONTH))
        ]
        tokens = _unpriced(_sum(days))
        week = days[-WEEK:]
        if not (_sum(days).cost or _sum(days).tokens):
            return ["", say("usage_month", used=_amount(_sum(days), tokens=tokens))]
        lines = ["", say("usage_week", used=_amount(_sum(week), tokens=tokens)), "```"]
        lines += _bars(week, say, tokens=tokens)
        lines += ["```", say("usage_month", used=_amount(_sum(days), tokens=tokens))]
        lines.append(f"`{_sparks(days, tokens=tokens)}`")
        return [*lines, *await self._causes(place, _sum(days), tokens, say)]

    async def _causes(self, place: Place, whole: Part, tokens: bool, say: Say) -> list[str]:
        since = datetime.now(UTC) - timedelta(days=MONTH)
        lines: list[str] = []
        for cause in ("model", "purpose", "person"):
            # What is nobody's is the memory's own, which stands among the purposes.
            found = await self._usage.causes(place, cause, since, MOST_CAUSES)
            parts = [part for part in found if part.name]
            shares = [
                f"{await self._name(place, cause, part, number, say)} {percent} %"
                for number, part in enumerate(parts, start=1)
                if (percent := _percent(part, whole, tokens=tokens))
            ]
            if shares:
                lines.append(say(f"usage_by_{cause}", shares=", ".join(shares)))
        return lines

    async def _name(self, place: Place, cause: str, part: Part, number: int, say: Say) -> str:
        if cause == "purpose":
            return say(f"usage_for_{part.name}")
        if cause != "person":
            return f"`{part.name}`"
        if not self._names:
            return say("usage_person", number=number)
        body = await self._services.inbox.newest_of(place[0], part.name)
        message = None if body is None else readable(body)
        name = plain_name(message.sender.name) if message is not None else ""
        return f"{name} (`{part.name}`)".lstrip()


def _value(part: Part, *, tokens: bool) -> int:
    return part.tokens if tokens else part.cost


def _sum(parts: Sequence[Part]) -> Part:
    return Part("", sum(part.cost for part in parts), sum(part.tokens for part in parts))


def _amount(part: Part, *, tokens: bool) -> str | Wording:
    return amount(_value(part, tokens=tokens), tokens=tokens)


def _said(used: str | Wording, say: Say) -> str:
    return used if isinstance(used, str) else say.word(used)


def _unpriced(part: Part) -> bool:
    """Whether it is to be shown in tokens: something was used, at no price."""
    return bool(part.tokens) and not part.cost


def _percent(part: Part, whole: Part, *, tokens: bool) -> int:
    most = _value(whole, tokens=tokens)
    return round(100 * _value(part, tokens=tokens) / most) if most else 0


def _bars(days: Sequence[Part], say: Say, *, tokens: bool) -> list[str]:
    """A line for each day."""
    most = max(_value(day, tokens=tokens) for day in days) or 1
    return [
        f"{day.name[5:]} {'█' * -(-_WIDTH * _value(day, tokens=tokens) // most):<{_WIDTH}}"
        f" {_said(_amount(day, tokens=tokens), say)}"
        for day in days
    ]


def _sparks(days: Sequence[Part], *, tokens: bool) -> str:
    """A sign for each day."""
    most = max(_value(day, tokens=tokens) for day in days) or 1
    top = len(_LEVELS) - 1
    return "".join(_LEVELS[round(top * _value(day, tokens=tokens) / most)] for day in days)
