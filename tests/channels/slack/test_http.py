"""Signed HTTP requests instead of Socket Mode: the same intake."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from pydantic import SecretStr

from channels.base import OutboundReply
from channels.errors import ChannelFailed, NotStored
from channels.slack.channel import SlackChannel
from channels.slack.settings import SlackSettings
from tests.channels.slack.conftest import Inbox
from tests.servers.slack import SlackServer


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def settings(server: SlackServer, port: int) -> SlackSettings:
    return SlackSettings(
        bot_token=SecretStr(server.bot_token),
        signing_secret=SecretStr(server.signing_secret),
        http_port=port,
        base_url=server.base_url,
    )


@pytest.fixture
async def over_http(server: SlackServer, inbox: Inbox) -> AsyncIterator[SlackChannel]:
    """The channel, reachable for Slack."""
    port = free_port()
    channel = SlackChannel(settings(server, port))
    task = asyncio.create_task(channel.listen(inbox.receive))
    server.http.url = f"http://127.0.0.1:{port}/slack/events"
    await reachable(port)
    yield channel
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await channel.aclose()


async def reachable(port: int) -> None:
    async with asyncio.timeout(5):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.005)
            else:
                writer.close()
                await writer.wait_closed()
                return


async def test_messages_commands_and_presses_come_in_over_http(
    server: SlackServer, over_http: SlackChannel, inbox: Inbox
) -> None:
    assert await server.http.verify()
    ana = server.user("Ana")
    dm = server.dm(ana)
    sent = dm.send("hi")
    (message,) = await inbox.wait_for(1)
    await server.wait_for(lambda: sent.events[0].acknowledged)
    await over_http.open_reply(message.address, reply_to=None).finish(OutboundReply("hello"))
    await dm.wait_for_text("hello")
    general = server.channel("general", members=[ana])
    command = general.slash("/galata", "status now")
    messages = await inbox.wait_for(2)
    assert command is not None
    await server.wait_for(lambda: command.acknowledged)
    assert messages[1].command is not None
    assert messages[1].command.args == "now"


async def test_what_was_not_stored_comes_again(
    server: SlackServer, over_http: SlackChannel, inbox: Inbox
) -> None:
    inbox.faults = [NotStored("the disk is full")]
    sent = server.dm(server.user("Ana")).send("hi")
    await server.wait_for(lambda: sent.events[0].acknowledged)
    assert [status for status, _ in server.http.responses] == [503, 200]
    assert [m.text for m in inbox.messages] == ["hi"]


@pytest.mark.parametrize("case", ["unsigned", "wrong secret", "old", "not json"])
async def test_a_request_that_slack_did_not_sign_is_refused(
    server: SlackServer, over_http: SlackChannel, inbox: Inbox, case: str
) -> None:
    body = b'{"type": "event_callback", "event": {"type": "message", "user": "U1", "text": "x"}}'
    headers = {"Content-Type": "application/json"}
    if case == "wrong secret":
        server.signing_secret = "another"
    if case != "unsigned":
        headers |= server.sign(body, 1_700_000_000 if case == "old" else None)
    if case == "not json":
        body = b"\xff\xfe"
    assert server.http.url is not None
    async with (
        aiohttp.ClientSession() as session,
        session.post(server.http.url, data=body, headers=headers) as answer,
    ):
        assert answer.status >= 400
    assert inbox.messages == []


async def test_a_port_in_use_is_named(server: SlackServer, inbox: Inbox) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        channel = SlackChannel(settings(server, taken.getsockname()[1]))
        with pytest.raises(ChannelFailed, match=r"channels\.slack\.http_port: \d+: .*in use"):
            await channel.listen(inbox.receive)
        await channel.aclose()
