"""The door: everything about who may talk, built once for a bridge, and what strangers meet at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final

from agent.cancel import CancelTokenRegistry
from bridge.access.commands import AccessCommands
from bridge.access.desk import Desk
from bridge.access.groups import GroupDoor
from bridge.access.invites import InviteLinks, invite_in
from bridge.access.pairing import PairingRequests
from bridge.access.people import Revoking
from bridge.access.policy import Access, ChannelAccess, Verdict
from bridge.access.review import Review
from bridge.access.silence import Silence
from bridge.access.verbs import AccessVerbs
from bridge.beside import Beside
from bridge.scheduler import Handler
from bridge.texts import Say, Texts
from channels.base import Channel, InboundMessage
from memory.access.admissions import Someone
from memory.access.known_groups import LEAVE, Group
from memory.inbox import Inbox, InboxKey

NO_EVERY: Final = timedelta(days=1)  # an outsider is told so
LIMIT_S: Final = 300.0  # for leaving a group


class Door:
    """`language`: that of the configuration, or None where each person's own counts. `dropped` hears of
    waiting messages that are closed."""

    def __init__(
        self,
        access: Access,
        channels: Mapping[str, Channel],
        texts: Texts,
        language: str | None,
        tokens: CancelTokenRegistry,
        inbox: Inbox,
        dropped: Callable[[str, Iterable[InboxKey]], None],
        beside: Beside,
    ) -> None:
        self._access = access
        self._beside = beside
        self._language = language
        self._silence = Silence(tokens, dropped)
        self._review = Review(access, inbox, channels, self._silence)
        self.desk = Desk(access.owners, channels, texts, self._language_of)
        self._pairing = PairingRequests(access, self.desk, beside)
        self._invites = InviteLinks(access)
        self._groups = GroupDoor(access, self.desk, channels, beside)
        revoking = Revoking(
            access.stores,
            lambda channel, person: person in access.rules(channel).allowed,
            lambda channel, person: person in access.rules(channel).owners,
            self._shut_out,
            self._refused,
        )
        self.commands = AccessCommands(
            access, self._pairing, self._invites, self._groups, revoking, channels
        )
        self.verbs = AccessVerbs(access, self._pairing, revoking).verbs
        self.handlers = {LEAVE: Handler(self._groups.by_the_clock, LIMIT_S)}

    async def joined(self, message: InboundMessage) -> None:
        """The bot is in a group. Raises `StoreError`."""
        await self._groups.joined(message)

    async def answer(self, message: InboundMessage, verdict: Verdict, say: Say) -> str | None:
        """What somebody without access is told; None for silence. Raises `StoreError`."""
        code = invite_in(message)
        if code is not None:
            return await self._invites.use(message, code, verdict, say)
        if not message.addressed:  # overheard in a group where every message is a question
            return None
        if verdict == "unreadable":
            return say("access_unreadable")
        if verdict == "outsider":
            who = Someone(message.address.channel, message.sender.id)
            told = await self._access.stores.people.tell_once(f"outsider:{who}", NO_EVERY)
            return say("access_outsider") if told else None
        if message.address.private:
            return await self._pairing.meet(message, say)
        return await self._groups.met(message, say) if verdict == "unknown" else None

    def see(self, message: InboundMessage) -> None:
        """Somebody has written in private: an owner who could not be reached can be asked now."""
        address, person = message.address, message.sender.id
        if address.private and self.desk.is_here(address.channel, person):
            self.owner_came()

    def owner_came(self) -> None:
        """Somebody has become an owner, or can be reached now: they are asked what waits."""
        self._beside.start(self._ask_again(), "asking owners")

    async def taken(self, message: InboundMessage, session_key: str, changes: int) -> None:
        """A question is stored whose person had access when it came, when the rules had changed so
        often: a right that was taken back in the meantime counts. Raises `StoreError`."""
        if self._access.changes != changes:
            await self._review.one(message, session_key)
        channel, person = message.address.channel, message.sender.id
        if self._access.is_shut_out(channel, person):
            await self._access.stores.admissions.close(channel, person)
            self._silence.person(channel, person)

    def change(self, rules: Mapping[str, ChannelAccess]) -> None:
        """The configuration's rules are others from now on. Whoever has lost access by that is not
        answered any more, running answers included; whoever owns the bot now is asked what waits."""
        self._access.change(rules)
        self._beside.start(self._changed(), "access rules")

    async def _changed(self) -> None:
        self._beside.start(self._review.everything(), "access review")
        await self._ask_again()
        await self._groups.greet()

    async def resume(self) -> None:
        """After a start: what an earlier process, or a command without one, has left to be told; who
        has lost access since they asked is not answered."""
        self._beside.start(self._review.everything(), "access review")
        await self.desk.warn()
        await self._ask_again()
        await self._pairing.greet()
        await self._groups.greet()

    async def _ask_again(self) -> None:
        await self._pairing.ask_again()
        await self._groups.ask_again()

    def _shut_out(self, channel: str, person: str) -> None:
        self._access.note(Someone(channel, person), "out")
        self._silence.person(channel, person)

    def _refused(self, group: Group) -> None:
        self._groups.gone(group)
        self._silence.chat(group.place)

    async def _language_of(self, channel: str, person: str) -> str | None:
        return self._language or await self._access.stores.people.language(channel, person)
