"""Who may change what a channel is, as Slack says at the moment it is asked."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from channels.base import Address
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES, code_of
from channels.slack.people import administers

log = logging.getLogger(__name__)

_PAGE = 999  # members at once: the most that Slack gives
_MOST_PAGES = 20


async def manages(api: SlackApi, to: Address, person: str, named: Collection[str]) -> bool | None:
    """Admins and owners of the workspace; whoever has made the channel, while a full member of both;
    and whom the operator has `named`, people by id and user groups (S…) by their members. None when
    Slack does not say. Never raises."""
    if person in named:
        return True
    answers = [await administers(api, to.account, person)]
    if not answers[0] and any(one.startswith("S") for one in named):
        answers.append(await _is_in_a_group(api, person, named))
    if not any(answers) and not to.private:
        answers.append(await _made_it(api, to, person))
    if any(answers):
        return True
    return None if None in answers else False


async def _is_in_a_group(api: SlackApi, person: str, named: Collection[str]) -> bool | None:
    for group in named:
        if not group.startswith("S"):
            continue
        try:
            answer = await api.read("usergroups.users.list", {"usergroup": group})
        except FAILURES as error:
            log.warning("who is in the user group %s is not known: %s", group, code_of(error))
            return None
        if person in (answer.get("users") or ()):
            return True
    return False


async def _made_it(api: SlackApi, to: Address, person: str) -> bool | None:
    """The creator stays one in Slack after having left the channel or the organisation."""
    try:
        channel: dict[str, Any] = (await api.read("conversations.info", {"channel": to.chat}))[
            "channel"
        ]
        if channel.get("creator") != person:
            return False
        user: dict[str, Any] = (await api.read("users.info", {"user": person}))["user"]
        if user.get("deleted") or user.get("is_restricted") or user.get("team_id") != to.account:
            return False
        return await is_in_channel(api, to.chat, person)
    except FAILURES as error:
        log.warning("who has made channel %s is not known: %s", to.chat, code_of(error))
        return None


async def is_in_channel(api: SlackApi, channel: str, person: str) -> bool:
    """Whether it is one of the channel's members. Raises one of `FAILURES`."""
    cursor = ""
    for _ in range(_MOST_PAGES):
        params = {"channel": channel, "limit": _PAGE} | ({"cursor": cursor} if cursor else {})
        answer = await api.read("conversations.members", params)
        if person in (answer.get("members") or ()):
            return True
        more: dict[str, Any] = answer.get("response_metadata") or {}
        cursor = str(more.get("next_cursor") or "")
        if not cursor:
            return False
    return False
