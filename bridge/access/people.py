"""`/people` and `/revoke`: who may talk, and taking the right back at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bridge.access.outcome import Outcome, done, refused
from bridge.access.policy import ChannelAccess
from bridge.access.stores import AccessStores
from bridge.speakers import plain_name
from bridge.texts import Say
from memory.access.admissions import Admission
from memory.access.invites import Invite
from memory.access.known_groups import Group
from memory.access.pairings import Pairing

MOST_LINES: Final = 40  # of each kind that are told in a chat
INVITE: Final = "invite"  # what stands before an invite's number, where else a channel does


async def roster(
    stores: AccessStores,
    rules: Iterable[tuple[str, ChannelAccess]],
    owners: Iterable[tuple[str, str]],
    say: Say,
    most: int | None = None,
) -> str:
    """Everybody who may talk or asks to, as Markdown; `most` of each kind."""

    def few(lines: Sequence[str]) -> list[str]:
        if most is None or len(lines) <= most:
            return list(lines)
        return [*lines[:most], say("people_more", count=len(lines) - most)]

    everybody, groups = await stores.admissions.all(), await stores.groups.all()
    sections = [
        ("people_owners", [f"- `{channel}:{person}`" for channel, person in sorted(owners)]),
        ("people_listed", [line for name, one in rules for line in _listed(name, one, say)]),
        ("people_in", [_person(one, say) for one in everybody if one.state == "in"]),
        ("people_out", [_person(one, say) for one in everybody if one.state == "out"]),
        ("people_asking", [_asking(one) for one in await stores.pairings.open()]),
        ("people_groups", [_group(one, say) for one in groups if not one.only_listed]),
        ("people_invites", [_invite(one, say) for one in await stores.invites.good()]),
    ]
    parts = ["\n".join([say(key), *few(lines)]) for key, lines in sections if lines]
    return "\n\n".join(parts) or say("people_nobody")


def _listed(name: str, rules: ChannelAccess, say: Say) -> list[str]:
    lines = [f"- `{name}:{one}`" for one in sorted(rules.allowed)]
    lines += [
        say("people_members_of", group=f"{name}:{one}" if one else name)
        for one in sorted(rules.members_of)
    ]
    if rules.open:
        lines.append(say("people_open", channel=name))
    return lines


def _person(one: Admission, say: Say) -> str:
    via, _, number = one.via.partition(":")
    how = {"pairing": say("people_by_code"), INVITE: f"`{INVITE}:{number}`"}.get(via, "")
    name = plain_name(one.who.name) if one.who.name else ""
    told = ", ".join(filter(None, (name, how, say("people_decided", by=one.by, at=one.at[:10]))))
    return f"- `{one.who}` {told}"


def _group(one: Group, say: Say) -> str:
    return f"- `{one}` {plain_name(one.title or '?')}: {say(f'people_group_{one.state}')}"


def _asking(one: Pairing) -> str:
    return f"- `{one.who}` {plain_name(one.who.name)}, {_minute(one.asked_at)}"


def _invite(one: Invite, say: Say) -> str:
    return say(
        "people_invite",
        invite=f"{INVITE}:{one.id}",
        channel=one.channel,
        used=one.used,
        uses=one.uses,
        until=_minute(one.expires_at),
    )


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


class Revoking:
    """Takes rights back. `gone(group)` and `silent(channel, person)` carry out, in a process that runs,
    what follows from a right that is stored as taken."""

    def __init__(
        self,
        stores: AccessStores,
        listed: Callable[[str, str], bool],
        is_owner_by_config: Callable[[str, str], bool],
        silent: Callable[[str, str], None] = lambda channel, person: None,
        gone: Callable[[Group], None] = lambda group: None,
    ) -> None:
        self._stores = stores
        self._listed = listed
        self._is_owner_by_config = is_owner_by_config
        self._silent = silent
        self._gone = gone

    async def revoke(self, target: str, home: str, by: str, say: Say) -> Outcome:
        """`target`: `channel:id` of a person or group, an id on the channel `home`, or `invite:N`. What
        is said of it."""
        kind, colon, id_ = target.strip().partition(":")
        if not colon:
            kind, id_ = home, kind
        if not id_ or len(id_.split()) != 1:
            return refused(say, "revoke_how")
        if kind == INVITE:
            ended = id_.isdecimal() and await self._stores.invites.revoke(int(id_), by)
            key = "revoked_invite" if ended else "revoke_unknown"
            return Outcome(say(key, who=target), ended)
        if self._is_owner_by_config(kind, id_):
            return refused(say, "revoke_owner", who=f"{kind}:{id_}")
        group = await self._stores.groups.refuse(kind, id_, by)
        if group is not None:
            self._gone(group)
            return done(say, "revoked_group", who=group)
        known = await self._stores.people.is_known(kind, id_)
        if known or self._listed(kind, id_):
            return await self._person(kind, id_, by, say)
        return refused(say, "revoke_unknown", who=f"{kind}:{id_}" if kind else id_)

    async def _person(self, channel: str, person: str, by: str, say: Say) -> Outcome:
        changed = await self._stores.admissions.shut_out(channel, person, by)
        self._silent(channel, person)
        if not changed:
            return refused(say, "revoked_already", who=f"{channel}:{person}")
        key = "revoked_listed" if self._listed(channel, person) else "revoked"
        return done(say, key, who=f"{channel}:{person}")
