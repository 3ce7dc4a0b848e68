"""Single requests about messages in one conversation, with the refusals turned into ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from channels.base import Address, OutboundDocument
from channels.errors import ChannelError, ChannelUnavailable
from channels.media import MAX_TEXT_BYTES
from channels.messages import STOP_ACTION
from channels.parts import Passage
from channels.slack.api import SlackApi, Urgency
from channels.slack.buttons import without_buttons
from channels.slack.errors import FAILURES, Meaning, code_of, delivery_failed, meaning_of
from channels.slack.markup import escaped
from channels.slack.render import Content

log = logging.getLogger(__name__)

REPEATS_S: Final = (0.3, 1.0, 3.0)
"""The pauses before a request is repeated that has not left, or can be repeated."""

# Previews of links would fetch addresses that a model wrote.
_AS_IT_IS = {"unfurl_links": False, "unfurl_media": False, "mrkdwn": False}
_SEARCHED = 50  # messages in which a lost preview is looked for

Result = TypeVar("Result")


class Delivery:
    """`to.thread` None: at the top level of the conversation. Where `urgency` is a
    `Passage`, nothing is sent again once its reply is halted, and `Halted` is raised."""

    def __init__(self, api: SlackApi, to: Address, *, repeats_s: tuple[float, ...]) -> None:
        self._api = api
        self._to = to
        self._repeats_s = repeats_s

    async def post(self, content: Content, urgency: Urgency) -> str:
        """A new message; its `ts`. Raises `DeliveryError`, `ChannelUnavailable`, `Dropped`."""
        params = self._place() | _AS_IT_IS | {"text": content.text}
        if content.blocks:
            params |= {"blocks": list(content.blocks)}
        answer = await self._send("chat.postMessage", params, urgency, repeatable=False)
        return str(answer["ts"])

    async def update(self, ts: str, content: Content, urgency: Urgency) -> None:
        """Change a message of ours. Raises `MessageGone` when that cannot be, and as `post`."""
        # Without `blocks` an update keeps those that stand there.
        shown = {"text": content.text, "blocks": list(content.blocks)}
        params = {"channel": self._to.chat, "ts": ts, **shown}
        await self._send("chat.update", params, urgency, repeatable=True)

    async def delete(self, ts: str) -> None:
        """Remove a message of ours. Raises as `update`."""
        params = {"channel": self._to.chat, "ts": ts}
        await self._send("chat.delete", params, "answer", repeatable=True)

    async def remove_buttons(self, ts: str) -> None:
        """A message of ours as it stands now, without its buttons; nothing happens where it has
        none, or cannot be read. Raises as `update`."""
        found = await self._message(ts) or {}
        blocks: list[dict[str, Any]] = found.get("blocks") or []
        kept = without_buttons(blocks)
        if len(kept) < len(blocks):
            # Slack gives `text` as it was sent: escaped.
            await self.update(ts, Content(str(found.get("text") or ""), tuple(kept)), "answer")

    async def upload(self, document: OutboundDocument, passage: Passage, *, note: str = "") -> None:
        """A text file, with a sentence above. Raises `DeliveryError`, `ChannelUnavailable`,
        `Halted`."""
        data = document.text.encode(errors="replace")[:MAX_TEXT_BYTES]
        if not data:
            return  # Slack takes no empty file
        place = self._place() | ({"initial_comment": escaped(note)} if note else {})
        upload = partial(self._api.upload, document.name, data, place)
        await self._repeating(
            lambda: self._api.patiently("files.upload", self._to.chat, upload, passage),
            passage,
            repeatable=False,
        )

    async def find(self, request_id: str, *, after: str | None) -> list[str]:
        """The `ts` of our messages whose Stop button has this value, newest first. `after`: the `ts`
        of the message that they answer. Raises `DeliveryError`, `ChannelUnavailable`: they cannot
        be read."""
        bounds: dict[str, Any] = {"limit": _SEARCHED}
        if after is not None:
            bounds |= {"oldest": after}
        found = [str(m["ts"]) for m in await self._read(bounds) if _has_button(m, request_id)]
        return sorted(found, key=float, reverse=True)

    async def _message(self, ts: str) -> dict[str, Any] | None:
        """A message as it stands now; None if it is gone or cannot be read."""
        params = {"oldest": ts, "latest": ts, "inclusive": "true"}
        try:
            return next((one for one in await self._read(params) if one.get("ts") == ts), None)
        except ChannelError as error:
            log.info("message %s cannot be read: %s", ts, error)
            return None

    async def _read(self, bounds: dict[str, Any]) -> list[dict[str, Any]]:
        """Messages of the conversation. Raises `DeliveryError`, `ChannelUnavailable`."""
        method, params = "conversations.history", {"channel": self._to.chat, **bounds}
        if self._to.thread is not None:
            method, params = "conversations.replies", params | {"ts": self._to.thread}
        try:
            answer = await self._api.read(method, params)
        except FAILURES as error:
            raise delivery_failed(error) from None
        return answer.get("messages") or []

    def _place(self) -> dict[str, Any]:
        place: dict[str, Any] = {"channel": self._to.chat}
        return place if self._to.thread is None else place | {"thread_ts": self._to.thread}

    async def _send(
        self, method: str, params: dict[str, Any], urgency: Urgency, *, repeatable: bool
    ) -> dict[str, Any]:
        if urgency == "preview":  # the next frame is the repetition
            try:
                return await self._api.send(method, params, urgency)
            except FAILURES as error:
                raise delivery_failed(error) from None
        passage = urgency if isinstance(urgency, Passage) else Passage()
        return await self._repeating(
            lambda: self._api.send(method, params, passage), passage, repeatable=repeatable
        )

    async def _repeating(
        self, request: Callable[[], Awaitable[Result]], passage: Passage, *, repeatable: bool
    ) -> Result:
        """Repeat what has not left, and if `repeatable` what may have arrived."""
        for pause_s in (*self._repeats_s, None):
            try:
                return await request()
            except FAILURES as error:
                meaning = meaning_of(error)
                if meaning is Meaning.NOT_SENT:
                    await passage.stayed()
                elif meaning is not Meaning.UNCERTAIN or not repeatable:
                    raise delivery_failed(error) from None
                if pause_s is None:
                    what = f"Slack cannot be reached ({code_of(error)})"
                    raise ChannelUnavailable(what) from None
            async with passage.interruptible():
                await asyncio.sleep(pause_s)
        raise AssertionError("the last try returns or raises")


def _has_button(message: dict[str, Any], request_id: str) -> bool:
    elements = [e for block in message.get("blocks") or () for e in block.get("elements") or ()]
    return any(
        element.get("action_id") == STOP_ACTION and element.get("value") == request_id
        for element in elements
    )
