"""Groups that the bot is added to: one line there, the owners are asked, and it leaves without them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from bridge.access.desk import Desk
from bridge.access.policy import Access
from bridge.answers import Answer
from bridge.beside import Beside
from bridge.scheduler import Due
from bridge.speakers import plain_name
from bridge.texts import Say
from channels.base import Address, Button, Channel, InboundMessage, OutboundReply
from memory.access.known_groups import Group, Met, scope_of
from memory.chats.reach import ChatPlace

log = logging.getLogger(__name__)

GROUP_IN: Final = "group_in"  # actions of the owners' buttons
GROUP_OUT: Final = "group_out"


class GroupDoor:
    """From being added to what an owner has decided."""

    def __init__(
        self, access: Access, desk: Desk, channels: Mapping[str, Channel], beside: Beside
    ) -> None:
        self._access = access
        self._groups = access.stores.groups
        self._desk = desk
        self._channels = channels
        self._beside = beside

    async def joined(self, message: InboundMessage) -> None:
        """The bot was added to a group, or may write in it again. Raises `StoreError`."""
        group, by_owner = _group(message), self._is_owner(message)
        if self._access.lets_in(message.address):
            if await self._groups.welcome(group) and not self._access.has_moved(message.address):
                self._beside.start(self._greet(group), "greeting a group")
            elif message.joined_deaf:
                self._beside.start(self._say(group, "joined_deaf"), "a deaf group")
            return
        if self._access.group_state(message.address) == "refused" and not by_owner:
            self._beside.start(self._go(group), "leaving a group")
            return
        met = await self._meet(group, anew=by_owner)
        if met.new:
            self._beside.start(self._begin(group, tell=met.tell), "a new group")

    async def met(self, message: InboundMessage, say: Say) -> str | None:
        """What somebody is told who has written to the bot in a group that nobody has let in: once in
        the group. Raises `StoreError`."""
        group = _group(message)
        met = await self._meet(group, anew=False)
        if not met.new:
            return None
        if met.tell:
            self._beside.start(self._ask_owners(group), "asking owners")
        return say("group_unknown", chat=group.place.chat)

    async def _meet(self, group: Group, *, anew: bool) -> Met:
        met = await self._groups.meet(group, anew=anew)
        self._access.note_group(met.group.place, met.group.state)
        return met

    async def _begin(self, group: Group, *, tell: bool) -> None:
        rules = self._access.rules(group.place.channel)
        membership = self._channels[group.place.channel].membership
        if not rules.shared_channels and await membership.is_shared(_address(group.place)):
            await self._say(group, "group_shared")
            await self._refuse(group, "galata")
            return
        await self._say(group, "group_unknown")
        if tell:
            await self._ask_owners(group)

    async def _ask_owners(self, group: Group) -> None:
        place = group.place
        value = f"{place.channel}:{place.chat}"

        def buttons(say: Say) -> Sequence[Button]:
            return (
                Button(say("access_allow"), GROUP_IN, value),
                Button(say("group_refuse"), GROUP_OUT, value),
            )

        title = await self._channels[place.channel].membership.title(_address(place))
        if title is not None:
            await self._groups.titled(place, title)
        asked = await self._desk.ask(
            place.channel,
            "group_ask",
            buttons,
            title=plain_name(title or "?"),
            group=value,
            by=f"{place.channel}:{group.added_by}",
        )
        if asked:
            await self._groups.told(place)

    async def ask_again(self) -> None:
        """About groups of which no owner has heard yet."""
        for group in await self._groups.untold():
            if group.place.channel in self._channels:
                await self._ask_owners(group)

    # What owners decide ---------------------------------------------------------------------------

    async def press(self, message: InboundMessage, say: Say, *, allow: bool) -> Answer:
        """A button under an owner's question."""
        channel, _, chat = (message.press.value if message.press else "").partition(":")
        by = f"{message.address.channel}:{message.sender.id}"
        chat = self._access.current(channel, chat)
        if not allow and await self._is_allowed(channel, chat):  # by another owner
            return Answer(await self._over(channel, chat, say), in_place=True, spent=True)
        group = (
            await self._groups.allow(channel, chat, by)
            if allow
            else await self._refused(channel, chat, by)
        )
        if group is None:
            return Answer(await self._over(channel, chat, say), in_place=True, spent=True)
        if allow:
            self._access.note_group(group.place, "allowed")
            self._beside.start(self._greet(group), "greeting a group")
        key = "group_let_in" if allow else "group_kept_out"
        told = say(key, title=_title(group), group=group)
        return Answer(told, in_place=True, spent=True)

    async def _is_allowed(self, channel: str, chat: str) -> bool:
        group = await self._groups.find(channel, chat)
        return group is not None and group.state == "allowed"

    async def _over(self, channel: str, chat: str, say: Say) -> str:
        group = await self._groups.find(channel, chat)
        if group is None or group.state not in ("allowed", "refused"):
            return say("group_over")
        key = "group_was_let_in" if group.state == "allowed" else "group_was_kept_out"
        return say(key, title=_title(group), group=group, by=group.decided_by or "galata")

    async def _refused(self, channel: str, chat: str, by: str) -> Group | None:
        group = await self._groups.refuse(channel, chat, by)
        if group is not None:
            self.gone(group)
        return group

    def gone(self, group: Group) -> None:
        """It is refused, which is stored: it counts from now on, and the group is left."""
        self._access.note_group(group.place, "refused")
        self._beside.start(self._go(group), "leaving a group")

    async def _refuse(self, group: Group, by: str) -> None:
        await self._refused(group.place.channel, group.place.chat, by)

    async def _go(self, group: Group) -> None:
        """What fails is tried again by the job, at the latest at the next start."""
        if await self._leave(group):
            await self._groups.out(group.place)

    async def _leave(self, group: Group) -> bool:
        """Where the platform does not allow it, the owners have to do it."""
        channel = self._channels.get(group.place.channel)
        done = channel is not None and await channel.membership.leave(_address(group.place))
        if not done:
            log.warning("%s: group %s could not be left", group.place.channel, group.place.chat)
            told = {"title": _title(group), "group": group}
            await self._desk.ask(group.place.channel, "group_stays", lambda _: (), **told)
        return done

    # By the clock, and at a start ------------------------------------------------------------------

    async def by_the_clock(self, due: Due) -> str:
        """The job `leave_group`: a group that was refused, or about which nobody has decided."""
        group = next(
            (one for one in await self._groups.all() if scope_of(one.place) == due.scope), None
        )
        if group is None or self._access.lets_in(_address(group.place)):
            return "stays"
        left = await self._leave(group)
        if group.state == "asked":
            await self._groups.left(group.place)
            self._access.note_group(group.place, "left")
        return "left" if left else "could not be left"

    async def greet(self) -> None:
        """Every group that was allowed and has not heard of it."""
        for group in await self._groups.to_greet():
            if (
                self._access.lets_in(_address(group.place))
                and group.place.channel in self._channels
            ):
                await self._greet(group)

    async def _greet(self, group: Group) -> None:
        """How to ask, what there is to know, and the chat's id; once."""
        key = "group_greeting_deaf" if group.deaf else "group_greeting"
        await self._say(group, key)
        await self._groups.greeted(group.place)

    async def _say(self, group: Group, key: str) -> None:
        place = group.place
        say = await self._desk.say(place.channel, group.added_by, group.language)
        await self._desk.post(_address(place), OutboundReply(say(key, chat=place.chat)))

    def _is_owner(self, message: InboundMessage) -> bool:
        return self._access.is_owner(message.address.channel, message.sender.id)


def _group(message: InboundMessage) -> Group:
    place = ChatPlace(message.address.channel, message.address.account, message.address.chat)
    sender = message.sender
    return Group(place, "asked", "", sender.language, message.joined_deaf, sender.id)


def _address(place: ChatPlace) -> Address:
    return Address(place.channel, place.account, place.chat, None, private=False)


def _title(group: Group) -> str:
    return plain_name(group.title or "?")
