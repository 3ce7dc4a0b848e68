"""Who may do what: owners, those whom the configuration lists, and those who were let in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from bridge.access.members import Members
from bridge.access.stores import AccessStores
from channels.base import Address, Channel, Sender
from memory.access.admissions import Someone, State
from memory.access.known_groups import GroupState
from memory.chats.reach import ChatPlace, Chats, Move

Verdict = Literal["yes", "unknown", "shut_out", "outsider", "unreadable"]
"""`unknown`: nobody has let this person or group in; `shut_out`: an owner has taken the right back, or
refused the group; `outsider`: a guest, another organisation, or a channel that others read along in;
`unreadable`: the platform does not say what a right hangs on."""


@dataclass(frozen=True, slots=True)
class ChannelAccess:
    """One channel's rules from the configuration.

    `owners`, and `allowed` people (in private) and chats, by id. `open`: everybody may talk.
    `members_of`: chats whose members may talk, there and in private (an empty one: the workspace's full
    members). `guests`, `other_organizations`, `shared_channels`: let in like full members and inner
    channels. `terminal`: whoever sits at it owns the bot. `managers`: people, and Slack's user groups,
    who may set limits.
    """

    owners: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()
    open: bool = False
    members_of: frozenset[str] = frozenset()
    guests: bool = False
    other_organizations: bool = False
    shared_channels: bool = False
    terminal: bool = False
    managers: frozenset[str] = frozenset()

    @property
    def named(self) -> frozenset[str]:
        """Every id of a chat, and people's, that lets somebody in."""
        return self.allowed | self.members_of


_NOBODY = ChannelAccess()


