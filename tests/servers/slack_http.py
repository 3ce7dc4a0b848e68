"""Signed HTTP requests to the app's request URL, when it does not use Socket Mode.

From docs.slack.dev/apis/events-api/using-http-request-urls and
docs.slack.dev/authentication/verifying-requests-from-slack.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import aiohttp

from tests.servers.slack_delivery import Delivery


def sign(secret: str, body: bytes, timestamp: int | None = None) -> dict[str, str]:
    """The headers that prove that Slack sent `body` at `timestamp` (seconds; now by default)."""
    stamp = str(int(time.time()) if timestamp is None else timestamp)
    base = b"v0:" + stamp.encode() + b":" + body
    digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


class HttpEvents:
    """Posts deliveries. `responses` holds (status, body) of each request that was answered.

    An event that is not answered 2xx in `ack_timeout_s` is posted up to `max_retries` times more
    with `X-Slack-Retry-Num` and `X-Slack-Retry-Reason`, unless the answer says
    `X-Slack-No-Retry: 1`. Slack waits 0, 60 and 300 s before them; here it is `retry_delay_s`.
    """

    def __init__(self, secret: str, changed: Callable[[], None]) -> None:
        self.secret = secret
        self.url: str | None = None
        self.ack_timeout_s = 3.0
        self.max_retries = 3
        self.retry_delay_s = 0.0
        self.responses: list[tuple[int, str]] = []
        self._changed = changed
        self._tasks: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    def deliver(self, delivery: Delivery) -> None:
        """Posts it, again and again until it is answered."""
        self._spawn(self._deliver(delivery))

    def repeat(self, delivery: Delivery, *, attempt: int = 0) -> None:
        """Posts it once more although it may be answered."""
        self._spawn(self._once_more(delivery, attempt))

    async def verify(self, challenge: str = "challenge-1") -> bool:
        """The `url_verification` handshake: whether the app gives the challenge back."""
        body = json.dumps(
            {"token": "verification-token", "challenge": challenge, "type": "url_verification"}
        ).encode()
        status, text, _ = await self.post(body, "application/json", {})
        return status == 200 and challenge in text

    async def post(
        self, body: bytes, content_type: str, headers: dict[str, str]
    ) -> tuple[int, str, bool]:
        """One signed request: status, body, and whether the app wants no retries."""
        assert self.url is not None
        if self._session is None:
            self._session = aiohttp.ClientSession()
        own = sign(self.secret, body) | {"Content-Type": content_type} | headers
        timeout = aiohttp.ClientTimeout(total=self.ack_timeout_s)
        async with self._session.post(self.url, data=body, headers=own, timeout=timeout) as answer:
            text = await answer.text()
            self.responses.append((answer.status, text))
            return answer.status, text, answer.headers.get("X-Slack-No-Retry") == "1"

    async def stop(self) -> None:
        """Ends what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _once_more(self, delivery: Delivery, attempt: int) -> None:
        await self._try(delivery, attempt, "http_timeout")
        self._changed()

    async def _deliver(self, delivery: Delivery) -> None:
        reason = ""
        while delivery.attempts <= (self.max_retries if delivery.repeats else 0):
            if delivery.attempts > 1:
                await asyncio.sleep(self.retry_delay_s)
            attempt, delivery.attempts = delivery.attempts, delivery.attempts + 1
            reason, retry = await self._try(delivery, attempt, reason)
            self._changed()
            if delivery.acknowledged:
                return
            if not retry:
                break
        delivery.give_up("operation_timeout" if reason == "http_timeout" else "dispatch_failed")
        self._changed()

    async def _try(self, delivery: Delivery, attempt: int, reason: str) -> tuple[str, bool]:
        """Posts once; why it failed, and whether another try is wanted."""
        body, content_type = _body(delivery)
        headers = {}
        if attempt:
            headers = {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": reason}
        delivery.sent += 1
        try:
            status, text, no_retry = await self.post(body, content_type, headers)
        except TimeoutError:
            return "http_timeout", True
        except aiohttp.ClientError:
            return "connection_failed", True
        if 200 <= status < 300:
            delivery.acknowledge(_parsed(text))
            return "", False
        return "http_error", not no_retry


def _body(delivery: Delivery) -> tuple[bytes, str]:
    form = "application/x-www-form-urlencoded"
    if delivery.kind == "slash_commands":
        return urlencode(delivery.payload).encode(), form
    if delivery.kind == "interactive":
        return urlencode({"payload": json.dumps(delivery.payload)}).encode(), form
    return json.dumps(delivery.payload).encode(), "application/json"


def _parsed(text: str) -> Any:
    """What an acknowledgement carries, in the shape of Socket Mode: None, or an object."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return {"text": text}
