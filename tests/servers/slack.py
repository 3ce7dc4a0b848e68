"""A Slack workspace on loopback, scripted by a test: Web API, Socket Mode, signed HTTP events.

    async with SlackServer() as server:
        client = AsyncWebClient(server.bot_token, base_url=server.base_url)
        ana = server.user("Ana", locale="en-US")
        dm = server.dm(ana)
        dm.send("hi")                                # the app hears it over Socket Mode
        message = await dm.wait_for_text("hello")    # what the person sees
        server.fail_next("chat.update", error="msg_too_long")

Written from docs.slack.dev. It refuses what Slack refuses, with its error codes. People, places,
files and settings: `World`. What people do and see: `Conversation`. Acknowledgements:
`server.deliveries`. Connections, redelivery, silence, cuts, refused handshakes: `server.socket`.
With `server.http.url` set, events are posted there, signed, and not sent over Socket Mode.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.servers import slack_files, slack_interact
from tests.servers.slack_chat import Conversation
from tests.servers.slack_delivery import Delivery
from tests.servers.slack_faults import HTML_ERROR, Fault, Faults
from tests.servers.slack_http import sign
from tests.servers.slack_render import Button, Json
from tests.servers.slack_socket import Ack
from tests.servers.slack_state import File, Message, SlackError, User
from tests.servers.slack_table import METHODS
from tests.servers.slack_views import View
from tests.servers.slack_world import World

__all__ = [
    "Ack",
    "Button",
    "Call",
    "Conversation",
    "Delivery",
    "File",
    "Message",
    "SlackError",
    "SlackServer",
    "User",
    "View",
]


@dataclass(frozen=True)
class Call:
    """A request of the app: method, parameters, `time.monotonic()` of its arrival."""

    method: str
    params: Json
    at: float = field(default_factory=time.monotonic)


class SlackServer(World):
    """The workspace behind HTTP. `base_url` is what slack_sdk's AsyncWebClient takes."""

    def __init__(
        self,
        *,
        bot_token: str = "xoxb-test-bot",
        app_token: str = "xapp-test-app",
        signing_secret: str = "test-signing-secret",
        team_id: str = "T0TEST0001",
        team_name: str = "Testers",
        bot_name: str = "Galata",
    ) -> None:
        super().__init__(
            team_id=team_id, team_name=team_name, bot_name=bot_name, secret=signing_secret
        )
        self.bot_token = bot_token
        self.app_token = app_token
        self.signing_secret = signing_secret
        self.calls: list[Call] = []
        self.faults = Faults()
        self._runner: web.AppRunner | None = None

    # ---- life ---------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        """For `AsyncWebClient(base_url=…)`."""
        return f"{self.origin}/api/"

    async def start(self, port: int = 0) -> None:
        """Listens on a port of 127.0.0.1, a free one by default."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/api/{method}", self._handle)
        app.router.add_get("/link/", self.socket.serve)
        app.router.add_get("/files-pri/{id}/{name}", self._download)
        app.router.add_get("/files-pri/{id}/download/{name}", self._download)
        app.router.add_post("/upload/v1/{file_id}", self._upload)
        app.router.add_post("/hooks/{token}", self._respond_to)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Ends stalls and connections and closes the port."""
        self.faults.release_all()
        await self.socket.stop()
        await self.http.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> SlackServer:
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
        return [call for call in self.calls if call.method == method]

    async def wait_for_call(self, method: str, count: int = 1, timeout: float = 20) -> Call:
        """The `count`-th call of a method."""
        await self.wait_for(lambda: len(self.calls_to(method)) >= count, timeout)
        return self.calls_to(method)[count - 1]

    async def wait_for_connection(self, count: int = 1, timeout: float = 20) -> None:
        """Until at least `count` websockets are open."""
        await self.wait_for(lambda: len(self.socket.connections) >= count, timeout)

    def fail_next(
        self,
        method: str = "*",
        *,
        error: str | None = None,
        status: int | None = None,
        html: bool = False,
        drop: bool = False,
        stall: bool = False,
        acted: bool = False,
        count: int = 1,
        text: str | None = None,
    ) -> Fault:
        """Makes the next `count` fitting calls fail.

        `error`: `{"ok": false, "error": …}`; `html`: an HTML page with `status` (500); `drop`: the
        connection is cut without an answer; `stall`: no answer until `Fault.release()`, after
        which the call is answered normally. `acted`: the call takes effect first (a message
        accepted whose answer is lost). `text`: only calls whose parameters contain it.
        """
        code = error or ("fatal_error" if not (html or drop or stall) else None)
        return self.faults.add(
            Fault(
                method,
                error=code,
                status=status or (500 if html else 200),
                html=html,
                drop=drop,
                stall=stall,
                acted=acted,
                left=count,
                text=text,
            )
        )

    def rate_limit(
        self, method: str, retry_after: float = 1, count: int = 1, *, status: int = 429
    ) -> Fault:
        """Refuses the next `count` calls with `ratelimited` and Retry-After (seconds): HTTP 429,
        or with `status=200` only in the body."""
        return self.faults.add(
            Fault(method, error="ratelimited", status=status, retry_after=retry_after, left=count)
        )

    def sign(self, body: bytes, timestamp: int | None = None) -> dict[str, str]:
        """The headers that Slack would send with `body`, for a request that a test makes itself."""
        return sign(self.signing_secret, body, timestamp)

    # ---- HTTP ---------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        try:
            params = await read_params(request)
            token = params.pop("token", None) or _bearer(request)
            self.calls.append(Call(method, params))
            self.changed()
            fault = self.faults.take(method, params)
            if fault is not None:
                return await self._fail(request, method, params, token, fault)
            return self._answer(method, self._perform(method, params, token))
        except SlackError as error:
            return self._answer(method, error.body, error.status, error.headers)

    def _perform(self, method: str, params: Json, token: str | None) -> Json:
        if method not in METHODS:
            raise SlackError("unknown_method", req_method=method)
        act, scopes = METHODS[method]
        self._check_token(method, token, scopes)
        result = {"ok": True, **act(self, params)}
        self.changed()
        return result

    def _check_token(self, method: str, token: str | None, scopes: tuple[str, ...]) -> None:
        if not token:
            raise SlackError("not_authed")
        if token not in (self.bot_token, self.app_token):
            raise SlackError("invalid_auth")
        for_app = method == "apps.connections.open"
        if token != (self.app_token if for_app else self.bot_token) and method != "auth.test":
            raise SlackError("not_allowed_token_type")
        if not for_app:
            self.need_scope(*scopes)
        elif not set(scopes) & set(self.app_scopes):
            provided = ",".join(self.app_scopes)
            raise SlackError("missing_scope", needed=scopes[0], provided=provided)

    def _answer(
        self, method: str, body: Json, status: int = 200, headers: dict[str, str] | None = None
    ) -> web.Response:
        own = {"x-oauth-scopes": ",".join(self.scopes)}
        if method in METHODS:
            own["x-accepted-oauth-scopes"] = ",".join(METHODS[method][1])
        return web.json_response(body, status=status, headers=own | (headers or {}))

    async def _fail(
        self, request: web.Request, method: str, params: Json, token: str | None, fault: Fault
    ) -> web.StreamResponse:
        done = self._perform(method, params, token) if fault.acted else None
        if fault.stall:
            await fault.released.wait()
            return self._answer(method, done or self._perform(method, params, token))
        if fault.drop:
            if request.transport is not None:
                request.transport.abort()
            await asyncio.Event().wait()  # ended by the lost connection
        if fault.html:
            return web.Response(text=HTML_ERROR, status=fault.status, content_type="text/html")
        headers = {}
        if fault.retry_after is not None:
            headers["Retry-After"] = str(fault.retry_after)
        body = {"ok": False, "error": fault.error}
        return self._answer(method, body, fault.status, headers)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        file_id = request.match_info["id"].partition("-")[2]
        self.calls.append(Call("files.download", {"file": file_id}))
        self.changed()
        fault = self.faults.take("files.download", {"file": file_id})
        if fault is not None:
            return await self._fail(request, "files.download", {}, None, fault)
        authorized = _bearer(request) == self.bot_token
        file = slack_files.download(self, file_id, authorized)
        if file is None:
            return web.Response(text=slack_files.LOGIN_PAGE, content_type="text/html")
        return web.Response(body=file.content, headers={"Content-Type": file.mimetype})

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        if request.content_type.startswith("multipart/"):
            parts = (await request.post()).values()
            fields = [part.file.read() for part in parts if isinstance(part, web.FileField)]
            content = fields[0] if fields else b""
        else:
            content = await request.read()
        try:
            text = slack_files.take_upload(self, request.match_info["file_id"], content)
        except SlackError as error:
            return web.Response(text=str(error), status=error.status)
        return web.Response(text=text)

    async def _respond_to(self, request: web.Request) -> web.StreamResponse:
        params = await read_params(request)
        self.calls.append(Call("response_url", params))
        try:
            slack_interact.respond(self, request.match_info["token"], params)
        except SlackError as error:
            status = error.status if error.status != 200 else 400
            return web.json_response(error.body, status=status)
        finally:
            self.changed()
        return web.Response(text="ok")


async def read_params(request: web.Request) -> Json:
    """Parameters from the query, a form or JSON. Raises `SlackError`."""
    params: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        text = await request.text()
        try:
            params |= json.loads(text) if text else {}
        except (ValueError, TypeError):
            raise SlackError("invalid_json") from None
    else:
        params |= dict(await request.post())
    return params


def _bearer(request: web.Request) -> str | None:
    header = request.headers.get("Authorization", "")
    return header.removeprefix("Bearer ").strip() or None
