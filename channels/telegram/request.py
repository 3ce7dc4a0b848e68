"""The requests of the Bot API on aiohttp, by PTB's own way to bring another HTTP library.

PTB's default library looks at every idle connection at each request and passes each byte through
several layers of Python; with many chats that took more of the event loop's time than the rest of an
answer (docs/decisions/0021). Slack's side uses aiohttp already.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from telegram.error import NetworkError, TelegramError, TimedOut
from telegram.request import BaseRequest, RequestData

_OURS = BaseRequest.DEFAULT_NONE  # the method gives no time of its own

_IDLE_S = 5  # then a connection is closed: by us, so that Telegram does not while a request leaves
_MOST_CLOSED = 3  # connections in a row, until that is a failure


class NoConnection(aiohttp.ClientConnectionError):
    """What was connected to broke off before the request could be sent: a proxy that has not put it
    through yet, for one."""


# There was no connection to send the request on.
NOTHING_LEFT = (
    NoConnection,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
)


# The Bot API's own refusals (tdlib/telegram-bot-api): PTB has an error for each.
_OF_THE_API = (400, 401, 403, 404, 409, 429)


class TurnedAway(NetworkError):
    """A refusal that something in front of the Bot API gave, with its HTTP status (300 to 499): the
    request was not carried out."""

    def __init__(self, status: int) -> None:
        super().__init__(f"refused with status {status}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: until there is a connection, for sending, for sending with files in it, and between two
    parts of an answer."""

    connect_s: float
    write_s: float
    upload_s: float
    read_s: float


class _Connector(aiohttp.TCPConnector):
    """Tells what fails before there is a connection from what fails on it."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        try:
            return await super().connect(req, traces, timeout)
        except NOTHING_LEFT:
            raise
        except aiohttp.ClientError as error:
            raise NoConnection(type(error).__name__) from error


class AiohttpRequest(BaseRequest):
    """Open from the start. `most` requests at a time; further ones wait for a connection."""

    def __init__(
        self, context: ssl.SSLContext, patience: Patience, *, most: int, proxy: str | None
    ) -> None:
        self._context = context
        self._patience = patience
        self._most = most
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    @property
    def read_timeout(self) -> float:
        """Seconds, where a method gives none."""
        return self._patience.read_s

    async def initialize(self) -> None:
        """Open again after `shutdown`."""
        self._closed = False

    async def shutdown(self) -> None:
        """Close the connections. Idempotent."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = _OURS,
        write_timeout: Any = _OURS,
        connect_timeout: Any = _OURS,
        pool_timeout: Any = _OURS,
    ) -> tuple[int, bytes]:
        """The status and the body. Of the times that a method may give, only that for reading counts.

        Raises `TurnedAway`, and `TimedOut` and `NetworkError`, whose cause tells whether the request
        left (`NOTHING_LEFT`). Their texts hold no URL: the token is part of that.
        """
        files = request_data.multipart_data if request_data else {}
        ours = self._patience
        read_s = ours.read_s if read_timeout is _OURS else read_timeout
        timeout = aiohttp.ClientTimeout(connect=ours.connect_s, sock_read=read_s)
        until_head_s = ours.connect_s + (ours.upload_s if files else ours.write_s) + read_s
        try:
            async with asyncio.timeout(until_head_s):
                response = await self._put_through(
                    method, url, data=_form(request_data), timeout=timeout
                )
            async with response:
                body = await response.read()
        except TimeoutError as error:
            raise TimedOut from error
        except aiohttp.ClientError as error:
            raise NetworkError(type(error).__name__) from error
        if 300 <= response.status < 500 and response.status not in _OF_THE_API:
            raise TurnedAway(response.status)
        return response.status, body

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """An answer of the Bot API. Raises `TelegramError` for anything else (a proxy's page or its
        JSON), which PTB makes the cause of the error that goes with the status."""
        try:
            answer: Any = json.loads(payload.decode("utf-8", "replace"))
        except ValueError:
            raise TelegramError("Invalid server response") from None
        match answer:
            case {"ok": True, "result": _} | {"ok": False, "error_code": int()}:
                return cast("dict[str, Any]", answer)
            case _:
                raise TelegramError("Invalid server response")

    async def _put_through(self, method: str, url: str, **how: Any) -> aiohttp.ClientResponse:
        """The head of the answer; on another connection where Telegram had closed the one that was kept
        (aiohttp may notice that only when it writes: nothing has left then)."""
        request = partial(
            self._open().request, method, url, proxy=self._proxy, allow_redirects=False, **how
        )
        for _ in range(_MOST_CLOSED):
            try:
                return await request()
            except aiohttp.ClientOSError as error:
                closed = aiohttp.ClientConnectionResetError
                if not isinstance(error.__cause__ or error, closed):
                    raise
        return await request()

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise NetworkError("the connections are closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(
                    limit=self._most, keepalive_timeout=_IDLE_S, ssl=self._context
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.USER_AGENT},
            )
        return self._session


def _form(data: RequestData | None) -> aiohttp.FormData | None:
    if data is None:
        return None
    form = aiohttp.FormData(data.json_parameters)
    for name, (filename, content, kind) in data.multipart_data.items():
        form.add_field(name, content, filename=filename, content_type=kind)
    return form
