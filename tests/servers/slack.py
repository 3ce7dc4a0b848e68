"""A Slack workspace on loopback, scripted by a test: Web API, Socket Mode, signed HTTP events.

    async with SlackServer() as server:
        client = AsyncWebClient(server.bot_token, base_url=server.base_url)
        ana = server.user("Ana", locale="en-US")
        dm = server.dm(ana)
        dm.send("hi")                                # the app hears it over Socket Mode
        message = await dm.wait_for_text("hello")    # what the person sees
        server.fail_next("chat.update", error="msg_too_long")

Written from docs.slack.dev. It refuses what Slack refuses, with its error codes.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from aiohttp import web

from tests.servers import slack_blocks
from tests.servers.slack_chat import Conversation
from tests.servers.slack_faults import HTML_ERROR, Fault, Faults
from tests.servers.slack_methods import MESSAGE_METHODS, Method
from tests.servers.slack_socket import Ack, Delivery
from tests.servers.slack_state import Button, File, Json, Message, SlackError, User
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
]

METHODS: dict[str, tuple[Method, tuple[str, ...]]] = {**MESSAGE_METHODS}


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
        super().__init__(team_id=team_id, team_name=team_name, bot_name=bot_name)
        self.bot_token = bot_token
        self.app_token = app_token
        self.signing_secret = signing_secret
        self.calls: list[Call] = []
        self.faults = Faults()
        self.block_violations: list[str] = []
        """What slack_sdk's own validation says against blocks that came in."""
        self.origin = ""
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

    async def wait_for_call(self, method: str, count: int = 1, timeout: float = 5.0) -> Call:
        """The `count`-th call of a method."""
        await self.wait_for(lambda: len(self.calls_to(method)) >= count, timeout)
        return self.calls_to(method)[count - 1]

    async def wait_for_connection(self, count: int = 1, timeout: float = 5.0) -> None:
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

    def note_blocks(self, blocks: list[Json]) -> None:
        """Records what slack_sdk says against blocks."""
        self.block_violations += slack_blocks.violations_of_sdk(blocks)

    # ---- HTTP ---------------------------------------------------------------------------------

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        params = await read_params(request)
        token = params.pop("token", None) or _bearer(request)
        self.calls.append(Call(method, params))
        self.changed()
        try:
            fault = self.faults.take(method, params)
            if fault is not None:
                return await self._fail(request, method, params, token, fault)
            return self._respond(method, self._perform(method, params, token))
        except SlackError as error:
            return self._respond(method, error.body, error.status, error.headers)

    def _perform(self, method: str, params: Json, token: str | None) -> Json:
        if method not in METHODS and method not in ("auth.test", "apps.connections.open"):
            raise SlackError("unknown_method", req_method=method)
        self._check_token(method, token)
        if method == "auth.test":
            return self._auth_test()
        if method == "apps.connections.open":
            return {"ok": True, "url": self.socket.open_ticket(self.origin)}
        act, scopes = METHODS[method]
        if scopes and not set(scopes) & set(self.scopes):
            raise SlackError("missing_scope", needed=scopes[0], provided=",".join(self.scopes))
        result = {"ok": True, **act(self, params)}
        self.changed()
        return result

    def _check_token(self, method: str, token: str | None) -> None:
        if not token:
            raise SlackError("not_authed")
        if token not in (self.bot_token, self.app_token):
            raise SlackError("invalid_auth")
        wanted = self.app_token if method == "apps.connections.open" else self.bot_token
        if token != wanted and method != "auth.test":
            raise SlackError("not_allowed_token_type")

    def _auth_test(self) -> Json:
        return {
            "ok": True,
            "url": f"https://{self.domain}.slack.com/",
            "team": self.team_name,
            "user": self.bot.handle,
            "team_id": self.team_id,
            "user_id": self.bot.id,
            "bot_id": self.bot.bot_id,
            "is_enterprise_install": False,
        }

    def _respond(
        self, method: str, body: Json, status: int = 200, headers: dict[str, str] | None = None
    ) -> web.Response:
        own = {"x-oauth-scopes": ",".join(self.scopes), "x-slack-req-id": "test"}
        if method in METHODS:
            own["x-accepted-oauth-scopes"] = ",".join(METHODS[method][1])
        return web.json_response(body, status=status, headers=own | (headers or {}))

    async def _fail(
        self, request: web.Request, method: str, params: Json, token: str | None, fault: Fault
    ) -> web.StreamResponse:
        done = self._perform(method, params, token) if fault.acted else None
        if fault.stall:
            await fault.released.wait()
            return self._respond(method, done or self._perform(method, params, token))
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
        return self._respond(method, body, fault.status, headers)


async def read_params(request: web.Request) -> Json:
    """Parameters from the query, a form or JSON."""
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
