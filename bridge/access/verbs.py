"""`galata approve`, `galata people`, `galata revoke`: asked of the process that runs, or done by the
command itself where none does."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from bridge.access.outcome import Outcome
from bridge.access.pairing import told
from bridge.access.people import Revoking, roster
from bridge.access.policy import Access, ChannelAccess
from bridge.access.stores import AccessStores
from bridge.control import ControlRefused, Verb
from bridge.texts import Say, Texts
from memory.errors import StoreError

if TYPE_CHECKING:
    from agent.messages import JsonObject
    from bridge.access.pairing import PairingRequests

OPERATOR: Final = "operator"  # whoever can run commands beside the bot, in the audit table


def english() -> Say:
    """What the command line says."""
    return Say(Texts.load(), "en")


class AccessVerbs:
    """What the control socket knows of access. The result of each is an `Outcome`."""

    def __init__(self, access: Access, pairing: PairingRequests, revoking: Revoking) -> None:
        self._access = access
        self._pairing = pairing
        self._revoking = revoking
        self._say = english()

    @property
    def verbs(self) -> Mapping[str, Verb]:
        """By name."""
        return {"approve": self._approve, "people": self._people, "revoke": self._revoke}

    async def _approve(self, arguments: JsonObject) -> Any:
        code = str(arguments.get("code", ""))
        return await _stored(self._pairing.approve(code, OPERATOR, self._say))

    async def _people(self, _: JsonObject) -> Any:
        access = self._access
        return await _stored(
            _listing(roster(access.stores, access.all_rules, access.owners(), self._say))
        )

    async def _revoke(self, arguments: JsonObject) -> Any:
        target = str(arguments.get("target", ""))
        return await _stored(self._revoking.revoke(target, "", OPERATOR, self._say))


async def _stored(work: Awaitable[Outcome]) -> JsonObject:
    try:
        return asdict(await work)
    except StoreError as error:
        raise ControlRefused(f"the running galata cannot use its database: {error}") from error


# Where nothing runs ----------------------------------------------------------------------------------


async def approve_alone(stores: AccessStores, code: str) -> Outcome:
    """As the verb; whoever is let in is told at the next start."""
    return told(await stores.pairings.approve(code, OPERATOR), english(), allow=True)


async def people_alone(stores: AccessStores, rules: Mapping[str, ChannelAccess]) -> Outcome:
    """As the verb."""
    listed = {(name, person) for name, one in rules.items() for person in one.owners}
    owners = listed | await stores.people.owners()
    return await _listing(roster(stores, rules.items(), owners, english()))


async def revoke_alone(
    stores: AccessStores, rules: Mapping[str, ChannelAccess], target: str
) -> Outcome:
    """As the verb; a group is left at the next start."""
    return await revoking(stores, rules).revoke(target, "", OPERATOR, english())


async def _listing(text: Awaitable[str]) -> Outcome:
    return Outcome(await text, done=True)


def revoking(stores: AccessStores, rules: Mapping[str, ChannelAccess]) -> Revoking:
    """Without a process that runs."""
    nobody = ChannelAccess()
    return Revoking(
        stores,
        lambda channel, person: person in rules.get(channel, nobody).allowed,
        lambda channel, person: person in rules.get(channel, nobody).owners,
    )
