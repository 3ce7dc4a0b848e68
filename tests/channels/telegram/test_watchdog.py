"""The polling watchdog, and the honest word about whether messages come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import SecretStr

from channels.errors import ChannelFailed, ChannelUnavailable
from channels.supervise import supervise
from channels.telegram.channel import TelegramChannel
from channels.telegram.settings import TelegramSettings
from tests.channels.telegram.conftest import Inbox, make_channel
from tests.servers.telegram import TelegramServer


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of a second instead of 90."""
    monkeypatch.setattr("channels.telegram.poll.RETURN_S", 0.9)


async def test_the_first_request_returns_at_once_so_that_health_is_known(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    assert not channel.receiving
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_poll()
    assert [call.param("timeout") for call in server.calls_to("getUpdates")] == ["0", "30"]
    assert channel.receiving
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not channel.receiving


@pytest.mark.usefixtures("soon")
async def test_a_server_that_never_answers_is_given_up(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    stalled = server.fail_next("getUpdates", stall=True)
    with pytest.raises(ChannelUnavailable, match="has not answered getUpdates"):
        await channel.listen(inbox.receive)
    assert not channel.receiving
    stalled.release()


@pytest.mark.usefixtures("soon")
async def test_health_ends_while_a_request_hangs_and_the_connection_is_rebuilt(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    task = asyncio.create_task(supervise(channel, inbox.receive))
    await server.wait_for_poll()
    stalled = server.fail_next("getUpdates", stall=True)
    before = len(server.calls_to("getUpdates"))
    server.private(server.user("Ana")).send("before")  # its confirmation is the one that hangs
    await inbox.wait_for(1)
    await server.wait_for(lambda: len(server.calls_to("getUpdates")) > before + 1)
    server.private(server.user("Bo")).send("after")
    assert [message.text for message in await inbox.wait_for(2)] == ["before", "after"]
    assert channel.receiving
    stalled.release()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def dribbling() -> AsyncGenerator[str]:
    """A proxy that sends one space after the other in answer to getUpdates, and so no read ever times
    out; its address."""

    async def dribble(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    async def answer(request: web.Request) -> web.Response:
        me = {"id": 1, "is_bot": True, "first_name": "G", "username": "g_bot"}
        return web.json_response({"ok": True, "result": me if "getMe" in request.path else True})

    app = web.Application()
    app.router.add_route("*", "/{token}/getUpdates", dribble)
    app.router.add_route("*", "/{token}/{method}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.usefixtures("soon")
async def test_a_proxy_that_only_keeps_the_line_busy_is_given_up(inbox: Inbox) -> None:
    async with dribbling() as url:
        channel = TelegramChannel(
            TelegramSettings(token=SecretStr("1:a"), base_url=url), menu=[("ask", "Ask")]
        )
        try:
            with pytest.raises(ChannelUnavailable, match="has not answered getUpdates"):
                await channel.listen(inbox.receive)
        finally:
            await channel.aclose()


async def test_another_poller_means_that_nothing_is_received(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_poll()
    server.end_poll()
    with pytest.raises(ChannelUnavailable, match="another process receives"):
        await task
    assert not channel.receiving


@pytest.mark.parametrize(
    "fault",
    [{"status": 500}, {"drop": True}, {"html": True, "status": 404}, {"status": 429}],
)
async def test_trouble_at_the_start_is_tried_again(
    server: TelegramServer, inbox: Inbox, fault: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    channel = make_channel(server)
    server.fail_next("getMe", **fault)  # type: ignore[arg-type]
    reasons: list[str] = []
    task = asyncio.create_task(supervise(channel, inbox.receive, failing=reasons.append))
    await server.wait_for_poll()
    assert len(reasons) == 1
    assert channel.receiving
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await channel.aclose()


async def test_a_token_that_has_worked_is_given_up_only_when_it_stays_refused(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.trust.REFUSED_AGAIN_S", (0.01, 0.02))
    reasons: list[str] = []
    refused = server.fail_next("getUpdates", status=401)
    task = asyncio.create_task(supervise(channel, inbox.receive, failing=reasons.append))
    await server.wait_for_poll()
    server.private(server.user("Ana")).send("still here?")
    await inbox.wait_for(1)
    assert refused.used == 1
    assert "it has worked before" in reasons.pop()
    server.fail_next("*", status=401, count=100)
    server.private(server.user("Bo")).send("and now?")
    with pytest.raises(ChannelFailed, match="does not know this token"):
        await task
    assert len(reasons) == 2


async def test_a_token_that_was_never_good_is_given_up_at_once(
    server: TelegramServer, channel: TelegramChannel, inbox: Inbox
) -> None:
    server.fail_next("getMe", status=401)
    with pytest.raises(ChannelFailed, match="does not know this token"):
        await supervise(channel, inbox.receive)


async def test_a_server_that_is_not_there_at_the_start_is_tried_again(
    inbox: Inbox, server: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    port = int(server.base_url.split(":")[2].split("/")[0])
    await server.stop()
    channel = make_channel(server)
    reasons: list[str] = []
    failed = asyncio.Event()

    def failing(reason: str) -> None:
        reasons.append(reason)
        failed.set()

    task = asyncio.create_task(supervise(channel, inbox.receive, failing=failing))
    await failed.wait()
    await server.start(port)
    await server.wait_for_poll()
    assert "Telegram cannot be reached" in reasons[0]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await channel.aclose()
