"""`/memory erase` and `/privacy erase`: what goes is said first, then it is asked once more, and
then it is gone. The answer to the last press stands in the place of the question and is stored
nowhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from bridge.answers import Answer, Handlers
from bridge.chats.erasing import Busy, Eraser, Found
from bridge.chats.keeper import place_of
from bridge.chats.rights import Rights
from bridge.limits.policies import zone_of
from bridge.runs.turn_plan import TurnServices
from bridge.sharing import Sharing
from bridge.texts import Say
from channels.base import Address, Button, InboundMessage
from memory.chats.reach import ChatPlace
from memory.conversations import SessionPlace

ERASE: Final = "erase"  # the action of the buttons
MOST_SHOWN = 20  # lines about a person; how many more there are is said

What = Literal["me", "chat"]
_COMMAND: Final = {"me": "privacy", "chat": "memory"}
_TYPED: Final = ("", "yes", "for good")  # what takes each step where there are no buttons


class Groups:
    """Which groups a person reads, as the platforms say now."""

    def __init__(self, rights: Rights, sharing: Sharing) -> None:
        self._rights = rights
        self._sharing = sharing

    async def of(self, person: str, places: Sequence[ChatPlace]) -> set[ChatPlace]:
        """Those that the person is in."""
        answers = await asyncio.gather(
            *(self._rights.reads(_group(place), person) for place in places)
        )
        return {place for place, reads in zip(places, answers, strict=True) if reads}

    def shares(self, place: ChatPlace) -> bool:
        """Whether the group has its memory together with others."""
        return self._sharing.audience(_group(place)) == "shared"


def _group(place: ChatPlace) -> Address:
    return Address(place.channel, place.account, place.chat, None, private=False)


class EraseCommands:
    """Who may is asked at each step anew."""

    def __init__(self, eraser: Eraser, services: TurnServices, rights: Rights) -> None:
        self._eraser = eraser
        self._services = services
        self._rights = rights

    @property
    def subcommands(self) -> Handlers:
        """By all of their words."""
        return {"memory erase": self._memory, "privacy erase": self._privacy}

    @property
    def presses(self) -> Handlers:
        """By the buttons' action."""
        return {ERASE: self._press}

    async def _memory(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        return await self._typed("chat", message, say)

    async def _privacy(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        return await self._typed("me", message, say)

    async def _typed(self, what: What, message: InboundMessage, say: Say) -> Answer:
        words = " ".join(message.command.args.lower().split()[1:]) if message.command else ""
        by_words = not say.capabilities.buttons and words in _TYPED
        return await self._step(what, _TYPED.index(words) if by_words else 0, message, say)

    async def _press(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        value = message.press.value if message.press is not None else ""
        what, _, step = value.partition(":")
        if what == "chat" and not await self._rights.over_all(message):
            return Answer(say("admins_only"))
        if step not in ("1", "2") or (what == "me" and not message.address.private):
            return Answer(say("erase_kept"), in_place=True)
        return await self._step("chat" if what == "chat" else "me", int(step), message, say)

    async def _step(self, what: What, step: int, message: InboundMessage, say: Say) -> Answer:
        if step == 2:
            return Answer(await self._done(what, message, say), in_place=True)
        if what == "me":
            told = _told(await self._found(message), say)
        else:
            told = say(f"erase_chat_{self._services.memory.sharing.audience(message.address)}")
        parts = [told, self._copies(message, say), say("erase_really") if step else ""]
        buttons: tuple[Button, ...] = ()
        if say.capabilities.buttons:
            label = say("erase_button_really" if step else "erase_button")
            buttons = (
                Button(label, ERASE, f"{what}:{step + 1}"),
                Button(say("erase_button_no"), ERASE, f"{what}:no"),
            )
        else:
            command = f"{say.capabilities.command_prefix}{_COMMAND[what]} erase {_TYPED[step + 1]}"
            parts.append(say("erase_typed", command=f"`{command}`"))
        return Answer("\n\n".join(filter(None, parts)), buttons, in_place=True)

    async def _done(self, what: What, message: InboundMessage, say: Say) -> str:
        by = f"{message.address.channel}:{message.sender.id}"
        copies = self._copies(message, say)  # as of before: what is erased names its time
        try:
            if what == "me":
                await self._eraser.person(await self._found(message), by)
            else:
                await self._eraser.chat(self._here(message), by)
        except Busy:
            return say("erase_busy")
        return "\n\n".join((say("erase_done"), copies))

    async def _found(self, message: InboundMessage) -> Found:
        """All that there is of the sender; the private chat that this comes from is one of theirs."""
        here = self._here(message)
        groups = Groups(self._rights, self._services.memory.sharing)
        found = await self._eraser.find(message.address.channel, message.sender.id, groups)
        return found if here in found.private else found.with_private(here)

    def _here(self, message: InboundMessage) -> ChatPlace:
        return self._services.chats.current(place_of(message.address))

    def _copies(self, message: InboundMessage, say: Say) -> str:
        until = self._eraser.until(self._services.storing, datetime.now(UTC))
        zone = zone_of(self._services.policies.of(message.address, message.sender.id))
        day = "" if until is None else f"{until.astimezone(zone):%Y-%m-%d}"
        return " ".join(
            filter(None, (say("erase_until", day=day) if day else "", say("erase_copies")))
        )


def _told(found: Found, say: Say) -> str:
    """What goes; lines about the person in chats of several first of all."""
    lines = [line for trace in found.shared if trace.inside for line in trace.lines]
    lines += found.together if found.inside else ()
    unseen = sum(len(trace.lines) for trace in found.shared if not trace.inside)
    unseen += 0 if found.inside else len(found.together)
    if not found.shared and not lines and not unseen:
        return say("erase_me", shared="")
    questions = sum(trace.questions for trace in found.shared)
    shown = [f"> {line}" for line in lines[:MOST_SHOWN]]
    if len(lines) > MOST_SHOWN:
        shown.append(say("erase_more", count=len(lines) - MOST_SHOWN))
    if unseen or not all(trace.inside for trace in found.shared):
        shown.append("\n" + say("erase_unseen", count=unseen))
    shared = say("erase_me_shared", questions=questions, count=len(lines))
    return say("erase_me", shared="\n\n".join(filter(None, (shared, "\n".join(shown)))))
