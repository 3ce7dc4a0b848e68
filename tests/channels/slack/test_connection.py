"""Connecting, staying connected, and saying why not."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
from pydantic import SecretStr

from channels.errors import ChannelFailed, ChannelUnavailable, NotStored
from channels.slack.channel import SlackChannel
from channels.slack.settings import SlackSettings
from channels.supervise import supervise
from tests.channels.slack.conftest import WATCHFUL, Inbox, make_channel
from tests.servers.slack import SlackServer


async def listen_and_fail(channel: SlackChannel, inbox: Inbox) -> BaseException:
    try:
        async with asyncio.timeout(10):
            with pytest.raises((ChannelFailed, ChannelUnavailable)) as raised:
                await channel.listen(inbox.receive)
    finally:
        await channel.aclose()
    return raised.value


async def test_a_wrong_bot_token_ends_it_naming_the_key(server: SlackServer, inbox: Inbox) -> None:
    channel = make_channel(server, bot_token="xoxb-wrong-1")
    error = await listen_and_fail(channel, inbox)
    assert isinstance(error, ChannelFailed)
    assert str(error) == "channels.slack.bot_token: Slack refuses it (invalid_auth)"


async def test_a_wrong_app_token_ends_it_naming_the_key(server: SlackServer, inbox: Inbox) -> None:
    channel = make_channel(server, app_token="xapp-wrong-1")
    error = await listen_and_fail(channel, inbox)
    assert isinstance(error, ChannelFailed)
    assert str(error) == "channels.slack.app_token: Slack refuses it (invalid_auth)"


async def test_a_missing_scope_of_the_app_token_is_named(server: SlackServer, inbox: Inbox) -> None:
    server.app_scopes.clear()
    error = await listen_and_fail(make_channel(server), inbox)
    assert isinstance(error, ChannelFailed)
    assert "connections:write" in str(error)


@pytest.mark.parametrize("code", ["account_inactive", "token_revoked", "token_expired"])
async def test_a_token_that_is_no_longer_good_ends_it(
    server: SlackServer, inbox: Inbox, code: str
) -> None:
    server.fail_next("auth.test", error=code)
    assert isinstance(await listen_and_fail(make_channel(server), inbox), ChannelFailed)


@pytest.mark.parametrize(
    "fault",
    [{"drop": True}, {"html": True}, {"error": "fatal_error"}, {"error": "ratelimited"}],
)
@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
async def test_trouble_at_slack_is_tried_again(
    server: SlackServer, inbox: Inbox, method: str, fault: dict[str, Any]
) -> None:
    server.fail_next(method, **fault)
    assert isinstance(await listen_and_fail(make_channel(server), inbox), ChannelUnavailable)


async def test_the_wait_that_slack_asks_for_is_handed_on(server: SlackServer, inbox: Inbox) -> None:
    server.rate_limit("apps.connections.open", 17)
    error = await listen_and_fail(make_channel(server), inbox)
    assert isinstance(error, ChannelUnavailable)
    assert error.retry_after_s == 17


async def test_nobody_there_is_tried_again(inbox: Inbox) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/api/"
        settings = SlackSettings(
            bot_token=SecretStr("xoxb-1-a"), app_token=SecretStr("xapp-1-b"), base_url=url
        )
        error = await listen_and_fail(SlackChannel(settings), inbox)
    assert isinstance(error, ChannelUnavailable)


async def test_a_refused_handshake_does_not_hold_the_bot_for_ever(
    server: SlackServer, inbox: Inbox
) -> None:
    server.socket.refuse_handshakes = 1
    channel = make_channel(server, connecting=WATCHFUL)
    with pytest.raises(ChannelUnavailable):
        await channel.listen(inbox.receive)
    tried = server.socket.refused_handshakes
    assert tried > 1  # the SDK repeats the used ticket
    task = asyncio.create_task(channel.listen(inbox.receive))  # as the supervisor does
    await server.wait_for_connection()
    assert server.socket.refused_handshakes == tried
    await end(channel, task)


async def test_the_watchdog_gives_up_a_connection_that_cannot_be_mended(
    server: SlackServer, inbox: Inbox
) -> None:
    channel = make_channel(server, connecting=WATCHFUL)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    server.socket.refuse_handshakes = 10_000
    server.socket.cut()
    with pytest.raises(ChannelUnavailable, match="no connection to Slack"):
        await task
    server.socket.refuse_handshakes = 0
    sent = server.dm(server.user("Ana")).send("still there?")
    again = asyncio.create_task(channel.listen(inbox.receive))
    assert [m.text for m in await inbox.wait_for(1)] == ["still there?"]
    await server.wait_for(lambda: sent.events[0].acknowledged)
    await end(channel, again)


async def test_a_connection_without_an_answer_to_pings_is_replaced(
    server: SlackServer, inbox: Inbox
) -> None:
    channel = make_channel(server, connecting=WATCHFUL)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    server.socket.silence()
    first = server.socket.connections[0]
    await server.wait_for(
        lambda: any(one is not first for one in server.socket.connections), timeout=10
    )
    await end(channel, task)


@pytest.mark.parametrize("reason", ["refresh_requested", "too_many_websockets"])
async def test_a_connection_that_slack_replaces_goes_on(
    server: SlackServer, inbox: Inbox, reason: str
) -> None:
    channel = make_channel(server, connecting=WATCHFUL)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    before = server.socket.connections[0]
    server.socket.disconnect(reason)
    await server.wait_for(lambda: [c for c in server.socket.connections if c is not before])
    server.dm(server.user("Ana")).send("hi")
    assert [m.text for m in await inbox.wait_for(1)] == ["hi"]
    await end(channel, task)


async def test_no_token_or_ticket_or_text_is_logged(
    server: SlackServer, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.socket.refuse_handshakes = 1
    channel = make_channel(server, connecting=WATCHFUL)
    with pytest.raises(ChannelUnavailable):
        await channel.listen(inbox.receive)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    inbox.faults = [NotStored("the disk is full")]
    server.dm(server.user("Ana")).send("a secret word")
    await server.wait_for(lambda: inbox.attempts == 1)
    await end(channel, task)
    said = "\n".join(
        logging.Formatter().format(r) for r in caplog.records if r.name.startswith("channels")
    )
    assert "Failed to connect" in said  # the SDK's own complaint is kept
    tickets = [ticket for ticket in server.socket.tickets if ticket in said]
    assert tickets == []
    for secret in (server.bot_token, server.app_token, "secret word", "Ana"):
        assert secret not in said


async def test_what_the_environment_says_is_not_used(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-other")
    channel = make_channel(server)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    await end(channel, task)


async def test_cancelling_leaves_nothing_behind(server: SlackServer, inbox: Inbox) -> None:
    before = asyncio.all_tasks()
    channel = make_channel(server)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    await end(channel, task)
    await server.wait_for(lambda: not server.socket.connections)
    ours = {one for one in asyncio.all_tasks() - before if "slack" in repr(one.get_coro())}
    assert not {one for one in ours if "tests" not in repr(one)}
    await channel.aclose()


@pytest.mark.parametrize("method", ["auth.test", "apps.connections.open"])
async def test_tokens_that_have_worked_are_given_up_only_when_they_stay_refused(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr("channels.trust.REFUSED_AGAIN_S", (0.01, 0.02))
    monkeypatch.setattr("channels.supervise.FIRST_WAIT_S", 0.01)
    channel = make_channel(server, connecting=WATCHFUL)
    reasons: list[str] = []
    task = asyncio.create_task(supervise(channel, inbox.receive, failing=reasons.append))
    await server.wait_for_connection()
    await lose_connection(server)
    server.fail_next(method, error="invalid_auth")
    server.dm(server.user("Ana")).send("still here?")
    await inbox.wait_for(1)
    assert any("it has worked before" in reason for reason in reasons)
    await lose_connection(server)
    server.fail_next(method, error="invalid_auth", count=100)
    with pytest.raises(ChannelFailed, match="Slack refuses it"):
        await task
    await channel.aclose()


async def lose_connection(server: SlackServer) -> None:
    """Until the channel has built a handler anew."""
    refused = server.socket.refused_handshakes
    server.socket.refuse_handshakes = 1  # the SDK tries the used ticket again, for ever
    server.socket.cut()
    await server.wait_for(lambda: server.socket.refused_handshakes > refused)


async def end(channel: SlackChannel, task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await channel.aclose()
