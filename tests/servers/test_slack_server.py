"""The local Slack keeps Slack's rules, seen through slack_sdk and slack_bolt."""

from collections.abc import AsyncIterator

import pytest
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.servers.slack import SlackServer


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as running:
        yield running


@pytest.fixture
def client(server: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(server.bot_token, base_url=server.base_url)


@pytest.fixture
async def app(server: SlackServer, client: AsyncWebClient) -> AsyncIterator[AsyncApp]:
    made = AsyncApp(client=client)
    handler = AsyncSocketModeHandler(made, server.app_token, web_client=client)
    await handler.connect_async()
    await server.wait_for_connection()
    yield made
    await handler.close_async()


async def test_a_message_comes_in_and_an_answer_is_seen(server: SlackServer, app: AsyncApp) -> None:
    @app.event("message")
    async def answer(event, client) -> None:  # type: ignore[no-untyped-def]
        sent = await client.chat_postMessage(channel=event["channel"], text="…")
        await client.chat_update(channel=event["channel"], ts=sent["ts"], text="hello")

    dm = server.dm(server.user("Ana"))
    dm.send("hi")
    message = await dm.wait_for_text("hello")
    assert message.history == ["…", "hello"]
    await server.wait_for(lambda: server.deliveries[0].acknowledged)
