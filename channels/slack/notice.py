"""Replies to commands: seen only by the person who asked, and kept by nobody."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from channels.base import (
    Address,
    Delivered,
    OutboundDocument,
    OutboundReply,
    ReplyJournal,
    ReplyPart,
)
from channels.errors import ReplyRefused
from channels.parts import Finishing, Halt, Parts, Passage
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES, Meaning, code_of, delivery_failed, meaning_of
from channels.slack.parse import Asker
from channels.slack.render import Content, dump, load, pieces

log = logging.getLogger(__name__)

NOTICE_UNITS: Final = 2_900
"""Ephemeral messages were reported to be refused from 3,000 on (nautobot-app-chatops#132)."""

_KEPT = 1_000
_LIFE_S = 29 * 60.0  # docs.slack.dev/interactivity/handling-user-interaction: 30 minutes, 5 uses
_USES = 5
_OK = 200


class ResponseUrls:
    """Where a slash command or a press may be answered, also in a conversation that the bot is no
    member of. In memory only: whoever has the address can write there."""

    def __init__(self) -> None:
        self._urls: OrderedDict[str, tuple[str, float, int]] = OrderedDict()

    def keep(self, trigger: str, url: str) -> None:
        """Remember an address for half an hour and five uses."""
        self._urls[trigger] = (url, _now() + _LIFE_S, _USES)
        while len(self._urls) > _KEPT:
            self._urls.popitem(last=False)

    def use(self, trigger: str) -> str | None:
        """The address, if it can still be used."""
        url, until, left = self._urls.get(trigger, ("", 0.0, 0))
        if left == 0 or until < _now():
            self._urls.pop(trigger, None)
            return None
        self._urls[trigger] = (url, until, left - 1)
        return url


class SlackNotice(Finishing):
    """A `ReplySink` without a preview."""

    def __init__(
        self,
        api: SlackApi,
        to: Address,
        asker: Asker,
        urls: ResponseUrls,
        journal: ReplyJournal | None = None,
    ) -> None:
        self._api = api
        self._to = to
        self._asker = asker
        self._urls = urls
        self._halt = Halt()
        self._parts = Parts(self._halt, journal)

    def show(self, more: str) -> None:
        """Nothing is shown before the end."""

    async def compose(self, reply: OutboundReply) -> tuple[str, ...]:
        """Its messages."""
        parts = pieces(
            reply.markdown, reply.buttons, first_units=NOTICE_UNITS, units_each=NOTICE_UNITS
        )
        return (*map(dump, parts), *map(dump, reply.documents))

    async def deliver(self, parts: Sequence[ReplyPart], *, note: str = "") -> Delivered:
        """Deliver. Raises `DeliveryError`, `ChannelUnavailable`; `ReplyRefused` also for documents,
        which only everybody can be shown."""

        async def one(number: int, part: ReplyPart, passage: Passage) -> None:
            item = load(part.body)
            if isinstance(item, OutboundDocument):
                raise ReplyRefused("Slack: documents cannot be shown to one person alone")
            await self._deliver(
                item.noted(note) if part.state == "again" and note else item, passage
            )

        await self._parts.send(parts, one)
        return self._parts.outcome()

    def halt(self) -> None:
        """Leave the rest unsent."""
        self._halt.set()

    async def discard(self) -> None:
        """Nothing to remove."""

    async def _deliver(self, part: Content, passage: Passage) -> None:
        url = self._urls.use(self._asker.trigger)
        body = {"response_type": "ephemeral", "replace_original": False, **_shown(part)}
        if url is not None:
            await passage.leaving()
            if await respond(self._api, url, body):
                return
        try:
            await self._post(part, passage)
        except FAILURES as error:
            if meaning_of(error) is not Meaning.REFUSED:
                raise delivery_failed(error) from None
            log.warning("once more as plain text: %s", code_of(error))
            await passage.stayed()
            await self._post_plain(part, passage)

    async def _post_plain(self, part: Content, passage: Passage) -> None:
        try:
            await self._post(part.plain, passage)
        except FAILURES as error:
            raise delivery_failed(error) from None

    async def _post(self, part: Content, passage: Passage) -> None:
        params = {"channel": self._to.chat, "user": self._asker.user, **_shown(part)}
        if self._to.thread not in (None, self._asker.trigger):  # only what has replies shows it
            params["thread_ts"] = self._to.thread
        await self._api.send("chat.postEphemeral", params, passage)


async def respond(api: SlackApi, url: str, body: dict[str, Any]) -> bool:
    """Whether a response address took it."""
    try:
        async with api.session.post(url, json=body, proxy=api.proxy) as answer:
            if answer.status == _OK:
                return True
            log.info("a response address refused: HTTP %d", answer.status)
    except FAILURES as error:
        log.info("a response address failed: %s", type(error).__name__)
    return False


def _shown(part: Content) -> dict[str, Any]:
    return {"text": part.text, "blocks": list(part.blocks)}


def _now() -> float:
    return asyncio.get_running_loop().time()
