"""Long polling: raw updates, each parsed by itself, acknowledged when it is stored.

Telegram forgets the updates below the `offset` of the next request. The offset moves past an
update when `receive` has returned; it stays as long as nothing can be stored. An update that cannot
be read, or that makes `receive` fail in another way again and again, is logged and left behind, so
that one message never blocks the queue of everybody. The offset outlives a lost connection; after a
restart what was not confirmed comes again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NoReturn, cast
from urllib.parse import urlencode

from telegram import Update
from telegram.error import TelegramError

from channels.base import InboundMessage, Receive
from channels.errors import ChannelUnavailable, NotStored
from channels.messages import asks_to_stop
from channels.telegram.api import Api
from channels.telegram.errors import Meaning, listening_failed, meaning_of
from channels.telegram.parse import BotIdentity, parse
from channels.text import whole_strings

log = logging.getLogger(__name__)

ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")

_POLL_S = 30  # how long Telegram holds a request that has nothing to return
_GRACE_S = 10.0  # more than that without a byte: the connection is dead
RETURN_S = 90.0  # without a whole answer to getUpdates: neither health nor a connection to keep
_REBUILD_S = 5.0
_STORE_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 5.0)  # waits while nothing can be stored, then the last
_FAULT_AGAIN_S = (0.2, 0.5, 1.0)  # waits after another failure; then the update is left behind


class Poller:
    """Receives for one bot; `run` may be called again after it raised."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._offset: int | None = None
        self._returned: float | None = None  # when getUpdates last did, since `run` was called
        self._blocked = 0  # tries in a row to store one update
        self._told_behind = 0  # the last update behind it that was handed over as such

    @property
    def receiving(self) -> bool:
        """Whether getUpdates has returned within the last 90 s."""
        return self._returned is not None and time.monotonic() - self._returned < RETURN_S

    async def run(self, bot: BotIdentity, receive: Receive) -> NoReturn:
        """Poll until cancelled. Raises `ChannelUnavailable` and `ChannelFailed`.

        A connection that breaks is rebuilt and tried again once without a word, since idle
        connections break now and then. One on which getUpdates does not return for 90 s, whatever
        comes in the meantime, is rebuilt.
        """
        try:
            await self._poll(bot, receive)
        finally:
            self._returned = None

    async def _poll(self, bot: BotIdentity, receive: Receive) -> NoReturn:
        broken = False
        while True:
            try:
                async with asyncio.timeout(RETURN_S):
                    updates = await self._fetch()
            except TimeoutError:
                await self._rebuild()
                raise ChannelUnavailable(
                    f"Telegram has not answered getUpdates for {RETURN_S:.0f} s"
                ) from None
            except TelegramError as error:
                await self._rebuild()
                if broken or meaning_of(error) not in (Meaning.UNCERTAIN, Meaning.NOT_SENT):
                    raise listening_failed(error) from None
                broken = True
                continue
            broken = False
            if not self._blocked:
                self._returned = time.monotonic()
            before = self._offset
            await self._take_all(updates, bot, receive)
            if self._blocked:
                await asyncio.sleep(_wait_s(self._blocked))
            elif updates and self._offset == before:
                await asyncio.sleep(1.0)  # updates without an id would come again at once

    async def _fetch(self) -> list[Any]:
        query: dict[str, str | int] = {
            # The first one returns at once: then it is known that messages come.
            "timeout": 0 if self._returned is None else _POLL_S,
            "allowed_updates": json.dumps(ALLOWED_UPDATES),
        }
        if self._offset is not None:
            query["offset"] = self._offset
        url = f"{self._api.bot.base_url}/getUpdates?{urlencode(query)}"
        result = await self._api.polling.post(url, read_timeout=_POLL_S + _GRACE_S)
        return cast("list[Any]", result) if isinstance(result, list) else []

    async def _rebuild(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_REBUILD_S):  # the other side may not even let us go
                await self._api.polling.shutdown()
        await self._api.polling.initialize()

    async def _take_all(self, updates: Sequence[Any], bot: BotIdentity, receive: Receive) -> None:
        """As far as they can be stored. The first that cannot be keeps its place and all that come
        after it; but no stop waits for it, and nobody waits without a word."""
        for number, raw in enumerate(updates):
            update_id = _id_of(raw)
            if update_id is None:
                log.warning("an update without an id was skipped")
                continue
            message = self._parse(raw, update_id, bot)
            try:
                if message is not None:
                    await _handed_over(message, f"update {update_id}", receive)
            except NotStored as error:
                log.warning("update %d is not stored yet, and tried again: %s", update_id, error)
                self._blocked += 1
                await self._hand_over_behind(updates[number + 1 :], bot, receive)
                return
            self._blocked = self._told_behind = 0
            self._offset = update_id + 1

    async def _hand_over_behind(
        self, updates: Sequence[Any], bot: BotIdentity, receive: Receive
    ) -> None:
        """A stop acts before it is stored; who wrote anything else is told, once for each update. All
        of it comes again, in its turn."""
        for raw in updates:
            update_id = _id_of(raw)
            message = None if update_id is None else self._parse(raw, update_id, bot)
            if update_id is None or message is None:
                continue
            if not asks_to_stop(message):
                if update_id <= self._told_behind:
                    continue
                self._told_behind = update_id
                message = replace(message, behind=True)
            with suppress(NotStored):
                await _handed_over(message, f"update {update_id}", receive)

    def _parse(self, raw: Any, update_id: int, bot: BotIdentity) -> InboundMessage | None:
        try:
            update = Update.de_json(whole_strings(raw), self._api.bot)
            return parse(update, bot, received_at=datetime.now(UTC))
        except Exception as error:  # noqa: BLE001 - one bad update must not block the queue
            # Neither its text nor a trace: they may quote the message.
            log.warning("update %d cannot be read: %s", update_id, type(error).__name__)
            return None


def _id_of(raw: Any) -> int | None:
    match raw:
        case {"update_id": int(update_id)}:
            return update_id
        case _:
            return None


async def stored(message: InboundMessage, what: str, receive: Receive) -> None:
    """Hand over until it is stored."""
    tries = 0
    while True:
        try:
            return await _handed_over(message, what, receive)
        except NotStored as error:
            log.warning("%s is not stored yet, and tried again: %s", what, error)
            tries += 1
            await asyncio.sleep(_wait_s(tries))


async def _handed_over(message: InboundMessage, what: str, receive: Receive) -> None:
    """Once; a fault of ours must not block the queue. Raises `NotStored`."""
    for wait_s in (*_FAULT_AGAIN_S, None):
        try:
            return await receive(message)
        except NotStored:
            raise
        except Exception as error:  # noqa: BLE001 - a border: logged, and left behind
            if wait_s is None:
                return _log_fault(what, error)
        await asyncio.sleep(wait_s)
    raise AssertionError("the last fault is logged")


def _wait_s(tries: int) -> float:
    return _STORE_AGAIN_S[min(tries, len(_STORE_AGAIN_S)) - 1]


def _log_fault(what: str, error: Exception) -> None:
    """Where it happened and what kind of error: its text may quote the message."""
    where = "".join(traceback.format_tb(error.__traceback__))
    kind = type(error).__name__
    log.error("%s is lost: it cannot be taken in (%s)\n%s", what, kind, where)
