"""The Socket Mode watchdog: what it tells of the connection, what it waits for, what it gives up."""

from __future__ import annotations

import asyncio

import pytest

from channels.errors import ChannelUnavailable
from channels.slack.channel import SlackChannel
from channels.slack.connection import ConnectionTiming
from channels.supervise import supervise
from tests.channels.slack.conftest import WATCHFUL, Inbox, make_channel
from tests.servers.slack import SlackServer

# It gives up late, so that what comes back before is seen.
PATIENT = ConnectionTiming(connect_s=5, lost_after_s=60, look_s=0.01, ping_s=0.05)


async def test_it_receives_while_the_websocket_is_connected_and_not_otherwise(
    server: SlackServer, inbox: Inbox
) -> None:
    channel = make_channel(server, connecting=PATIENT)
    assert not channel.receiving
    task = asyncio.create_task(channel.listen(inbox.receive))
    await until(channel, True)
    server.socket.refuse_handshakes = 10_000
    server.socket.cut()
    await until(channel, False)
    assert not task.done()
    server.socket.refuse_handshakes = 0
    await ended(channel, task)
    assert not channel.receiving


async def test_a_connection_that_the_sdk_mends_in_time_is_left_alone(
    server: SlackServer, inbox: Inbox
) -> None:
    channel = make_channel(server, connecting=PATIENT)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await until(channel, True)
    first = server.socket.connections[0]
    server.socket.cut()
    await server.wait_for(lambda: [one for one in server.socket.connections if one is not first])
    server.dm(server.user("Ana")).send("hi")
    await inbox.wait_for(1)
    await until(channel, True)
    assert not task.done()
    await ended(channel, task)


async def test_a_lost_connection_is_closed_and_the_supervisor_builds_another(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    channel = make_channel(server, connecting=WATCHFUL)
    reasons: list[str] = []

    def failing(reason: str) -> None:
        reasons.append(reason)
        server.socket.refuse_handshakes = 0

    task = asyncio.create_task(supervise(channel, inbox.receive, failing=failing))
    await until(channel, True)
    server.socket.refuse_handshakes = 10_000
    server.socket.cut()
    sent = server.dm(server.user("Ana")).send("still there?")
    assert [message.text for message in await inbox.wait_for(1)] == ["still there?"]
    await server.wait_for(lambda: sent.events[0].acknowledged)
    assert reasons[0].startswith("no connection to Slack for")
    await ended(channel, task)


async def test_a_handshake_that_is_never_answered_is_given_up(
    server: SlackServer, inbox: Inbox
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client leaves
        writer.close()

    mute = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = mute.sockets[0].getsockname()[1]
    server.socket.open_ticket = lambda origin: f"ws://127.0.0.1:{port}/link"  # type: ignore[method-assign]
    channel = make_channel(server, connecting=WATCHFUL)
    with pytest.raises(ChannelUnavailable, match="websocket cannot be opened"):
        await channel.listen(inbox.receive)
    assert not channel.receiving
    await channel.aclose()
    mute.close()


async def test_a_server_that_is_gone_is_told_and_found_again(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    monkeypatch.setattr("channels.supervise.LONGEST_WAIT_S", 0.01)
    port = int(server.base_url.split(":")[2].split("/")[0])
    await server.stop()
    channel = make_channel(server, connecting=WATCHFUL)
    reasons: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(supervise(channel, inbox.receive, failing=reasons.put_nowait))
    assert "Slack cannot be reached" in await reasons.get()
    await server.start(port)
    await until(channel, True)
    await ended(channel, task)


async def until(channel: SlackChannel, receiving: bool) -> None:
    async with asyncio.timeout(10):
        while channel.receiving is not receiving:  # noqa: ASYNC110 - a property of the channel
            await asyncio.sleep(0.01)


async def ended(channel: SlackChannel, task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await channel.aclose()