class Access:
    """The one place that answers who may do what."""

    def __init__(
        self,
        rules: Mapping[str, ChannelAccess],
        chats: Chats,
        stores: AccessStores,
        channels: Mapping[str, Channel],
    ) -> None:
        self._rules = rules
        self.changes = 0  # of the rules, since the start
        self._chats = chats
        self.stores = stores
        self._channels = channels
        self._members = Members(channels)
        self._owners: set[tuple[str, str]] = set()
        self._people: dict[tuple[str, str], State] = {}
        self._groups: dict[ChatPlace, GroupState] = {}

    async def load(self) -> None:
        """Read what is not in the configuration; call it before anything else."""
        self._owners = await self.stores.people.owners()
        everybody = await self.stores.admissions.all()
        self._people = {(one.who.channel, one.who.person): one.state for one in everybody}
        groups = await self.stores.groups.all()
        self._groups = {one.place: one.state for one in groups if not one.only_listed}

    def change(self, rules: Mapping[str, ChannelAccess]) -> None:
        """The configuration says something else: it counts from the next verdict on."""
        self._rules = rules
        self.changes += 1

    @property
    def all_rules(self) -> Collection[tuple[str, ChannelAccess]]:
        """What the configuration says, by channel."""
        return self._rules.items()

    def rules(self, channel: str) -> ChannelAccess:
        """What the configuration says of the channel."""
        return self._rules.get(channel, _NOBODY)

    # Owners ---------------------------------------------------------------------------------------

    def is_owner(self, channel: str, person: str) -> bool:
        """Whether the person owns the bot on that channel."""
        rules = self.rules(channel)
        return rules.terminal or person in rules.owners or (channel, person) in self._owners

    def has_owner(self, channel: str) -> bool:
        """Whether anybody owns the bot on that channel."""
        return self.rules(channel).terminal or any(c == channel for c, _ in self.owners())

    def owners(self) -> set[tuple[str, str]]:
        """All who own the bot, as (channel, person); not whoever sits at the terminal."""
        listed = {(name, person) for name, rules in self._rules.items() for person in rules.owners}
        return listed | self._owners

    async def claim(self, channel: str, person: str, code: str) -> bool:
        """Make the person an owner by a one-time code; false for a used, old or wrong code."""
        if not await self.stores.people.claim_ownership(channel, person, code):
            return False
        self._owners.add((channel, person))
        return True

    # Everybody ------------------------------------------------------------------------------------

    async def verdict(self, address: Address, sender: Sender) -> Verdict:
        """Whether a message of this person at this place is answered; the platform may be asked."""
        if self.is_owner(address.channel, sender.id):
            return "yes"
        if self.is_shut_out(address.channel, sender.id):
            return "shut_out"
        outside = await self._outside(address, sender)
        if outside is not None:
            return outside
        rules = self.rules(address.channel)
        if not address.private and self.group_state(address) == "refused":
            return "shut_out"
        if rules.open:
            return "yes"
        return await self._alone(address, sender) if address.private else self._in_group(address)

    async def _outside(self, address: Address, sender: Sender) -> Verdict | None:
        """Why somebody or a place stays outside whatever else holds. Whoever is listed by id is not
        asked what they are."""
        rules = self.rules(address.channel)
        membership = self._channels[address.channel].membership
        if not (address.private or rules.shared_channels):
            shared = await membership.is_shared(address)
            if shared is not False:
                return "unreadable" if shared is None else "outsider"
        if sender.id in rules.allowed:
            return None
        standing = await membership.standing(address, sender.id)
        allowed = {
            "full": True,
            "guest": rules.guests,
            "foreign": rules.other_organizations,
            "gone": False,
        }
        if standing is None:
            return "unreadable"
        return None if allowed[standing] else "outsider"

    async def _alone(self, address: Address, sender: Sender) -> Verdict:
        """In a private chat."""
        rules = self.rules(address.channel)
        let_in = self._people.get((address.channel, sender.id)) == "in"
        if let_in or sender.id in rules.allowed:
            return "yes"
        groups = {self.current(address.channel, group) for group in rules.members_of}
        member = await self._members.is_in_one(address, groups, sender.id)
        if member is None:
            return "unreadable"
        return "yes" if member else "unknown"

    def _in_group(self, address: Address) -> Verdict:
        """A right in private opens no group, nor does an id of a person in the configuration."""
        return "yes" if self.lets_in(address) else "unknown"

    def is_shut_out(self, channel: str, person: str) -> bool:
        """Whether an owner has taken the person's right back. Owners have theirs in any case."""
        out = self._people.get((channel, person)) == "out"
        return out and not self.is_owner(channel, person)

    def hears(self, address: Address, sender: Sender) -> bool:
        """Whether what this person writes in the group, without meaning the bot, is of any interest;
        the platform is not asked, so that an answer needs a `verdict` as well."""
        out = self.is_shut_out(address.channel, sender.id)
        return self.is_owner(address.channel, sender.id) or (self.lets_in(address) and not out)

    def lets_in(self, address: Address) -> bool:
        """Whether the group itself is let in, by the configuration or by an owner."""
        state, rules = self.group_state(address), self.rules(address.channel)
        if state in ("allowed", "refused"):
            return state == "allowed"
        return rules.open or not rules.named.isdisjoint(self._chats.names(_place(address)))

    def group_state(self, address: Address) -> GroupState | None:
        """What an owner has decided about the group, under this id or an earlier one; else what is
        known of it. (The bot may be in a supergroup before it hears that a group has become that.)"""
        place = _place(address)
        names = sorted(self._chats.names(place), key=lambda name: name != place.chat)
        known: GroupState | None = None
        for chat in names:
            state = self._groups.get(ChatPlace(place.channel, place.account, chat))
            if state == "allowed" or state == "refused":
                return state
            known = known or state
        return known

    def has_moved(self, address: Address) -> bool:
        """Whether the group had another id before."""
        return len(self._chats.names(_place(address))) > 1

    def current(self, channel: str, chat: str) -> str:
        """The id that the chat has now."""
        known = {(move.channel, move.old): move.new for move in self._chats.moves}
        return known.get((channel, chat), chat)

    @property
    def outdated(self) -> list[Move]:
        """The moves of chats which the configuration still lists under an id that is no more."""
        return outdated(self._rules, self._chats)

    # Changes, which are stored already --------------------------------------------------------------

    def note(self, who: Someone, state: State) -> None:
        """The person was let in or shut out."""
        self._people[who.channel, who.person] = state
        if state == "out":
            self._owners.discard((who.channel, who.person))

    def note_group(self, place: ChatPlace, state: GroupState) -> None:
        """The group was met or decided about."""
        self._groups[place] = state

    def forget_chat(self, channel: str, chat: str) -> None:
        """Nothing is stored of the chat any more."""
        for place in [p for p in self._groups if (p.channel, p.chat) == (channel, chat)]:
            del self._groups[place]


def outdated(rules: Mapping[str, ChannelAccess], chats: Chats) -> list[Move]:
    """As `Access.outdated`."""
    return [move for move in chats.moves if move.old in rules.get(move.channel, _NOBODY).named]


def _place(address: Address) -> ChatPlace:
    return ChatPlace(address.channel, address.account, address.chat)
