"""Answers to presses: a notice for the person, and the end of buttons that are of no more use."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from channels.base import Address, InboundMessage, OutboundReply
from channels.errands import Errands
from channels.errors import ChannelError
from channels.inputs import Form
from channels.slack.api import SlackApi
from channels.slack.deliver import REPEATS_S, Delivery
from channels.slack.errors import FAILURES, code_of
from channels.slack.markup import escaped
from channels.slack.notice import ResponseUrls, respond
from channels.slack.parse import asker, view_in
from channels.slack.render import UPDATE_UNITS, pieces
from channels.slack.views import view_of

log = logging.getLogger(__name__)

_NOTICE_CHARACTERS = 2_900


class Presses:
    """`in_the_making`: whether the message with this `ts` belongs to a reply that is not finished,
    which takes its own button away."""

    def __init__(
        self,
        api: SlackApi,
        urls: ResponseUrls,
        errands: Errands,
        in_the_making: Callable[[str], bool],
    ) -> None:
        self._api = api
        self._urls = urls
        self._errands = errands
        self._in_the_making = in_the_making

    async def answer(self, message: InboundMessage, text: str, *, spent: bool) -> None:
        """A message that only this person sees is replaced by the notice when it is `spent`: Slack
        changes such a message no other way. Never raises."""
        notice = escaped(text[:_NOTICE_CHARACTERS]).strip()
        if asker(message.message_id) is not None:
            if await self._respond(message, notice, spent=spent):
                return
        elif spent and message.press is not None:
            taking = self._take_away(message.address, message.press.message_id)
            self._errands.start(taking, "taking buttons away")
        if notice:
            await self._notify(message, notice)

    async def replace(self, message: InboundMessage, reply: OutboundReply) -> bool:
        """Put a reply in the place of the message that was pressed. Never raises."""
        press, contents = (
            message.press,
            pieces(reply.markdown, reply.buttons, first_units=UPDATE_UNITS),
        )
        if press is None or len(contents) != 1:
            return False
        if asker(message.message_id) is not None:
            url = self._urls.use(press.id)
            shown = {"text": contents[0].text, "blocks": list(contents[0].blocks)}
            body = {"response_type": "ephemeral", "replace_original": True, **shown}
            return url is not None and await respond(self._api, url, body)
        try:
            await Delivery(self._api, message.address, repeats_s=REPEATS_S).update(
                press.message_id, contents[0], "answer"
            )
        except ChannelError as error:
            log.info("message %s stays as it is: %s", press.message_id, type(error).__name__)
            return False
        return True

    async def open_form(self, message: InboundMessage, form: Form) -> bool:
        """Open a modal, or put the form in the place of the one that was pressed. Never raises."""
        view = view_of(form, message.address)
        inside = view_in(message.press.id) if message.press is not None else None
        if inside is not None:
            method, where = "views.update", {"view_id": inside[0], "hash": inside[1]}
        else:
            one = asker(message.message_id)
            trigger = message.press.id if message.press is not None else one.trigger if one else ""
            if not trigger:  # a message in words
                return False
            method, where = "views.open", {"trigger_id": trigger}
        try:
            await self._api.write(method, {**where, "view": view})
        except FAILURES as error:
            log.info("no form for %s: %s", message.event, code_of(error))
            return False
        return True

    async def _respond(self, message: InboundMessage, notice: str, *, spent: bool) -> bool:
        """Whether the address that came with the press took it."""
        url = self._urls.use(message.press.id) if message.press is not None else None
        if url is None:
            return False
        if notice:
            body: dict[str, Any] = {"text": notice, "replace_original": spent}
            return await respond(self._api, url, body | {"response_type": "ephemeral"})
        return not spent or await respond(self._api, url, {"delete_original": True})

    async def _notify(self, message: InboundMessage, notice: str) -> None:
        where = {"channel": message.address.chat, "user": message.sender.id}
        if message.address.thread is not None:
            where["thread_ts"] = message.address.thread
        try:
            await self._api.write("chat.postEphemeral", {**where, "text": notice})
        except FAILURES as error:
            log.info("press %s was not answered: %s", message.event, code_of(error))

    async def _take_away(self, to: Address, ts: str) -> None:
        """The message as it stands now, without its buttons: since the press it may have become
        another."""
        if self._in_the_making(ts):
            return
        delivery = Delivery(self._api, to, repeats_s=REPEATS_S)
        try:
            await delivery.remove_buttons(ts)
        except ChannelError as error:
            log.info("the buttons of message %s stay: %s", ts, type(error).__name__)
