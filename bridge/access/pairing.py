"""A stranger's private chat: a code, and the owners are asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from bridge.access.desk import Desk
from bridge.access.outcome import Outcome, done, refused
from bridge.access.policy import Access
from bridge.answers import Answer
from bridge.beside import Beside
from bridge.speakers import plain_name
from bridge.texts import Say
from channels.base import Button, InboundMessage, OutboundReply
from memory.access.admissions import Someone
from memory.access.pairings import Decided, Pairing

LET_IN: Final = "let_in"  # actions of the owners' buttons
KEEP_OUT: Final = "keep_out"
WAITS_EVERY: Final = timedelta(minutes=10)  # somebody who has asked is told that they wait
NO_EVERY: Final = timedelta(days=1)  # somebody who may not ask is told so


class PairingRequests:
    """From the first word of a stranger to what an owner has decided."""

    def __init__(self, access: Access, desk: Desk, beside: Beside) -> None:
        self._access = access
        self._stores = access.stores
        self._desk = desk
        self._beside = beside

    async def meet(self, message: InboundMessage, say: Say) -> str | None:
        """What a stranger who has written in private is told; None where they were told already."""
        who = someone(message)
        asked = await self._stores.pairings.ask(who)
        if asked.how == "new":
            if asked.tell:
                self._beside.start(self._ask_owners(asked.id, who), "asking owners")
            return say("pairing", code=asked.code, person=who.person)
        tell_once = self._stores.people.tell_once
        if asked.how == "waits":
            if not await tell_once(f"pairing:{who}", WAITS_EVERY):
                return None
            return say("pairing_waits")
        if not await tell_once(f"no_access:{who}", NO_EVERY):
            return None
        return say("no_access", person=who.person)

    async def ask_again(self) -> None:
        """About those of whom no owner has heard yet."""
        for one in await self._stores.pairings.open(untold=True):
            await self._ask_owners(one.id, one.who)

    async def _ask_owners(self, id_: int, who: Someone) -> None:
        def buttons(say: Say) -> Sequence[Button]:
            return (
                Button(say("access_allow"), LET_IN, str(id_)),
                Button(say("access_refuse"), KEEP_OUT, str(id_)),
            )

        name = plain_name(who.name)
        if await self._desk.ask(who.channel, "pairing_ask", buttons, name=name, who=str(who)):
            await self._stores.pairings.told(id_)

    # What owners decide ---------------------------------------------------------------------------

    async def press(self, message: InboundMessage, say: Say, *, allow: bool) -> Answer:
        """A button under an owner's question."""
        value = message.press.value if message.press else ""
        if not value.isdecimal():
            return Answer(say("pairing_over"), spent=True)
        by = str(someone(message))
        decided = await self._stores.pairings.decide(int(value), by, allow=allow)
        if decided.how == "done" and decided.pairing is not None and allow:
            self._let_in(decided.pairing.who)
        return Answer(told(decided, say, allow=allow).text, in_place=True, spent=True)

    async def approve(self, code: str, by: str, say: Say) -> Outcome:
        """`/approve CODE`."""
        decided = await self._stores.pairings.approve(code, by)
        if decided.how == "done" and decided.pairing is not None:
            self._let_in(decided.pairing.who)
        return told(decided, say, allow=True)

    def _let_in(self, who: Someone) -> None:
        """It is stored: it counts from now on, and they are told."""
        self._access.note(who, "in")
        self._beside.start(self._greet(who), "greeting")

    async def greet(self) -> None:
        """Everybody who was let in and has not heard of it."""
        for who in await self._stores.admissions.to_greet():
            await self._greet(who)

    async def _greet(self, who: Someone) -> None:
        say = await self._desk.say(who.channel, who.person, who.language)
        await self._desk.tell(who.channel, who.person, OutboundReply(say("access_welcome")))
        await self._stores.admissions.greeted(who)


def someone(message: InboundMessage) -> Someone:
    """Who has written."""
    sender = message.sender
    return Someone(message.address.channel, sender.id, sender.name, sender.language)


def told(decided: Decided, say: Say, *, allow: bool) -> Outcome:
    """What whoever has decided is told."""
    pairing = decided.pairing
    if decided.how == "too_many":
        return refused(say, "code_too_many")
    if pairing is None:
        return refused(say, "approve_unknown")
    if decided.how == "over":
        return Outcome(_over(pairing, say))
    key = "access_let_in" if allow else "access_kept_out"
    return done(say, key, name=plain_name(pairing.who.name), who=pairing.who)


def _over(pairing: Pairing, say: Say) -> str:
    """Why it cannot be decided any more."""
    name, who = plain_name(pairing.who.name), pairing.who
    match pairing.state:
        case "allowed":
            return say("access_was_let_in", name=name, who=who, by=pairing.decided_by)
        case "refused":
            return say("access_was_kept_out", name=name, who=who, by=pairing.decided_by)
        case _:
            return say("pairing_over")
