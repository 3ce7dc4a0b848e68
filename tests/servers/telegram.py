"""A Telegram Bot API server on loopback, scripted by a test.

    async with TelegramServer() as server:
        ana = server.user("Ana", language_code="en")
        chat = server.private(ana)
        chat.send("hi")                                # the bot's getUpdates returns it
        message = await chat.wait_for_text("hello")    # what the person sees
        chat.press(message, "Stop")
        server.fail_next("sendMessage", drop=True, acted=True)

Written from core.telegram.org/bots/api. It refuses what the real server refuses, with its words.
`telegram_acts` and `telegram_places` say what members can do, `telegram_chat` what a test sees.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from types import TracebackType

from aiohttp import web

from tests.servers.telegram_account_methods import MESSAGE_METHODS, METHODS
from tests.servers.telegram_acts import Chat
from tests.servers.telegram_faults import Fault, Faults, FloodControl, cut, error_response
from tests.servers.telegram_media import UPLOAD_LIMIT
from tests.servers.telegram_params import Params, read
from tests.servers.telegram_people import Message, Press, User
from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import CONFLICT, ApiError
from tests.servers.telegram_world import World

__all__ = ["ApiError", "Call", "Chat", "Fault", "Message", "Press", "TelegramServer", "User"]


@dataclass(frozen=True)
class Call:
    """A request of the bot: method as spelled, parameters as sent, monotonic time of arrival.

    A file download is a call of the method "download".
    """

    method: str
    params: Json
    at: float = field(default_factory=time.monotonic)

    def param(self, name: str) -> object:
        """A parameter, JSON-serialised lists and objects parsed."""
        value = self.params.get(name)
        if isinstance(value, str) and value[:1] in ("{", "["):
            return json.loads(value)
        return value


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
        flood_control: bool = False,
    ) -> None:
        """`topics_enabled`: topics in private chats. `flood_control`: Telegram's real limits."""
        number = re.match(r"\d+", token)
        bot = User(int(number.group()) if number else 1, name, username, is_bot=True)
        super().__init__(bot, privacy_mode=privacy_mode, topics_enabled=topics_enabled)
        self.token = token
        self.calls: list[Call] = []
        self.faults = Faults()
        self.floods = FloodControl(realistic=flood_control)
        self.port = 0
        self._runner: web.AppRunner | None = None

    # ---- life ---------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        """For `telegram.Bot(token, base_url=…)`."""
        return f"http://127.0.0.1:{self.port}/bot"

    @property
    def base_file_url(self) -> str:
        """For `telegram.Bot(token, base_file_url=…)`."""
        return f"http://127.0.0.1:{self.port}/file/bot"

    async def start(self, port: int = 0) -> None:
        """Listens on 127.0.0.1: on `port`, on that of the last start, or on a free one.

        All state survives `stop` and `start`: an outage is one after the other.
        """
        app = web.Application(client_max_size=UPLOAD_LIMIT + 2**20)
        app.router.add_route("*", "/bot{token}/{method}", self._handle)
        app.router.add_get("/file/bot{token}/{path:.+}", self._handle_download)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port or self.port).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Ends polls and stalls, cuts every connection and closes the port."""
        self.faults.release_all()
        self.end_poll(500, "Internal Server Error: restart")
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

    # ---- what the bot did ---------------------------------------------------------------------

    def calls_to(self, method: str, chat: Chat | None = None) -> list[Call]:
        """The calls of one method (for one chat), oldest first."""
        wanted = method.lower()
        calls = [call for call in self.calls if call.method.lower() == wanted]
        if chat is None:
            return calls
        return [call for call in calls if str(call.params.get("chat_id")) == str(chat.id)]

    async def wait_for_call(self, method: str, count: int = 1, timeout: float = 20) -> Call:
        """The `count`-th call of a method."""
        await self.wait_for(lambda: len(self.calls_to(method)) >= count, timeout)
        return self.calls_to(method)[count - 1]

    async def wait_for_poll(self, timeout: float = 20) -> None:
        """Returns when a getUpdates waits."""
        await self.wait_for(lambda: self.updates.polled, timeout)

    async def wait_until_confirmed(self, timeout: float = 20) -> None:
        """Returns when the bot has confirmed every update."""
        await self.wait_for(lambda: not self.updates.pending, timeout)

    # ---- scripting ----------------------------------------------------------------------------

    def fail_next(
        self,
        method: str = "*",
        *,
        status: int = 500,
        description: str | None = None,
        parameters: Json | None = None,
        html: bool = False,
        drop: bool = False,
        reset: bool = False,
        stall: bool = False,
        acted: bool = False,
        count: int = 1,
        chat: Chat | None = None,
        text: str | None = None,
    ) -> Fault:
        """Makes the next `count` fitting calls fail; of several scripts the oldest goes first.

        By default a JSON refusal with `status` (and the usual `description` of that status).
        `html`: a web page instead of JSON. `drop`: the connection is closed without an answer;
        `reset`: by a TCP reset. `stall`: no answer until `Fault.release()`, then the normal one.
        `acted`: the call takes effect first (a message is accepted and its answer lost; of a
        download one half arrives). `chat`, `text`: only calls for this chat, with this in their
        text. A getUpdates that waits already is ended by `end_poll`, not by this.
        """
        return self.faults.add(
            Fault(
                method,
                status=502 if html and status == 500 else status,
                description=description,
                parameters=parameters,
                html=html,
                drop=drop,
                reset=reset,
                stall=stall,
                acted=acted,
                left=count,
                chat_id=None if chat is None else chat.id,
                text=text,
            )
        )

    def flood(
        self,
        chat: Chat | int,
        *,
        retry_after: int = 1,
        count: int | None = 1,
        method: str = "*",
    ) -> None:
        """429 for the next `count` calls to this chat; None: until `retry_after` s are over."""
        chat_id = chat if isinstance(chat, int) else chat.id
        self.floods.script(chat_id, retry_after, count, method)

    def push_raw(self, update: Json) -> int:
        """Queues an update exactly as given (`update_id` is added if missing); its id."""
        return self.updates.push_raw(update)

    def redeliver(self, message: Message) -> int:
        """Sends a message again under a new update id."""
        return self.updates.push_raw({"message": message.json()})

    def end_poll(self, status: int = 409, description: str = CONFLICT) -> None:
        """Ends the getUpdates that waits now, by default as a second poller does."""
        self.updates.interrupt(ApiError(status, description))

    # ---- HTTP ---------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check_token(request)
            params = await read(request)
            name = request.match_info["method"]
            return await self._meet(request, name, params)
        except web.HTTPRequestEntityTooLarge:
            return error_response(ApiError(413, "Request Entity Too Large"))
        except ApiError as error:
            return error_response(error)

    def _check_token(self, request: web.Request) -> None:
        """A token that could be one is unauthorized, another path does not exist."""
        token = request.match_info["token"]
        if token != self.token:
            raise ApiError(401, "Unauthorized") if ":" in token else ApiError(404, "Not Found")

    async def _meet(self, request: web.Request, name: str, params: Params) -> web.StreamResponse:
        self.calls.append(Call(name, params.values))
        self.changed()
        method = name.lower()
        fault = self.faults.take(method, params)
        if fault is None:
            return _success(await self._perform(method, params))
        done = await self._perform(method, params) if fault.acted else None
        if fault.stall:
            await fault.released.wait()
            return _success(done or await self._perform(method, params))
        if fault.drop or fault.reset:
            await cut(request, reset=fault.reset)
        return fault.response()

    async def _perform(self, method: str, params: Params) -> str:
        """The JSON of the result. Raises `ApiError`."""
        if self.logged_out:
            raise ApiError(400, "Logged out")
        if method == "getupdates":
            return await self._get_updates(params)
        if method not in METHODS:
            raise ApiError(404, "Not Found: method not found")
        counted = method in MESSAGE_METHODS
        self.floods.check(params.integer("chat_id"), method, counted=counted)
        return json.dumps(METHODS[method](self, params))

    async def _get_updates(self, params: Params) -> str:
        if self.webhook["url"]:
            raise ApiError(
                409,
                "Conflict: can't use getUpdates method while webhook is active; "
                "use deleteWebhook to delete the webhook first",
            )
        self.updates.allow(params.parsed("allowed_updates", "allowed updates"))
        limit = min(max(params.integer("limit", 100), 1), 100)
        timeout = min(max(params.integer("timeout"), 0), 50)
        return await self.updates.poll(params.integer("offset"), limit, timeout)

    async def _handle_download(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        params = Params({"path": path})
        try:
            self._check_token(request)
            file = self.files.at_path(path)
        except ApiError as error:
            return error_response(error)
        self.calls.append(Call("download", params.values))
        self.changed()
        fault = self.faults.take("download", params)
        if fault is not None and fault.stall:
            await fault.released.wait()
        elif fault is not None and (fault.drop or fault.reset):
            if fault.acted:
                response = web.StreamResponse()
                response.content_length = len(file.content)
                await response.prepare(request)
                await response.write(file.content[: len(file.content) // 2])
            await cut(request, reset=fault.reset)
        elif fault is not None:
            return fault.response()
        return web.Response(body=file.content, content_type="application/octet-stream")


def _success(result: str) -> web.Response:
    return web.Response(text=f'{{"ok":true,"result":{result}}}', content_type="application/json")
