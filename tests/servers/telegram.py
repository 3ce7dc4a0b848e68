"""A Telegram Bot API server on loopback, scripted by a test.

    async with TelegramServer() as server:
        ana = server.user("Ana", language_code="en")
        chat = server.private(ana)
        chat.send("hi")                                # the bot's getUpdates returns it
        message = await chat.wait_for_text("hello")    # what the person sees
        chat.press(message, "Stop")
        server.fail_next("sendMessage", drop=True, acted=True)

Written from core.telegram.org/bots/api. It refuses what the real server refuses, with its words.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from types import TracebackType

from aiohttp import web

from tests.servers.telegram_chat import Chat
from tests.servers.telegram_faults import HTML_ERROR, Fault, Faults
from tests.servers.telegram_methods import METHODS, as_json
from tests.servers.telegram_params import Params, read
from tests.servers.telegram_people import Message, Press, User
from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import ApiError
from tests.servers.telegram_world import World

__all__ = ["ApiError", "Chat", "Message", "Press", "TelegramServer", "User"]


@dataclass(frozen=True)
class Call:
    """A request of the bot: method as spelled, parameters, `time.monotonic()` of its arrival."""

    method: str
    params: Json
    at: float = field(default_factory=time.monotonic)


class TelegramServer(World):
    """The platform behind HTTP. `base_url` and `base_file_url` are what PTB's Bot takes."""

    def __init__(
        self,
        token: str = "123456:TEST-token",
        *,
        username: str = "galata_test_bot",
        name: str = "Galata",
        privacy_mode: bool = True,
        topics_enabled: bool = False,
    ) -> None:
        bot = User(int(re.match(r"\d+", token)[0]), name, username, is_bot=True)  # type: ignore[index]
        super().__init__(bot, privacy_mode=privacy_mode, topics_enabled=topics_enabled)
        self.token = token
        self.calls: list[Call] = []
        self.faults = Faults()
        self._runner: web.AppRunner | None = None
        self._origin = ""

    # ---- life ---------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        """For `telegram.Bot(token, base_url=…)`."""
        return f"{self._origin}/bot"

    @property
    def base_file_url(self) -> str:
        """For `telegram.Bot(token, base_file_url=…)`."""
        return f"{self._origin}/file/bot"

    async def start(self, port: int = 0) -> None:
        """Listens on a port of 127.0.0.1, a free one by default."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self._origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Ends polls and stalls and closes the port."""
        self.faults.release_all()
        self.updates.interrupt(ApiError(500, "Internal Server Error: restart"))
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> TelegramServer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # ---- scripting ----------------------------------------------------------------------------

    def calls_to(self, method: str) -> list[Call]:
        """The calls of one method, oldest first."""
        return [call for call in self.calls if call.method.lower() == method.lower()]

    async def wait_for_call(self, method: str, count: int = 1, timeout: float = 5.0) -> Call:
        """The `count`-th call of a method."""
        await self.wait_for(lambda: len(self.calls_to(method)) >= count, timeout)
        return self.calls_to(method)[count - 1]

    def fail_next(
        self,
        method: str = "*",
        *,
        status: int | None = None,
        description: str | None = None,
        parameters: Json | None = None,
        html: bool = False,
        drop: bool = False,
        stall: bool = False,
        acted: bool = False,
        count: int = 1,
        chat: Chat | None = None,
        text: str | None = None,
    ) -> Fault:
        """Makes the next `count` fitting calls fail.

        `status` with `description`: a JSON refusal; `html`: an HTML page with that status;
        `drop`: the connection is cut without an answer; `stall`: no answer until
        `Fault.release()`, after which the call is answered normally. `acted`: the call takes
        effect first (a message accepted whose answer is lost). `text`: only calls whose text
        contains it.
        """
        page = HTML_ERROR if html else None
        return self.faults.add(
            Fault(
                method,
                status=status or (502 if html else 500),
                description=description,
                parameters=parameters,
                html=page,
                drop=drop,
                stall=stall,
                acted=acted,
                left=count,
                chat_id=None if chat is None else chat.id,
                text=text,
            )
        )

    def flood(self, chat: Chat | int, *, retry_after: int = 1, count: int = 1) -> None:
        """The next `count` calls that name this chat are refused with 429."""
        self.faults.flood(chat if isinstance(chat, int) else chat.id, retry_after, count)

    def push_raw(self, update: Json) -> int:
        """Queues an update exactly as given (`update_id` is added if missing); its id."""
        return self.updates.push_raw(update)

    # ---- HTTP ---------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return web.json_response(error.body(), status=error.status)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        token, name = request.match_info["token"], request.match_info["method"]
        if token != self.token:
            raise ApiError(401, "Unauthorized") if ":" in token else ApiError(404, "Not Found")
        params = await read(request)
        self.calls.append(Call(name, params.values))
        self.changed()
        method = name.lower()
        fault = self.faults.take(method, params)
        if fault is None:
            return _success(await self._perform(method, params))
        return await self._fail(request, method, params, fault)

    async def _perform(self, method: str, params: Params) -> str:
        if method == "getupdates":
            return await self._get_updates(params)
        if method == "getme":
            return as_json(self._me())
        if method not in METHODS:
            raise ApiError(404, "Not Found: method not found")
        self.faults.check_flood(params.integer("chat_id"))
        return as_json(METHODS[method](self, params))

    def _me(self) -> Json:
        return self.bot.json() | {
            "can_join_groups": True,
            "can_read_all_group_messages": not self.privacy_mode,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.topics_enabled,
        }

    async def _get_updates(self, params: Params) -> str:
        if self.webhook_url:
            raise ApiError(
                409,
                "Conflict: can't use getUpdates method while webhook is active; "
                "use deleteWebhook to delete the webhook first",
            )
        self.updates.allow(params.parsed("allowed_updates", "allowed updates"))
        limit = min(max(params.integer("limit", 100), 1), 100)
        timeout = min(max(params.integer("timeout"), 0), 50)
        result = await self.updates.poll(params.integer("offset"), limit, timeout)
        return f'{{"ok":true,"result":{result}}}'

    async def _fail(
        self, request: web.Request, method: str, params: Params, fault: Fault
    ) -> web.StreamResponse:
        done = await self._perform(method, params) if fault.acted else None
        if fault.stall:
            await fault.released.wait()
            return _success(done or await self._perform(method, params))
        if fault.drop:
            if request.transport is not None:
                request.transport.abort()
            await asyncio.Event().wait()  # ended by the lost connection
        assert fault.status is not None
        if fault.html is not None:
            return web.Response(text=fault.html, status=fault.status, content_type="text/html")
        description = fault.description or "Internal Server Error"
        error = ApiError(fault.status, description, fault.parameters)
        return web.Response(
            text=json.dumps(error.body()), status=error.status, content_type="application/json"
        )


def _success(body: str) -> web.Response:
    return web.Response(text=body, content_type="application/json")
