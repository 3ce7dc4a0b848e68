"""How owners are asked, and people told, in their private chats."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from bridge.texts import Say, Texts
from channels.base import Address, Button, Channel, OutboundReply
from channels.errors import ChannelError, ChannelUnavailable, Uncertain

log = logging.getLogger(__name__)

Owner = tuple[str, str]  # channel, person
SEND_S: Final = 60.0  # for one message
AGAIN_S: Final = (1.0, 5.0, 30.0, 120.0, 600.0)  # after each try on a channel that is down


class Desk:
    """`owners()`: all of them; `language(channel, person)`: that of a person, as far as it is known."""

    def __init__(
        self,
        owners: Callable[[], set[Owner]],
        channels: Mapping[str, Channel],
        texts: Texts,
        language: Callable[[str, str], Awaitable[str | None]],
    ) -> None:
        self._owners = owners
        self._channels = channels
        self._texts = texts
        self._language = language
        self._unreached: set[Owner] = set()

    async def ask(
        self, channel: str, key: str, buttons: Callable[[Say], Sequence[Button]], **values: object
    ) -> bool:
        """Put a question to the owners on that channel, or where none is reached there to all others;
        whether anybody was reached."""
        owners = {owner for owner in self._owners() if owner[0] in self._channels}
        here = {owner for owner in owners if owner[0] == channel}
        return await self._ask_all(here, key, buttons, values) or await self._ask_all(
            owners - here, key, buttons, values
        )

    async def _ask_all(
        self,
        owners: Iterable[Owner],
        key: str,
        buttons: Callable[[Say], Sequence[Button]],
        values: Mapping[str, object],
    ) -> bool:
        reached = await asyncio.gather(*(self._ask(one, key, buttons, values) for one in owners))
        return any(reached)

    async def _ask(
        self,
        owner: Owner,
        key: str,
        buttons: Callable[[Say], Sequence[Button]],
        values: Mapping[str, object],
    ) -> bool:
        say = await self.say(*owner, None)
        reply = OutboundReply(say(key, **values), buttons=tuple(buttons(say)))
        reached = await self.tell(*owner, reply)
        if reached:
            self._unreached.discard(owner)
        else:
            self._unreached.add(owner)
            log.warning("owner %s on %s cannot be reached in private", owner[1], owner[0])
        return reached

    async def tell(self, channel: str, person: str, reply: OutboundReply) -> bool:
        """Whether it arrived; tried again while the channel is down."""
        return await self.post(Address(channel, "", person), reply)

    async def post(self, to: Address, reply: OutboundReply) -> bool:
        """The same for any chat."""
        if to.channel not in self._channels:
            return False
        for wait_s in (*AGAIN_S, None):
            outcome = await self._send(to, reply)
            if outcome != "later" or wait_s is None:
                return outcome == "there"
            await asyncio.sleep(wait_s)
        return False

    async def _send(self, to: Address, reply: OutboundReply) -> Literal["there", "no", "later"]:
        sink = self._channels[to.channel].open_reply(to, reply_to=None)
        try:
            async with asyncio.timeout(SEND_S):
                delivered = await sink.finish(reply)
        except Uncertain:
            return "there"  # rather once too few
        except (ChannelUnavailable, TimeoutError):
            return "later"
        except ChannelError as error:
            log.info("nothing reaches %s on %s: %s", to.chat, to.channel, error)
            return "no"
        return "there" if delivered.complete else "no"

    async def say(self, channel: str, person: str, language: str | None) -> Say:
        """The texts for that person; `language`: what their client has said."""
        known = await self._language(channel, person)
        chosen = self._texts.language(known, language)
        return Say(self._texts, chosen, self._channels[channel].capabilities)

    # Owners who cannot be reached ------------------------------------------------------------------

    async def out_of_reach(self) -> list[Owner]:
        """Owners to whom nothing can be written, as the platforms say now: on Telegram those who have
        never written to the bot, or have blocked it."""
        found: list[Owner] = []
        for owner in sorted(self._owners()):
            channel = self._channels.get(owner[0])
            if channel is None:
                continue
            can = await channel.membership.can_write_to(owner[1])
            if can is False or owner in self._unreached:
                found.append(owner)
        return found

    async def warn(self) -> None:
        """Tell the log of those."""
        for channel, person in await self.out_of_reach():
            log.warning(
                "owner %s on %s cannot be told anything: they have to write to the bot first",
                person,
                channel,
            )

    def is_here(self, channel: str, person: str) -> bool:
        """The person has written in private; whether they are an owner who could not be reached."""
        if (channel, person) not in self._unreached:
            return False
        self._unreached.discard((channel, person))
        return True
