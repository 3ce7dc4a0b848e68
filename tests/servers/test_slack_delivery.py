"""The local Slack delivers as Slack does: Socket Mode and signed HTTP, seen through slack_bolt."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.servers import slack_blocks
from tests.servers.slack import Conversation, SlackServer, User
from tests.servers.slack_state import SlackError

Json = dict[str, Any]


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as running:
        yield running


@pytest.fixture
def client(server: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(server.bot_token, base_url=server.base_url)


@pytest.fixture
def ana(server: SlackServer) -> User:
    return server.user("Ana")


@pytest.fixture
def dm(server: SlackServer, ana: User) -> Conversation:
    return server.dm(ana)


class Seen:
    """An app that notes each event and body that reaches it, and wakes who waits for that."""

    def __init__(self, server: SlackServer, client: AsyncWebClient) -> None:
        self.server = server
        self.app = AsyncApp(name="delivery", client=client, signing_secret=server.signing_secret)
        self.events: list[Json] = []
        self.bodies: list[Json] = []
        for kind in ("message", "app_mention", "member_joined_channel"):
            self.app.event(kind)(self._event)

    async def _event(self, event: Json, body: Json) -> None:
        self.events.append(event)
        self.bodies.append(body)
        self.server.changed()

    async def heard(self, *texts: str) -> None:
        """Until exactly these texts have come, in any order."""
        await self.server.wait_for(lambda: sorted(self.texts) == sorted(texts))

    @property
    def texts(self) -> list[str]:
        return [one.get("text", "") for one in self.events]


@asynccontextmanager
async def connected(
    server: SlackServer, client: AsyncWebClient, app: AsyncApp
) -> AsyncIterator[AsyncSocketModeHandler]:
    handler = AsyncSocketModeHandler(app, server.app_token, web_client=client, ping_interval=0.05)
    await handler.connect_async()
    await server.wait_for_connection()
    yield handler
    await handler.close_async()


@pytest.fixture
async def seen(server: SlackServer, client: AsyncWebClient) -> AsyncIterator[Seen]:
    made = Seen(server, client)
    async with connected(server, client, made.app):
        yield made


@asynccontextmanager
async def raw_socket(
    server: SlackServer, client: AsyncWebClient
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A websocket that acknowledges only what the test acknowledges."""
    url = (await client.apps_connections_open(app_token=server.app_token))["url"]
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as ws:
        hello = await ws.receive_json(timeout=5)
        assert hello["type"] == "hello"
        assert hello["connection_info"]["app_id"] == server.app_id
        yield ws


async def settled(server: SlackServer) -> None:
    """Until everything that was delivered is acknowledged."""
    await server.wait_for(lambda: all(one.acknowledged for one in server.deliveries))


# ---- what people do ---------------------------------------------------------------------------


