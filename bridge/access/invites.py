"""`/invite`: a link, or a code where there are no links, that lets people in."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from bridge.access.pairing import someone
from bridge.access.policy import Access, Verdict
from bridge.texts import Say
from channels.base import Channel, InboundMessage
from memory.access.codes import INVITE_PREFIX

USUAL_DAYS: Final = 7
MOST_USES: Final = 1_000
LONGEST: Final = timedelta(days=365)
_SPAN = re.compile(r"(\d{1,4})([mhd])", re.ASCII)
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


class InviteLinks:
    """Made by owners, used by whoever has them."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._stores = access.stores

    async def make(self, message: InboundMessage, channel: Channel, say: Say) -> str:
        """`/invite`, `/invite 50`, `/invite 50 7d`."""
        wish = _wish(message.command.args if message.command else "")
        if wish is None:
            return say("invite_how")
        uses, lifetime = wish
        by = str(someone(message))
        code = await self._stores.invites.make(message.address.channel, uses, lifetime, by)
        link = channel.membership.start_link(code)
        key = "invite_code" if link is None else "invite_link"
        return say(key, link=link or code, uses=uses, span=_told(lifetime))

    async def use(self, message: InboundMessage, code: str, verdict: Verdict, say: Say) -> str:
        """What somebody who has sent a code is told."""
        who = someone(message)
        if verdict == "yes":
            return say("invite_already")
        if verdict in ("outsider", "unreadable"):
            return say(f"access_{verdict}")
        if not message.own_words or message.edited_command:
            return say("invite_passed_on")
        used = await self._stores.invites.use(code, who)
        if used == "in":
            self._access.note(who, "in")
            await self._stores.admissions.greeted(who)  # by this answer
            return say("access_welcome")
        return say("code_too_many" if used == "too_many" else "invite_bad")


def invite_in(message: InboundMessage) -> str | None:
    """The code in a private chat, recognised as `bridge.commands.dispatch.owner_code` does it."""
    if not message.address.private:
        return None
    if message.command is not None:
        words = message.command.args.strip() if message.command.name == "start" else ""
    else:
        words = message.text.strip().removeprefix("/start").lstrip()
    return words if words.startswith(INVITE_PREFIX) and len(words.split()) == 1 else None


def span_of(words: str) -> timedelta | None:
    """`30m`, `2h`, `7d`."""
    found = _SPAN.fullmatch(words)
    return None if found is None else int(found[1]) * _UNITS[found[2]]


def _wish(args: str) -> tuple[int, timedelta] | None:
    """How many people, and for how long; None for anything else."""
    uses, lifetime = 1, timedelta(days=USUAL_DAYS)
    for word in args.lower().split():
        span = span_of(word)
        if span is not None:
            lifetime = span
        elif word.isascii() and word.isdecimal():
            uses = int(word[:5])
        else:
            return None
    fine = 1 <= uses <= MOST_USES and timedelta(0) < lifetime <= LONGEST
    return (uses, lifetime) if fine else None


def _told(span: timedelta) -> str:
    """As it is typed."""
    for unit in ("d", "h"):
        if span % _UNITS[unit] == timedelta(0):
            return f"{span // _UNITS[unit]}{unit}"
    return f"{span // _UNITS['m']}m"
