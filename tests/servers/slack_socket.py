"""Socket Mode: tickets, connections, envelopes, acknowledgements and redelivery.

From docs.slack.dev/apis/events-api/using-socket-mode. An event that is not acknowledged in time is
sent again with a new envelope id and the same event id, `retry_attempt` 1, 2, 3; one that came
while nobody was connected is sent as a retry when somebody connects. Commands and presses are
never sent again: the person sees an error.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.servers.slack_delivery import Delivery
from tests.servers.slack_render import Json

MAX_CONNECTIONS = 10
"""docs: up to 10 open connections at the same time."""


@dataclass(frozen=True)
class Ack:
    """What came back on a connection: the envelope's id, the payload if any, the connection."""

    envelope_id: str
    payload: Any
    connection: int
    at: float = field(default_factory=time.monotonic)


@dataclass(eq=False)
class Connection:
    """An open websocket. `silent`: nothing is sent, not even a pong, and acks are not heard."""

    number: int
    ws: web.WebSocketResponse
    request: web.Request
    silent: bool = False
    pings: int = 0
    envelopes: list[Json] = field(default_factory=list)
    frames: asyncio.Queue[Json] = field(default_factory=asyncio.Queue)


class SocketMode:
    """All websockets of the app.

    Settable: `ack_timeout_s` (3 at Slack), `max_retries` of an event (3), `retry_delay_s` (Slack
    waits 0, 60 and 300 s; here 0), `ping_interval_s` (None: no pings from the server),
    `refuse_handshakes` (how many of the next handshakes are refused; their tickets are used up).
    """

    def __init__(self, app_id: str, changed: Callable[[], None]) -> None:
        self.app_id = app_id
        self.ack_timeout_s = 3.0
        self.max_retries = 3
        self.retry_delay_s = 0.0
        self.ping_interval_s: float | None = None
        self.refuse_handshakes = 0
        self.refused_handshakes = 0
        self.tickets: dict[str, bool] = {}
        """Each ticket, and whether it has been used."""
        self.connections: list[Connection] = []
        """Those that are open, oldest first."""
        self.acks: list[Ack] = []
        self._deliveries: list[Delivery] = []
        self._by_envelope: dict[str, Delivery] = {}
        self._numbers = itertools.count(1)
        self._turn = itertools.count()
        self._changed = changed

    # ---- sending ------------------------------------------------------------------------------

    def deliver(self, delivery: Delivery) -> None:
        """Sends it to one of the open connections, again and again until it is acknowledged."""
        self._deliveries.append(delivery)
        self._attempt(delivery)

    def repeat(self, delivery: Delivery, *, same_envelope: bool = True, attempt: int = 0) -> None:
        """Sends it once more although it may be acknowledged, as Slack was seen to: with the same
        envelope id and `retry_attempt` 0, on any connection that is open now."""
        envelope_id = delivery.envelope_id if same_envelope else str(uuid.uuid4())
        if not self._send(delivery, envelope_id, attempt):
            raise RuntimeError("nobody is connected")

    def _attempt(self, delivery: Delivery) -> None:
        delivery.timer = None
        if delivery.done:
            return
        if self._send(delivery, str(uuid.uuid4()), delivery.attempts):
            delivery.attempts += 1
            loop = asyncio.get_running_loop()
            delivery.timer = loop.call_later(self.ack_timeout_s, self._not_acknowledged, delivery)
        elif delivery.repeats:
            delivery.attempts = max(delivery.attempts, 1)
        else:
            delivery.give_up("dispatch_failed")
        self._changed()

    def _not_acknowledged(self, delivery: Delivery) -> None:
        delivery.timer = None
        if not delivery.repeats or delivery.attempts > self.max_retries:
            delivery.give_up("operation_timeout")
            self._changed()
        elif self.retry_delay_s:
            loop = asyncio.get_running_loop()
            delivery.timer = loop.call_later(self.retry_delay_s, self._attempt, delivery)
        else:
            self._attempt(delivery)

    def _send(self, delivery: Delivery, envelope_id: str, attempt: int) -> bool:
        open_now = [one for one in self.connections if not one.ws.closed]
        if not open_now:
            return False
        connection = open_now[next(self._turn) % len(open_now)]
        delivery.envelope_id = envelope_id
        delivery.sent += 1
        self._by_envelope[envelope_id] = delivery
        envelope: Json = {
            "envelope_id": envelope_id,
            "payload": delivery.payload,
            "type": delivery.kind,
            "accepts_response_payload": delivery.accepts_response,
        }
        if delivery.repeats:
            envelope |= {"retry_attempt": attempt, "retry_reason": "timeout" if attempt else ""}
        connection.envelopes.append(envelope)
        connection.frames.put_nowait(envelope)
        return True

    # ---- scripting ----------------------------------------------------------------------------

    def disconnect(self, reason: str = "refresh_requested", *, close: bool = True) -> None:
        """Sends `{"type": "disconnect"}` to each connection; Slack closes it soon after, except
        after a `warning` (about 10 s before the end)."""
        frame = {"type": "disconnect", "reason": reason, "debug_info": {"host": "wss-local"}}
        for connection in list(self.connections):
            connection.frames.put_nowait(frame)
            if close and reason != "warning":
                connection.frames.put_nowait({"type": "_close"})

    def cut(self) -> None:
        """Drops each connection without a close frame."""
        for connection in list(self.connections):
            if connection.request.transport is not None:
                connection.request.transport.abort()

    def silence(self, on: bool = True) -> None:
        """Connections stay open, but nothing comes from them any more, not even pongs."""
        for connection in self.connections:
            connection.silent = on

    # ---- receiving ----------------------------------------------------------------------------

    def open_ticket(self, origin: str) -> str:
        """A websocket URL that can be used once."""
        ticket = str(uuid.uuid4())
        self.tickets[ticket] = False
        return f"{origin.replace('http', 'ws', 1)}/link/?ticket={ticket}&app_id={self.app_id}"

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The handshake and the life of a connection."""
        ticket = request.query.get("ticket", "")
        if self.tickets.get(ticket, True) or self.refuse_handshakes > 0:
            self.refuse_handshakes = max(self.refuse_handshakes - 1, 0)
            self.refused_handshakes += 1
            self.tickets[ticket] = True
            self._changed()
            return web.Response(status=403, text="ticket not accepted")
        self.tickets[ticket] = True
        ws = web.WebSocketResponse(autoping=False, timeout=1.0)
        await ws.prepare(request)
        connection = Connection(next(self._numbers), ws, request)
        await ws.send_str(json.dumps(self._hello()))
        if len(self.connections) >= MAX_CONNECTIONS:
            await ws.send_str(json.dumps({"type": "disconnect", "reason": "too_many_websockets"}))
            await ws.close()
            return ws
        await self._live(connection)
        return ws

    async def _live(self, connection: Connection) -> None:
        self.connections.append(connection)
        writer = asyncio.create_task(self._write(connection))
        self._catch_up()
        self._changed()
        try:
            await self._read(connection)
        finally:
            self.connections.remove(connection)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            self._changed()

    def _hello(self) -> Json:
        return {
            "type": "hello",
            "num_connections": len(self.connections) + 1,
            "debug_info": {
                "host": "applink-local",
                "build_number": 1,
                "approximate_connection_time": 18060,
            },
            "connection_info": {"app_id": self.app_id},
        }

    def _catch_up(self) -> None:
        """What came while nobody was connected."""
        for delivery in self._deliveries:
            if not delivery.done and delivery.timer is None:
                self._attempt(delivery)

    async def _write(self, connection: Connection) -> None:
        while True:
            try:
                async with asyncio.timeout(self.ping_interval_s):
                    frame = await connection.frames.get()
            except TimeoutError:
                if not connection.silent:
                    await connection.ws.ping(b"Ping from applink-local")
                continue
            if connection.silent:
                continue
            if frame["type"] == "_close":
                await connection.ws.close()
                return
            await connection.ws.send_str(json.dumps(frame))

    async def _read(self, connection: Connection) -> None:
        async for message in connection.ws:
            if connection.silent:
                continue
            if message.type == WSMsgType.PING:
                connection.pings += 1
                self._changed()
                await connection.ws.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                self._acknowledge(connection, json.loads(message.data))

    def _acknowledge(self, connection: Connection, answer: Json) -> None:
        envelope_id = answer.get("envelope_id", "")
        self.acks.append(Ack(envelope_id, answer.get("payload"), connection.number))
        delivery = self._by_envelope.get(envelope_id)
        if delivery is not None:
            delivery.acknowledge(answer.get("payload"))
        self._changed()

    async def stop(self) -> None:
        """Ends timers and connections."""
        for delivery in self._deliveries:
            delivery.stop_timer()
        self.cut()