async def test_a_message_comes_in_and_an_answer_is_seen(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    app = AsyncApp(name="delivery", client=client)

    @app.message("hi")
    async def answer(event: Json, client: AsyncWebClient) -> None:
        sent = await client.chat_postMessage(channel=event["channel"], text="…")
        await client.chat_update(channel=event["channel"], ts=sent["ts"], text="hello")

    async with connected(server, client, app):
        dm.send("hi")
        message = await dm.wait_for_text("hello")
        assert message.history == ["…", "hello"]
        assert server.deliveries[0].acknowledged


async def test_a_direct_message_has_slacks_shape(
    server: SlackServer, seen: Seen, ana: User, dm: Conversation
) -> None:
    sent = dm.send("a<b & see https://example.org/x")
    await server.wait_for(lambda: seen.events)
    event = seen.events[0]
    assert event["channel_type"] == "im"
    assert (event["user"], event["ts"], event["team"]) == (ana.id, sent.ts, server.team_id)
    assert event["text"] == "a&lt;b &amp; see <https://example.org/x>"
    assert event["blocks"][0]["type"] == "rich_text"
    assert sent.shown == "a<b & see https://example.org/x"
    body = seen.bodies[0]
    assert body["event_id"].startswith("Ev")
    assert body["authorizations"][0]["user_id"] == server.bot.id


async def test_a_mention_gives_two_events_with_ids_of_their_own(
    server: SlackServer, seen: Seen, ana: User
) -> None:
    channel = server.channel("general", members=[ana])
    channel.send("<@BOT> hi")
    channel.send("no mention")
    await server.wait_for(lambda: len(seen.events) == 3)
    assert sorted(one["type"] for one in seen.events) == ["app_mention", "message", "message"]
    mentions = [one for one in seen.events if server.bot.mention in one["text"]]
    assert len({one["ts"] for one in mentions}) == 1
    assert len({one["event_id"] for one in seen.bodies}) == 3
    assert all("channel_type" not in one for one in seen.events if one["type"] == "app_mention")


async def test_the_app_hears_nothing_where_the_bot_is_no_member(
    server: SlackServer, seen: Seen, ana: User
) -> None:
    channel = server.channel("general", members=[ana], bot=False)
    channel.send("<@BOT> hi")
    assert server.deliveries == []
    channel.join(server.bot, inviter=ana)
    await server.wait_for(lambda: seen.events)
    assert seen.events[0] | {"event_ts": ""} == {
        "type": "member_joined_channel",
        "user": server.bot.id,
        "channel": channel.id,
        "channel_type": "C",
        "team": server.team_id,
        "inviter": ana.id,
        "event_ts": "",
    }


async def test_the_app_hears_only_what_it_subscribed_to(
    server: SlackServer, seen: Seen, ana: User
) -> None:
    server.subscriptions = {"app_mention", "message.im"}
    channel = server.channel("general", members=[ana])
    channel.send("<@BOT> hi")
    channel.send("others")
    private = server.channel("board", members=[ana], private=True)
    private.send("others")
    group = server.group_dm([ana, server.user("Bo")])
    group.send("others", ana)
    assert [one.event["type"] for one in server.deliveries] == ["app_mention"]
    server.subscriptions |= {"message.channels", "message.groups", "message.mpim"}
    for place in (channel, private, group):
        place.send("heard", ana)
    kinds = [one.event.get("channel_type") for one in server.deliveries[1:]]
    assert kinds == ["channel", "group", "mpim"]
    await settled(server)


async def test_a_reply_names_its_thread_and_changes_the_first_message(
    server: SlackServer, seen: Seen, ana: User
) -> None:
    channel = server.channel("general", members=[ana])
    root = channel.send("root")
    reply = channel.send("reply", thread=root)
    channel.send("second", thread=reply)
    await settled(server)
    first, heard, changed = (one.event for one in server.deliveries[:3])
    assert "thread_ts" not in first
    assert (heard["thread_ts"], heard["parent_user_id"]) == (root.ts, ana.id)
    assert changed["subtype"] == "message_changed"
    assert changed["message"]["reply_count"] == 1
    assert "edited" not in changed["message"]
    assert changed["previous_message"]["text"] == changed["message"]["text"] == "root"
    assert channel.thread(root)[1].text == "second"
    channel.delete(reply)
    assert root.reply_count == 1


async def test_edits_unfurls_and_deletions_are_told(
    server: SlackServer, seen: Seen, dm: Conversation
) -> None:
    message = dm.send("one")
    dm.edit(message, "two")
    dm.unfurl(message)
    dm.delete(message)
    await settled(server)
    edited, unfurled, deleted = (one.event for one in server.deliveries[1:])
    assert edited["message"]["edited"]["user"] == message.user
    assert (edited["previous_message"]["text"], edited["message"]["text"]) == ("one", "two")
    assert unfurled["message"]["text"] == unfurled["previous_message"]["text"] == "two"
    assert "attachments" in unfurled["message"]
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", message.ts)
    assert message.history == ["one", "two", "two"]
    assert dm.messages == []


async def test_a_person_of_another_workspace_is_told_apart(
    server: SlackServer, seen: Seen, ana: User
) -> None:
    guest = server.user("Gil", team_id="T0OTHER001", is_restricted=True)
    channel = server.channel("shared", members=[ana, guest])
    channel.send("hi", guest)
    await seen.heard("hi")
    assert (seen.events[0]["user_team"], seen.events[0]["source_team"]) == ("T0OTHER001",) * 2
    info = await seen.app.client.users_info(user=guest.id)
    assert (info["user"]["team_id"], info["user"]["is_restricted"]) == ("T0OTHER001", True)


async def test_other_bots_and_files_are_told(server: SlackServer, seen: Seen, ana: User) -> None:
    other = server.user("Other", is_bot=True)
    channel = server.channel("general", members=[ana, other])
    channel.send("✓", other)
    image = server.file("x.png", b"\x89PNG", mimetype="image/png", user=ana)
    channel.send("", ana, files=[image])
    await settled(server)
    from_bot, with_file = (one.event for one in server.deliveries)
    assert from_bot["bot_id"] == other.bot_id
    assert with_file["subtype"] == "file_share"
    shown = with_file["files"][0]
    assert (shown["mimetype"], shown["size"]) == ("image/png", 4)
    assert shown["url_private"] == image.url


# ---- order and duplicates -----------------------------------------------------------------------


async def test_events_come_in_any_order_and_twice_as_scripted(
    server: SlackServer, seen: Seen, dm: Conversation
) -> None:
    first = dm.send("first", deliver=False)
    second = dm.send("second", deliver=False)
    assert first.ts < second.ts
    assert server.deliveries == []
    late = server.deliver(second.events[0])
    await seen.heard("second")
    server.deliver(first.events[0])
    await seen.heard("second", "first")
    server.repeat(late)
    await seen.heard("second", "first", "second")
    await server.wait_for(lambda: late.acks == 2)
    assert seen.texts == ["second", "first", "second"]
    assert len({one["event_id"] for one in seen.bodies}) == 2
    sent = server.socket.connections[0].envelopes
    assert sent[0]["envelope_id"] == sent[2]["envelope_id"]
    assert (sent[2]["retry_attempt"], sent[2]["retry_reason"]) == (0, "")


async def test_the_same_envelope_comes_on_a_new_connection(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    made = Seen(server, client)
    async with connected(server, client, made.app):
        dm.send("hi")
        await settled(server)
    await server.wait_for(lambda: not server.socket.connections)
    async with connected(server, client, made.app):
        server.repeat(server.deliveries[0])
        await server.wait_for(lambda: server.deliveries[0].acks == 2)
    assert [one.connection for one in server.socket.acks] == [1, 2]


# ---- acknowledgement ----------------------------------------------------------------------------


async def test_an_event_is_sent_again_until_it_is_acknowledged(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.socket.ack_timeout_s = 0.05
    async with raw_socket(server, client) as ws:
        dm.send("hi")
        envelopes = [await ws.receive_json(timeout=5) for _ in range(3)]
        assert [one["retry_attempt"] for one in envelopes] == [0, 1, 2]
        assert [one["retry_reason"] for one in envelopes] == ["", "timeout", "timeout"]
        assert len({one["envelope_id"] for one in envelopes}) == 3
        assert len({one["payload"]["event_id"] for one in envelopes}) == 1
        await ws.send_json({"envelope_id": envelopes[2]["envelope_id"]})
        await settled(server)
        assert server.deliveries[0].attempts >= 3


async def test_an_event_is_given_up_after_three_retries(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.socket.ack_timeout_s = 0.02
    async with raw_socket(server, client):
        dm.send("hi")
        await server.wait_for(lambda: server.deliveries[0].given_up)
    assert server.deliveries[0].sent == 4


async def test_an_event_goes_to_the_other_connection_when_one_is_silent(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.socket.ack_timeout_s = 0.05
    made = Seen(server, client)
    async with raw_socket(server, client), connected(server, client, made.app):
        await server.wait_for_connection(2)
        dm.send("one")
        dm.send("two")
        await settled(server)
        await server.wait_for(lambda: set(made.texts) == {"one", "two"})
    assert {one.connection for one in server.socket.acks} == {2}


async def test_what_came_while_nobody_was_connected_comes_as_a_retry(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    dm.send("hi")
    async with raw_socket(server, client) as ws:
        envelope = await ws.receive_json(timeout=5)
        assert (envelope["type"], envelope["retry_attempt"]) == ("events_api", 1)
        await ws.send_json({"envelope_id": envelope["envelope_id"], "payload": {"x": 1}})
        await settled(server)
    assert server.deliveries[0].response == {"x": 1}
    assert server.socket.acks[0].payload == {"x": 1}


async def test_an_event_lost_with_its_connection_comes_on_the_next(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.socket.ack_timeout_s = 0.05
    async with raw_socket(server, client) as ws:
        dm.send("hi")
        await ws.receive_json(timeout=5)
    await server.wait_for(lambda: not server.socket.connections)
    await server.wait_for(lambda: server.deliveries[0].timer is None)
    async with raw_socket(server, client) as ws:
        envelope = await ws.receive_json(timeout=5)
        assert envelope["retry_attempt"] >= 1


# ---- connections --------------------------------------------------------------------------------


async def test_a_ticket_is_good_for_one_connection(
    server: SlackServer, client: AsyncWebClient
) -> None:
    url = (await client.apps_connections_open(app_token=server.app_token))["url"]
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(url) as ws:
            assert (await ws.receive_json(timeout=5))["type"] == "hello"
        for bad in (url, url.replace("ticket=", "ticket=x")):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(bad)
        server.socket.refuse_handshakes = 1
        fresh = (await client.apps_connections_open(app_token=server.app_token))["url"]
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(fresh)
    assert server.socket.refused_handshakes == 3


async def test_the_client_comes_back_after_a_disconnect_message(
    server: SlackServer, seen: Seen, dm: Conversation
) -> None:
    for reason in ("refresh_requested", "warning", "too_many_websockets"):
        before = server.socket.connections[-1]
        server.socket.disconnect(reason)
        await server.wait_for(
            lambda before=before: any(
                one.number > before.number for one in server.socket.connections
            )
        )
    dm.send("still here")
    await seen.heard("still here")


async def test_the_client_comes_back_after_a_cut_and_after_silence(
    server: SlackServer, seen: Seen, dm: Conversation
) -> None:
    number = server.socket.connections[0].number
    server.socket.cut()
    await server.wait_for(
        lambda: server.socket.connections and server.socket.connections[0].number > number
    )
    number = server.socket.connections[0].number
    server.socket.silence()
    await server.wait_for(lambda: any(one.number > number for one in server.socket.connections))
    await server.wait_for(lambda: len(server.socket.connections) == 1)
    dm.send("hi")
    await seen.heard("hi")


async def test_a_refused_handshake_uses_up_its_ticket(server: SlackServer, seen: Seen) -> None:
    server.socket.refuse_handshakes = 1
    server.socket.cut()
    await server.wait_for(lambda: server.socket.refused_handshakes >= 3)
    assert server.socket.connections == []
    assert len(server.socket.tickets) == 2  # the SDK's client tries the same one again and again


async def test_an_eleventh_connection_is_turned_away(
    server: SlackServer, client: AsyncWebClient
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(10):
            await stack.enter_async_context(raw_socket(server, client))
        async with raw_socket(server, client) as ws:
            frame = await ws.receive_json(timeout=5)
            assert (frame["type"], frame["reason"]) == ("disconnect", "too_many_websockets")
            assert (await ws.receive(timeout=5)).type == aiohttp.WSMsgType.CLOSE


async def test_a_restart_of_the_platform_loses_nothing(
    server: SlackServer, seen: Seen, dm: Conversation
) -> None:
    port = int(server.origin.rpartition(":")[2])
    await server.stop()
    dm.send("while it was away")
    await server.start(port)
    await seen.heard("while it was away")
    assert server.socket.connections[0].envelopes[0]["retry_attempt"] == 1


async def test_pings_go_both_ways(server: SlackServer, seen: Seen) -> None:
    connection = server.socket.connections[0]
    await server.wait_for(lambda: connection.pings >= 2)
    server.socket.ping_interval_s = 0.02
    client = AsyncWebClient(base_url=server.base_url)
    url = (await client.apps_connections_open(app_token=server.app_token))["url"]
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, autoping=False) as ws,
    ):
        await ws.receive_json(timeout=5)
        assert (await ws.receive(timeout=5)).type == aiohttp.WSMsgType.PING


# ---- commands -----------------------------------------------------------------------------------


async def test_a_command_is_answered_in_its_acknowledgement(
    server: SlackServer, seen: Seen, ana: User
) -> None:
    @seen.app.command("/galata")
    async def galata(ack: Any, command: Json, respond: Any) -> None:
        assert command["channel_name"] == "general"
        await ack(f"heard {command['text']}")
        await respond(text="later", response_type="in_channel")

    channel = server.channel("general", members=[ana])
    delivery = channel.slash("/galata", "cancel", ana)
    assert delivery is not None
    await server.wait_for(lambda: delivery.acknowledged)
    assert [one.text for one in channel.ephemerals(ana)] == ["heard cancel"]
    await channel.wait_for_text("later")


async def test_slack_keeps_unknown_commands_and_those_in_threads(
    server: SlackServer, seen: Seen, ana: User
) -> None:
    channel = server.channel("general", members=[ana])
    root = channel.send("root")
    assert channel.slash("/galata", "cancel", ana, thread=root) is None
    assert channel.slash("/other", "", ana) is None
    shown = [one.text for one in channel.ephemerals(ana)]
    assert shown == [
        "/galata is not supported in threads. Sorry!",
        "/other is not a valid command.",
    ]
    await settled(server)


async def test_a_command_that_is_not_answered_fails_visibly_and_is_not_repeated(
    server: SlackServer, client: AsyncWebClient, ana: User, dm: Conversation
) -> None:
    server.socket.ack_timeout_s = 0.03
    dm.slash("/galata", "help", ana)
    async with raw_socket(server, client) as ws:
        late = dm.slash("/galata", "help", ana)
        assert late is not None
        envelope = await ws.receive_json(timeout=5)
        assert "retry_attempt" not in envelope
        await server.wait_for(lambda: late.given_up)
        server.socket.ack_timeout_s = 3.0
        bad = dm.slash("/galata", "help", ana)
        assert bad is not None
        envelope = await ws.receive_json(timeout=5)
        payload = {"blocks": [{"type": "header"}]}
        await ws.send_json({"envelope_id": envelope["envelope_id"], "payload": payload})
        await server.wait_for(lambda: bad.acknowledged)
    assert [one.text for one in dm.ephemerals(ana)] == [
        '/galata failed with the error "dispatch_failed"',
        '/galata failed with the error "operation_timeout"',
        '/galata failed with the error "invalid_command_response"',
    ]
    assert late.sent == 1


# ---- buttons and forms --------------------------------------------------------------------------

STOP = {
    "type": "actions",
    "elements": [
        {
            "type": "button",
            "text": {"type": "plain_text", "text": "Stop"},
            "action_id": "stop",
            "value": "r1",
        }
    ],
}


async def test_a_press_carries_what_the_app_needs(
    server: SlackServer, seen: Seen, client: AsyncWebClient, ana: User, dm: Conversation
) -> None:
    presses: list[Json] = []

    @seen.app.action("stop")
    async def stop(ack: Any, body: Json, respond: Any) -> None:
        await ack()
        presses.append(body)
        await respond(text="stopped", replace_original=True)

    root = dm.send("root")
    await client.chat_postMessage(channel=dm.id, text="…", blocks=[STOP], thread_ts=root.ts)
    message = dm.from_bot[0]
    dm.press(message, "Stop", ana)
    await dm.wait_for_text("stopped")
    (body,) = presses
    assert body["user"]["id"] == ana.id
    assert body["channel"] == {"id": dm.id, "name": "directmessage"}
    assert body["container"] == {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": dm.id,
        "is_ephemeral": False,
        "thread_ts": root.ts,
    }
    assert body["message"]["ts"] == message.ts
    assert (body["actions"][0]["action_id"], body["actions"][0]["value"]) == ("stop", "r1")
    with pytest.raises(AssertionError, match="no button"):
        dm.press(message, "Stop", ana)


async def test_a_button_of_an_ephemeral_message_can_be_pressed(
    server: SlackServer, seen: Seen, client: AsyncWebClient, ana: User, dm: Conversation
) -> None:
    @seen.app.action("stop")
    async def stop(ack: Any, body: Json) -> None:
        assert body["container"]["is_ephemeral"]
        assert "message" not in body
        await ack()

    await client.chat_postEphemeral(channel=dm.id, user=ana.id, text="…", blocks=[STOP])
    delivery = dm.press(dm.ephemerals(ana)[0], "stop", ana)
    await server.wait_for(lambda: delivery.acknowledged)


def form(title: str = "Settings", **more: Any) -> Json:
    return {
        "type": "modal",
        "callback_id": "settings",
        "title": {"type": "plain_text", "text": title},
        "submit": {"type": "plain_text", "text": "Save"},
        "blocks": [
            {
                "type": "input",
                "block_id": "limit",
                "label": {"type": "plain_text", "text": "Limit"},
                "element": {"type": "plain_text_input", "action_id": "value"},
            }
        ],
        **more,
    }


@pytest.mark.parametrize(
    ("element", "told"),
    [
        ({"max_length": 3001}, "element/max_length"),
        ({"max_length": 5, "initial_value": "longer"}, "element/initial_value"),
        ({"placeholder": {"type": "plain_text", "text": "x" * 151}}, "element/placeholder"),
        ({"type": "static_select", "options": []}, "element/options"),
        ({"initial_value": "x" * 8_000}, ""),
    ],
)
def test_an_input_is_checked_as_block_kit_does(element: Json, told: str) -> None:
    block = form()["blocks"][0]
    blocks = [block | {"element": block["element"] | element}]
    problems: list[str] = []
    try:
        slack_blocks.parse(blocks, note=lambda _: None)
    except SlackError as error:
        problems = error.body["errors"]
    assert [told in one for one in problems][:1] == ([True] if told else [])


async def test_a_form_is_opened_refused_and_sent(
    server: SlackServer, seen: Seen, ana: User, dm: Conversation
) -> None:
    @seen.app.command("/galata")
    async def galata(ack: Any, command: Json, client: AsyncWebClient) -> None:
        await ack()
        await client.views_open(trigger_id=command["trigger_id"], view=form())
        with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
            await client.views_open(trigger_id=command["trigger_id"], view=form())

    @seen.app.view("settings")
    async def save(ack: Any, view: Json) -> None:
        value = view["state"]["values"]["limit"]["value"]["value"]
        if value.isdigit():
            await ack()
        else:
            await ack(response_action="errors", errors={"limit": "a number, please"})

    dm.slash("/galata", "settings", ana)
    await server.wait_for(lambda: server.views)
    view = server.modal(ana)
    assert (view.title, view.shown) == ("Settings", "Limit")
    refused = server.submit(view, {"limit": "many"})
    await server.wait_for(lambda: refused.acknowledged)
    assert (view.open, view.errors) == (True, {"limit": "a number, please"})
    taken = server.submit(view, {"limit": "3"})
    await server.wait_for(lambda: taken.acknowledged)
    assert not view.open
    with pytest.raises(AssertionError):
        server.modal(ana)


async def test_a_trigger_opens_a_form_for_three_seconds(
    server: SlackServer, client: AsyncWebClient, ana: User
) -> None:
    trigger = server.trigger(ana)
    server.triggers[trigger].at -= 3.1
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await client.views_open(trigger_id=trigger, view=form())


async def test_views_are_checked_updated_and_published(
    server: SlackServer, client: AsyncWebClient, ana: User
) -> None:
    with pytest.raises(SlackApiError, match="invalid_trigger_id"):
        await client.views_open(trigger_id="1.2.3", view=form())
    for bad, problem in (
        (form(title="x" * 25), "must be less than 25 characters [json-pointer:/view/title/text]"),
        (form(submit=None), "missing required field: submit [json-pointer:/view]"),
        (form(callback_id="x" * 256), "[json-pointer:/view/callback_id]"),
        (form(blocks=[{"type": "divider"}] * 101), "[json-pointer:/view/blocks]"),
    ):
        with pytest.raises(SlackApiError) as caught:
            await client.views_open(trigger_id=server.trigger(ana), view=bad)
        assert caught.value.response["error"] == "invalid_arguments"
        assert problem in caught.value.response["response_metadata"]["messages"][0]
    opened = await client.views_open(trigger_id=server.trigger(ana), view=form())
    view_id, version = opened["view"]["id"], opened["view"]["hash"]
    await client.views_update(view_id=view_id, hash=version, view=form(title="Saved"))
    assert server.modal(ana).title == "Saved"
    with pytest.raises(SlackApiError, match="hash_conflict"):
        await client.views_update(view_id=view_id, hash=version, view=form())
    home = {"type": "home", "blocks": [STOP]}
    await client.views_publish(user_id=ana.id, view=home)
    assert server.homes[ana.id].shown == "[Stop]"
    assert [one.text for one in server.homes[ana.id].buttons] == ["Stop"]


# ---- signed HTTP --------------------------------------------------------------------------------

Answer = Callable[[web.Request], Any]


@asynccontextmanager
async def listening(server: SlackServer, answer: Answer) -> AsyncIterator[None]:
    """A request URL of the app."""
    site_app = web.Application()
    site_app.router.add_post("/slack/events", answer)
    runner = web.AppRunner(site_app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.http.url = f"http://127.0.0.1:{runner.addresses[0][1]}/slack/events"
    yield
    await server.http.stop()
    await runner.cleanup()


def bolt(app: AsyncApp) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    return answer


async def test_events_commands_and_presses_are_posted_signed(
    server: SlackServer, client: AsyncWebClient, ana: User, dm: Conversation
) -> None:
    made = Seen(server, client)

    @made.app.command("/galata")
    async def galata(ack: Any) -> None:
        await ack("heard")

    @made.app.action("stop")
    async def stop(ack: Any, respond: Any) -> None:
        await ack()
        await respond(text="stopped")

    async with listening(server, bolt(made.app)):
        assert await server.http.verify()
        dm.send("hi")
        await made.heard("hi")
        dm.slash("/galata", "help", ana)
        await client.chat_postMessage(channel=dm.id, text="…", blocks=[STOP])
        dm.press(dm.from_bot[0], "Stop", ana)
        await server.wait_for(lambda: dm.from_bot[0].shown == "stopped")
        await settled(server)
    assert [one.text for one in dm.ephemerals(ana)] == ["heard"]


async def test_a_wrong_or_old_signature_is_refused_by_the_app(
    server: SlackServer, client: AsyncWebClient
) -> None:
    made = Seen(server, client)
    body = json.dumps({"type": "url_verification", "challenge": "c"}).encode()
    async with listening(server, bolt(made.app)), aiohttp.ClientSession() as session:
        for headers, status in (
            (server.sign(body), 200),
            (server.sign(body, timestamp=1_600_000_000), 401),
            (server.sign(body + b" "), 401),
        ):
            headers["Content-Type"] = "application/json"
            assert server.http.url is not None
            async with session.post(server.http.url, data=body, headers=headers) as answer:
                assert answer.status == status


async def test_a_post_that_fails_is_repeated_with_its_number_and_reason(
    server: SlackServer, dm: Conversation
) -> None:
    server.http.ack_timeout_s = 0.3
    seen: list[tuple[str | None, str | None]] = []
    never = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        number = request.headers.get("X-Slack-Retry-Num")
        seen.append((number, request.headers.get("X-Slack-Retry-Reason")))
        if len(seen) == 1:
            await never.wait()
        return web.Response(status=500 if len(seen) == 2 else 200)

    async with listening(server, answer):
        dm.send("hi")
        await settled(server)
        never.set()
    assert seen == [(None, None), ("1", "http_timeout"), ("2", "http_error")]


async def test_a_post_is_given_up_after_three_retries_or_when_asked_to(
    server: SlackServer, dm: Conversation
) -> None:
    headers: dict[str, str] = {}

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=500, headers=headers)

    async with listening(server, answer):
        dm.send("one")
        await server.wait_for(lambda: server.deliveries[0].given_up)
        assert server.deliveries[0].sent == 4
        headers["X-Slack-No-Retry"] = "1"
        dm.send("two")
        await server.wait_for(lambda: server.deliveries[1].given_up)
        assert server.deliveries[1].sent == 1
    server.http.url = "http://127.0.0.1:9/slack/events"
    dm.send("three")
    await server.wait_for(lambda: server.deliveries[2].given_up)
    assert server.deliveries[2].failure == "dispatch_failed"


async def test_a_post_can_be_repeated_after_its_answer(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    made = Seen(server, client)
    async with listening(server, bolt(made.app)):
        dm.send("hi")
        await settled(server)
        server.repeat(server.deliveries[0], attempt=1)
        await server.wait_for(lambda: server.deliveries[0].acks == 2)
        await made.heard("hi", "hi")
