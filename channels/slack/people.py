"""Who wrote: names and languages by id, kept for a while. A look-up never holds a message up."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from channels.membership import Standing
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES, code_of
from channels.slack.parse import Person

log = logging.getLogger(__name__)

_KEPT = 2_000  # people
_KNOWN_S = 3600.0
_FAILED_S = 60.0  # without a name a person is not asked for again so soon
_MOST_PER_MESSAGE = 6  # the sender and five who are mentioned


@dataclass(frozen=True, slots=True)
class _Entry:
    person: Person | None
    good_until: float
    user: Mapping[str, Any] | None = None


class People:
    """A cache over users.info. `wait_s`: how long a message waits for names, in seconds; Slack
    wants its acknowledgement within three."""

    def __init__(self, api: SlackApi, *, wait_s: float = 0.7) -> None:
        self._api = api
        self._wait_s = wait_s
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    async def look_up(self, ids: Iterable[str]) -> dict[str, Person]:
        """Those of these people whose names are known or come in time. Never raises."""
        wanted = list(ids)[:_MOST_PER_MESSAGE]
        missing = [user for user in wanted if self._fresh(user) is None]
        if missing:
            await asyncio.gather(*(self._ask(user) for user in missing))
        found = {user: self._entries.get(user) for user in wanted}
        return {user: entry.person for user, entry in found.items() if entry and entry.person}

    async def standing(self, user: str, team: str) -> Standing | None:
        """What the person is to the workspace `team`; None when Slack does not say in time. A look-up
        that failed is made again. Never raises."""
        entry = self._fresh(user)
        if entry is None or entry.user is None:
            await self._ask(user)
            entry = self._entries[user]
        return None if entry.user is None else _standing(entry.user, team)

    def _fresh(self, user: str) -> _Entry | None:
        entry = self._entries.get(user)
        if entry is None or entry.good_until < _now():
            return None
        self._entries.move_to_end(user)
        return entry

    async def _ask(self, user: str) -> None:
        person: Person | None = None
        told: dict[str, Any] | None = None
        try:
            async with asyncio.timeout(self._wait_s):
                answer = await self._api.read(
                    "users.info", {"user": user, "include_locale": "true"}
                )
            person = _person(answer["user"])
            told = answer["user"]
        except FAILURES as error:
            log.info("no name for %s: %s", user, code_of(error))
        except (KeyError, TypeError, AttributeError) as error:
            log.warning("no name for %s: an answer without it (%s)", user, type(error).__name__)
        kept_s = _FAILED_S if person is None else _KNOWN_S
        self._entries[user] = _Entry(person, _now() + kept_s, told)
        self._entries.move_to_end(user)
        while len(self._entries) > _KEPT:
            self._entries.popitem(last=False)


async def administers(api: SlackApi, team: str, person: str) -> bool | None:
    """Whether the person is an admin or owner of the workspace `team`; False for those of other
    workspaces, whose channels may be shared, and None when Slack does not say. Never raises."""
    try:
        answer = await api.read("users.info", {"user": person})
    except FAILURES as error:
        log.warning("whether %s is an admin is not known: %s", person, code_of(error))
        return None
    match answer.get("user"):
        case {"is_admin": True} | {"is_owner": True}:
            return _belongs_to(answer["user"], team)
        case _:
            return False


def _belongs_to(user: Mapping[str, Any], team: str) -> bool:
    """In an enterprise a person may be in several workspaces, and `team_id` names one."""
    grid: dict[str, Any] = user.get("enterprise_user") or {}
    teams: list[str] = grid.get("teams") or []
    return bool(user.get("team_id") == team or team in teams)


def _standing(user: Mapping[str, Any], team: str) -> Standing:
    if user.get("deleted"):
        return "gone"
    if user.get("is_stranger") or not _belongs_to(user, team):
        return "foreign"
    return "guest" if user.get("is_restricted") or user.get("is_ultra_restricted") else "full"


def _person(user: dict[str, Any]) -> Person:
    profile: dict[str, Any] = user.get("profile") or {}
    name = profile.get("display_name") or user.get("real_name") or user["name"]
    locale, zone = user.get("locale"), user.get("tz")
    return Person(str(name), str(locale) if locale else None, str(zone) if zone else None)


def _now() -> float:
    return asyncio.get_running_loop().time()
