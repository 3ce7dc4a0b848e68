"""`/pause`, `/resume`, `/block`, `/unblock` and `/model`: single keys of a chat, set by short commands.

They change the chat's lines as `/limits set` does: the same rights, the same record, the same Undo.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bridge.answers import Answer, Handlers
from bridge.limits.changes import Changes, Refused
from bridge.limits.keys import BLOCKED, MODEL, PAUSED, TIMEZONE, Key
from bridge.limits.policies import ChatPolicies, places_of, zone_of
from bridge.limits.rights import LimitRights
from bridge.limits.times import is_paused, standing, until_text
from bridge.texts import Say
from channels.base import Button, InboundMessage
from memory.conversations import SessionPlace
from memory.policies import PolicyPlace

CHOOSE: Final = "model"  # the action of the buttons
ZONE: Final = "zone"  # the action of the buttons that ask for a time zone
LONGEST = timedelta(days=366)
MOST_BUTTONS = 20
_UNIT = r"\d{1,5}(?:min|m|h|d|w)"
_SPAN = re.compile(rf"(?:{_UNIT})+", re.IGNORECASE)
_APART = re.compile(r"\b(\d{1,5})\s+(min|m|h|d|w)\b", re.IGNORECASE)  # `2 h`
_ID = re.compile(r"-?\d+|[A-Za-z][A-Za-z0-9_-]*\d[A-Za-z0-9_-]*", re.ASCII)
_UNITS: Final = {
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


class ChatCommands:
    """`models`: those that a chat may choose, in the operator's order."""

    def __init__(
        self,
        policies: ChatPolicies,
        changes: Changes,
        rights: LimitRights,
        models: Collection[str],
    ) -> None:
        self._policies = policies
        self._changes = changes
        self._rights = rights
        self._models = models

    @property
    def commands(self) -> Handlers:
        """All of them."""
        return {
            "pause": self._pause,
            "resume": self._resume,
            "block": self._block,
            "unblock": self._unblock,
            "model": self._model,
        }

    @property
    def presses(self) -> Handlers:
        """The buttons under `/model`, and those that ask for a time zone."""
        return {CHOOSE: self._chosen, ZONE: self._zone}

    # Pauses and blocks -------------------------------------------------------------------------------

    async def _pause(self, message: InboundMessage, _: SessionPlace, say: Say) -> Answer:
        """The whole chat, also where a topic has a line of its own: that ends no pause of its chat."""
        span, rest = span_in(_args(message))
        if rest or (span is not None and not timedelta() < span <= LONGEST):
            return Answer(say("pause_how"))
        value = "yes" if span is None else until_text(datetime.now(UTC) + span)
        return await self._set(message, PAUSED, value, say, places_of(message.address)[0])

    async def _resume(self, message: InboundMessage, _: SessionPlace, say: Say) -> Answer:
        """A topic may be paused by itself, and with its chat as well."""
        done = await self._set(message, PAUSED, "no", say)
        if not done.buttons or not self._is_paused_by_file(message):
            return done
        more = await self._set(message, PAUSED, "no", say)
        text = f"{done.text}\n{more.text}"
        return replace(more, text=text, buttons=(*done.buttons, *more.buttons))

    def _is_paused_by_file(self, message: InboundMessage) -> bool:
        """Still, and by what can be changed here."""
        policy = self._policies.of(message.address, message.sender.id)
        files = {str(self._policies.files.path(one)) for one in places_of(message.address)}
        return is_paused(policy[PAUSED], datetime.now(UTC)) and policy.origin(PAUSED) in files

    async def _block(self, message: InboundMessage, _: SessionPlace, say: Say) -> Answer:
        span, rest = span_in(_args(message))
        person = _meant(message, rest)
        # A span with a slip is not "for ever"; other words may be the name of who was mentioned.
        unread = [word for word in rest if word[0].isdigit() and word != person]
        if person is None or unread or (span is not None and not timedelta() < span <= LONGEST):
            return Answer(say("block_how"))
        if person == message.sender.id or self._rights.is_owner(message.address, person):
            return Answer(say("block_not_them"))
        now = datetime.now(UTC)
        until = "" if span is None else f" {until_text(now + span)}"
        kept = [*self._others(message, person), f"{person}{until}"]
        return await self._set(message, BLOCKED, f"[{', '.join(kept)}]", say)

    async def _unblock(self, message: InboundMessage, _: SessionPlace, say: Say) -> Answer:
        person = _meant(message, span_in(_args(message))[1])
        if person is None:
            return Answer(say("block_how"))
        return await self._set(
            message, BLOCKED, f"[{', '.join(self._others(message, person))}]", say
        )

    def _others(self, message: InboundMessage, person: str) -> list[str]:
        """Who is blocked besides."""
        blocks = self._policies.of(message.address, message.sender.id)[BLOCKED]
        return [
            block for block in standing(blocks, datetime.now(UTC)) if block.split()[0] != person
        ]

    # Models ----------------------------------------------------------------------------------------

    async def _model(self, message: InboundMessage, _: SessionPlace, say: Say) -> Answer:
        """Which one answers; buttons for whoever may choose."""
        wished = _args(message).strip()
        if wished:
            return await self._set(message, MODEL, wished, say)
        policy = self._policies.of(message.address, message.sender.id)
        text = say("model_now", model=policy[MODEL] or next(iter(self._models), "?"))
        if len(self._models) < 2:
            return Answer(text, silent=True)
        there = ", ".join(f"`{name}`" for name in self._models)
        text = "\n".join((text, say("model_choice", models=there)))
        if not await self._may(message, MODEL):
            return Answer(text, silent=True)
        names = list(self._models)[:MOST_BUTTONS]
        return Answer(text, tuple(Button(name, CHOOSE, name) for name in names), silent=True)

    async def _chosen(self, message: InboundMessage, _: SessionPlace, say: Say) -> Answer:
        name = message.press.value if message.press is not None else ""
        return await self._set(message, MODEL, name, say)

    async def _zone(self, message: InboundMessage, _: SessionPlace, say: Say) -> Answer:
        """In their private chat everybody says where they are."""
        if message.press is None or not message.address.private:
            return Answer("", spent=True)
        zone = message.press.value
        plan = await self._changes.plan(places_of(message.address)[0], f"{TIMEZONE.name}: {zone}")
        if isinstance(plan, Refused):
            return Answer(plan.told(say))
        await self._changes.apply(plan, message, say)
        policy = self._policies.of(message.address, message.sender.id)
        now = f"{datetime.now(zone_of(policy)):%H:%M}"
        return Answer(say("zone_set", zone=zone, now=now), spent=True)

    # How -------------------------------------------------------------------------------------------

    async def _may(self, message: InboundMessage, key: Key[Any]) -> bool | None:
        """In their private chat everybody chooses among the models that chats may have."""
        if key is MODEL and message.address.private:
            return True
        return await self._rights.may_change(message.address, message.sender.id)

    async def _set(
        self,
        message: InboundMessage,
        key: Key[Any],
        value: str,
        say: Say,
        place: PolicyPlace | None = None,
    ) -> Answer:
        """`place`: the chat or topic, else where the key has to be set to count."""
        may = await self._may(message, key)
        if not may:
            pressed = message.press is not None
            address, person = message.address, message.sender.id
            return Answer(await self._rights.no(address, person, may, say, always=pressed))
        place = place or self._place(message, key)
        plan = await self._changes.plan(place, f"{key.name}: {value}", now=True)
        if isinstance(plan, Refused):
            return Answer(plan.told(say))
        return await self._changes.apply(plan, message, say)

    def _place(self, message: InboundMessage, key: Key[Any]) -> PolicyPlace:
        """The chat; its topic where the topic has set the key, since the chat's would not count."""
        places = places_of(message.address)
        origin = self._policies.of(message.address, message.sender.id).origin(key)
        there = [p for p in places if str(self._policies.files.path(p)) == origin]
        return there[-1] if there else places[0]


def _args(message: InboundMessage) -> str:
    return message.command.args if message.command else ""


def span_in(words: str) -> tuple[timedelta | None, list[str]]:
    """The first word that is a span of time, such as `2h`, `2 h` or `1h30m`, and the other words."""
    rest = _APART.sub(r"\1\2", words).split()
    for word in rest:
        if _SPAN.fullmatch(word) is not None:
            rest.remove(word)
            parts = (re.fullmatch(r"(\d+)(\D+)", one) for one in re.findall(_UNIT, word, re.I))
            spans = (int(part[1]) * _UNITS[part[2].lower()] for part in parts if part is not None)
            return sum(spans, timedelta()), rest
    return None, rest


def _meant(message: InboundMessage, words: list[str]) -> str | None:
    """The id of whoever a message is about: who wrote what it answers, else an id in its words."""
    if message.reply_to_person is not None:
        return message.reply_to_person.id
    return next((word for word in words if _ID.fullmatch(word)), None)
