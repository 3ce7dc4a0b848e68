"""The Web API: one session, the SDK's errors, and Slack's rate limits.

The SDK's own retries are off: they would send a message again whose answer was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, cast

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from channels.parts import Passage
from channels.slack.errors import (
    FAILURES,
    Meaning,
    data_of,
    delivery_failed,
    headers_of,
    listening_failed,
    meaning_of,
    wait_asked_for,
)
from channels.slack.logs import sdk_logger
from channels.slack.pace import Pace
from channels.slack.settings import SlackSettings
from channels.text import whole_strings

BASE_URL: Final = "https://slack.com/api/"

_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=10)
_MOST_WAIT_S = 120.0  # a longer wait is left to whoever sends again later

Params = Mapping[str, Any]
Urgency = Literal["answer", "preview"] | Passage
"""A `Passage`: an answer, whose waits end with `Halted` when it is halted."""
Result = TypeVar("Result")
Call = Callable[..., Awaitable[AsyncSlackResponse]]


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """Who the bot is, as `auth.test` tells. `scopes` are those of its token; `url` the
    workspace's address."""

    team_id: str
    user_id: str
    name: str
    team: str
    url: str
    scopes: tuple[str, ...]


class SlackApi:
    """The requests of one app. To be used in one event loop."""

    def __init__(self, settings: SlackSettings) -> None:
        self._settings = settings
        self._client: AsyncWebClient | None = None
        self._session: aiohttp.ClientSession | None = None
        self._pace = Pace()

    @property
    def base_url(self) -> str:
        """The root of the Web API."""
        return self._settings.base_url or BASE_URL

    @property
    def proxy(self) -> str | None:
        """The proxy of all requests."""
        proxy = self._settings.proxy
        return None if proxy is None else proxy.get_secret_value()

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session, opened at its first use. It adds no token to requests."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=_TIMEOUT)
        return self._session

    @property
    def client(self) -> AsyncWebClient:
        """The SDK's client, with the bot token."""
        if self._client is None:
            self._client = AsyncWebClient(
                self._settings.bot_token.get_secret_value(),
                base_url=self.base_url,
                session=self.session,
                logger=sdk_logger(),
                retry_handlers=[],
            )
            self._client.proxy = self.proxy  # not what the environment says
        return self._client

    async def identify(self) -> BotIdentity:
        """Who the bot is, which also checks its token. Raises `ChannelFailed`,
        `ChannelUnavailable`."""
        try:
            answer = await self._call("auth.test")
        except FAILURES as error:
            raise listening_failed(error, "bot_token") from None
        data = data_of(answer)
        scopes = headers_of(answer).get("x-oauth-scopes", "")
        return BotIdentity(
            team_id=data["team_id"],
            user_id=data["user_id"],
            name=data.get("user", ""),
            team=data.get("team", ""),
            url=data.get("url", ""),
            scopes=tuple(scope.strip() for scope in scopes.split(",") if scope.strip()),
        )

    async def open_connection(self) -> str:
        """The address of a new websocket, good for one use. Raises `ChannelFailed`,
        `ChannelUnavailable`."""
        token = self._settings.app_token
        if token is None:
            raise ValueError("Socket Mode needs channels.slack.app_token")
        try:
            bearer = {"token": token.get_secret_value()}  # the SDK makes a header of it
            answer = await self._call("apps.connections.open", params=bearer)
        except FAILURES as error:
            raise listening_failed(error, "app_token") from None
        return str(data_of(answer)["url"])

    async def read(self, method: str, params: Params) -> dict[str, Any]:
        """A method that only reads, once; strings are whole. Raises one of `FAILURES`."""
        answer = await self._call(method, http_verb="GET", params=dict(params))
        return cast("dict[str, Any]", whole_strings(data_of(answer)))

    async def write(self, method: str, params: Params) -> dict[str, Any]:
        """A method that changes something, once and at once. Raises one of `FAILURES`."""
        return data_of(await self._call(method, json=dict(params)))

    async def send(self, method: str, params: Params, urgency: Urgency) -> dict[str, Any]:
        """A message, an update, … to `params["channel"]` when the pace allows.

        Raises one of `FAILURES`; `Dropped` for a preview that would have to wait; `Halted`;
        `ChannelUnavailable` when an answer would have to wait longer than 120 s.
        """
        channel = str(params["channel"])
        if urgency == "preview":
            await self._pace.take_preview(method, channel)
            return await self._noting(method, channel, lambda: self.write(method, params))
        passage = urgency if isinstance(urgency, Passage) else Passage()
        return await self.patiently(method, channel, lambda: self.write(method, params), passage)

    async def patiently(
        self, method: str, channel: str, request: Callable[[], Awaitable[Result]], passage: Passage
    ) -> Result:
        """Repeat `request` as long as Slack asks to wait. Raises as `send` does."""
        while True:
            async with passage.interruptible():
                await asyncio.sleep(self._pace.wait_s(method, channel))
            await passage.leaving()
            try:
                return await self._noting(method, channel, request)
            except FAILURES as error:
                if meaning_of(error) is not Meaning.RATE_LIMITED:
                    raise
                await passage.stayed()
                if wait_asked_for(error) > _MOST_WAIT_S:
                    raise delivery_failed(error) from None

    async def _noting(
        self, method: str, channel: str, request: Callable[[], Awaitable[Result]]
    ) -> Result:
        try:
            return await request()
        except FAILURES as error:
            if meaning_of(error) is Meaning.RATE_LIMITED:
                self._pace.close(method, channel, wait_asked_for(error))
            raise

    async def upload(self, name: str, data: bytes, place: Params) -> None:
        """A file, once, shown at `place` (`channel`, `thread_ts`,
        `initial_comment`). Raises one of `FAILURES`."""
        call = cast("Call", self.client.files_upload_v2)  # pyright: ignore[reportUnknownMemberType]
        await call(filename=name, title=name, content=data, **place)

    async def _call(self, method: str, **request: Any) -> AsyncSlackResponse:
        call = cast("Call", self.client.api_call)  # pyright: ignore[reportUnknownMemberType]
        return await call(method, **request)

    async def aclose(self) -> None:
        """Close the session. Idempotent; a later request opens a new one."""
        session, self._session, self._client = self._session, None, None
        if session is not None:
            await session.close()
