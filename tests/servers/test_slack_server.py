"""The local Slack's Web API keeps Slack's rules, seen through slack_sdk's client."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.models.blocks import ActionsBlock, ButtonElement, MarkdownBlock, SectionBlock
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from tests.servers.slack import Conversation, SlackServer, User

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
    return server.user("Ana", locale="de-DE", tz="Europe/Berlin")


@pytest.fixture
def dm(server: SlackServer, ana: User) -> Conversation:
    return server.dm(ana)


async def refusal(call: Any) -> Json:
    """The body with which a call is refused."""
    with pytest.raises(SlackApiError) as caught:
        await call
    body: Json = caught.value.response.data
    return body


async def code(call: Any) -> str:
    """The error code with which a call is refused."""
    return str((await refusal(call))["error"])


def post(client: AsyncWebClient, channel: str, **params: Any) -> Any:
    """chat.postMessage without the client's own checks."""
    return client.api_call("chat.postMessage", json={"channel": channel, **params})


def section(text: str, **more: Any) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


def button(text: str, action_id: str, **more: Any) -> Json:
    label = {"type": "plain_text", "text": text}
    return {"type": "button", "text": label, "action_id": action_id, **more}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


# ---- who asks -------------------------------------------------------------------------------


async def test_auth_test_says_who_the_bot_is_and_what_it_may(
    server: SlackServer, client: AsyncWebClient
) -> None:
    answer = await client.auth_test()
    assert answer["user_id"] == server.bot.id
    assert answer["bot_id"] == server.bot.bot_id
    assert answer["team_id"] == server.team_id
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


async def test_tokens_are_checked(server: SlackServer, client: AsyncWebClient) -> None:
    def with_token(token: str) -> AsyncWebClient:
        return AsyncWebClient(token, base_url=server.base_url)

    assert await code(AsyncWebClient(base_url=server.base_url).auth_test()) == "not_authed"
    assert await code(with_token("xoxb-other").auth_test()) == "invalid_auth"
    for_app = client.api_call("apps.connections.open")
    assert await code(for_app) == "not_allowed_token_type"
    assert await code(with_token(server.app_token).team_info()) == "not_allowed_token_type"
    server.app_scopes = []
    refused = await refusal(client.apps_connections_open(app_token=server.app_token))
    assert (refused["error"], refused["needed"]) == ("missing_scope", "connections:write")


async def test_a_missing_scope_is_named_with_what_is_there(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.scopes = ["chat:write", "users:read"]
    with pytest.raises(SlackApiError) as caught:
        await client.conversations_history(channel=dm.id)
    body = caught.value.response.data
    assert body["error"] == "missing_scope"
    assert "im:history" in body["needed"]
    assert body["provided"] == "chat:write,users:read"
    assert caught.value.response.headers["x-oauth-scopes"] == "chat:write,users:read"
    server.scopes.append("channels:history")
    refused = await refusal(client.conversations_history(channel=dm.id))
    assert refused["needed"] == "im:history"


async def test_an_unknown_method_is_refused(client: AsyncWebClient) -> None:
    assert await code(client.api_call("chat.shout")) == "unknown_method"


# ---- posting --------------------------------------------------------------------------------


async def test_a_message_is_seen_edited_and_deleted(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    sent = await client.chat_postMessage(channel=dm.id, text="one & <two>")
    message = dm.from_bot[0]
    assert sent["ts"] == message.ts
    assert sent["message"]["text"] == "one &amp; &lt;two&gt;"
    assert message.shown == "one & <two>"
    updated = await client.chat_update(channel=dm.id, ts=sent["ts"], text="three")
    assert updated["message"]["edited"]["user"] == server.bot.id
    assert message.history == ["one & <two>", "three"]
    await client.chat_delete(channel=dm.id, ts=sent["ts"])
    assert dm.messages == []
    assert await code(client.chat_update(channel=dm.id, ts=sent["ts"], text="x")) == (
        "message_not_found"
    )


async def test_a_user_id_opens_their_direct_message(
    client: AsyncWebClient, ana: User, dm: Conversation
) -> None:
    sent = await client.chat_postMessage(channel=ana.id, text="hi")
    assert sent["channel"] == dm.id
    opened = await client.conversations_open(users=[ana.id])
    assert opened["channel"]["id"] == dm.id
    assert await code(client.conversations_open(users=["U404"])) == "user_not_found"


async def test_where_the_bot_may_not_write(server: SlackServer, client: AsyncWebClient) -> None:
    public = server.channel("general", bot=False)
    private = server.channel("board", bot=False, private=True)
    old = server.channel("old")
    old.is_archived = True
    assert await code(client.chat_postMessage(channel="C404", text="x")) == "channel_not_found"
    assert await code(client.chat_postMessage(channel=public.id, text="x")) == "not_in_channel"
    assert await code(client.chat_postMessage(channel=private.id, text="x")) == "channel_not_found"
    assert await code(client.chat_postMessage(channel=old.id, text="x")) == "is_archived"
    assert await code(client.conversations_history(channel=public.id)) == "not_in_channel"


async def test_only_its_own_messages_can_be_changed(
    client: AsyncWebClient, dm: Conversation
) -> None:
    hers = dm.send("mine")
    assert await code(client.chat_update(channel=dm.id, ts=hers.ts, text="x")) == (
        "cant_update_message"
    )
    assert await code(client.chat_delete(channel=dm.id, ts=hers.ts)) == "cant_delete_message"


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
async def test_an_empty_text_is_refused(
    client: AsyncWebClient, dm: Conversation, text: str
) -> None:
    assert await code(post(client, dm.id, text=text)) == "no_text"
    assert await code(post(client, dm.id, markdown_text=text)) == "no_text"
    assert await code(post(client, dm.id)) == "no_text"


async def test_an_update_holds_four_thousand_bytes(
    client: AsyncWebClient, dm: Conversation
) -> None:
    ts = (await client.chat_postMessage(channel=dm.id, text="x" * 11_800))["ts"]
    for fits in ("x" * 4_000, "数" * 1_333, "&" * 800):
        await client.chat_update(channel=dm.id, ts=ts, text=fits)
    for too_long in ("x" * 4_001, "数" * 1_334, "&" * 801):
        answer = code(client.chat_update(channel=dm.id, ts=ts, text=too_long))
        assert await answer == "msg_too_long"


async def test_a_post_holds_forty_thousand_characters(
    client: AsyncWebClient, dm: Conversation
) -> None:
    await client.chat_postMessage(channel=dm.id, text="数" * 40_000)
    assert await code(client.chat_postMessage(channel=dm.id, text="x" * 40_001)) == "msg_too_long"


async def test_markdown_text_stands_alone_and_holds_twelve_thousand(
    client: AsyncWebClient, dm: Conversation
) -> None:
    for other in ({"text": "x"}, {"blocks": [section("x")]}):
        call = post(client, dm.id, markdown_text="**x**", **other)
        assert await code(call) == "markdown_text_conflict"
    sent = await client.chat_postMessage(channel=dm.id, markdown_text="x" * 12_000)
    too_long = client.chat_postMessage(channel=dm.id, markdown_text="x" * 12_001)
    assert await code(too_long) == "msg_too_long"
    await client.chat_update(channel=dm.id, ts=sent["ts"], markdown_text="**y** " * 1_000)
    assert dm.from_bot[0].shown.startswith("**y** ")


async def test_an_update_keeps_blocks_only_when_nothing_else_is_given(
    client: AsyncWebClient, dm: Conversation
) -> None:
    block = ActionsBlock(elements=[ButtonElement(text="Stop", action_id="stop", value="r1")])
    sent = await client.chat_postMessage(
        channel=dm.id, text="…", blocks=[SectionBlock(text="…"), block]
    )
    message = dm.from_bot[0]
    assert [one.text for one in message.buttons] == ["Stop"]
    assert message.shown == "…\n[Stop]"
    await client.chat_update(
        channel=dm.id, ts=sent["ts"], text="a", blocks=[SectionBlock(text="b")]
    )
    assert (message.shown, message.text, message.edited) == ("b", "a", None)
    await client.chat_update(channel=dm.id, ts=sent["ts"], text="done")
    assert (message.shown, message.buttons) == ("done", [])
    assert message.edited is not None


# ---- threads --------------------------------------------------------------------------------


async def test_a_reply_goes_to_the_thread_of_any_of_its_messages(
    client: AsyncWebClient, dm: Conversation
) -> None:
    root = dm.send("root")
    first = await client.chat_postMessage(channel=dm.id, text="one", thread_ts=root.ts)
    await client.chat_postMessage(channel=dm.id, text="two", thread_ts=first["ts"])
    assert [one.text for one in dm.thread(root)] == ["one", "two"]
    assert root.reply_count == 2
    read = await client.conversations_replies(channel=dm.id, ts=root.ts)
    assert [one["text"] for one in read["messages"]] == ["root", "one", "two"]
    assert read["messages"][0]["reply_count"] == 2
    history = await client.conversations_history(channel=dm.id)
    assert [one["text"] for one in history["messages"]] == ["root"]


async def test_a_thread_that_is_not_there_is_refused(
    client: AsyncWebClient, dm: Conversation
) -> None:
    root = dm.send("root")
    dm.delete(root)
    gone = client.chat_postMessage(channel=dm.id, text="x", thread_ts=root.ts)
    assert await code(gone) == "thread_not_found"
    odd = await refusal(client.chat_postMessage(channel=dm.id, text="x", thread_ts="0"))
    assert odd["error"] == "invalid_thread_ts"
    assert odd["response_metadata"]["messages"] == ["[ERROR] 0 is not a valid thread_ts"]
    assert await code(client.conversations_replies(channel=dm.id, ts=root.ts)) == "thread_not_found"


# ---- blocks ---------------------------------------------------------------------------------

MARKDOWN = {"type": "markdown", "text": "x" * 12_000}
HEADER = {"type": "header", "text": {"type": "plain_text", "text": "x" * 150}}
FITS: list[list[Json]] = [
    [section("x" * 3_000)],
    [MARKDOWN],
    [HEADER],
    [{"type": "divider"}] * 50,
    [actions(*[button("x" * 75, f"a{n}") for n in range(25)])],
    [section("x" * 3_000)] * 3,
]
TOO_MUCH: list[tuple[list[Json], str]] = [
    (
        [{"type": "divider"}, section("x" * 3_001)],
        "must be less than 3001 characters [json-pointer:/blocks/1/text/text]",
    ),
    ([section("")], "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
    (
        [{"type": "markdown", "text": "x" * 12_001}],
        "must be less than 12001 characters [json-pointer:/blocks/0/text]",
    ),
    (
        [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}],
        "must be less than 151 characters [json-pointer:/blocks/0/text/text]",
    ),
    ([{"type": "divider"}] * 51, "no more than 50 items allowed [json-pointer:/blocks]"),
    (
        [actions(*[button("x", f"a{n}") for n in range(26)])],
        "no more than 25 items allowed [json-pointer:/blocks/0/elements]",
    ),
    (
        [actions(button("x" * 76, "a"))],
        "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]",
    ),
    (
        [actions(button("x", "a", value="v" * 2_001))],
        "must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]",
    ),
    (
        [actions(button("x", "a"), button("y", "a"))],
        "action_id already exists: a [json-pointer:/blocks/0/elements/1/action_id]",
    ),
    (
        [section("x", block_id="b"), section("y", block_id="b")],
        "block_id already exists: b [json-pointer:/blocks/1/block_id]",
    ),
    (
        [actions(button("x", "a", disabled=True))],
        "invalid additional property: disabled [json-pointer:/blocks/0/elements/0]",
    ),
    (
        [{"type": "section", "text": {"type": "mrkdwn", "text": "x", "emoji": True}}],
        "invalid additional property: emoji [json-pointer:/blocks/0/text]",
    ),
    (
        [{"type": "marquee", "text": "x"}],
        "unsupported type: marquee [json-pointer:/blocks/0/type]",
    ),
]


@pytest.mark.parametrize("blocks", FITS)
async def test_blocks_at_the_limit_are_taken(
    server: SlackServer, client: AsyncWebClient, dm: Conversation, blocks: list[Json]
) -> None:
    await post(client, dm.id, text="x", blocks=blocks)
    assert server.violations == []


@pytest.mark.parametrize(("blocks", "problem"), TOO_MUCH)
async def test_blocks_over_a_limit_are_refused_with_the_place(
    client: AsyncWebClient, dm: Conversation, blocks: list[Json], problem: str
) -> None:
    refused = await refusal(post(client, dm.id, text="x", blocks=blocks))
    assert refused["error"] == "invalid_blocks"
    assert problem in refused["errors"]
    assert f"[ERROR] {problem}" in refused["response_metadata"]["messages"]
    assert dm.messages == []


async def test_all_blocks_together_have_a_limit(client: AsyncWebClient, dm: Conversation) -> None:
    for blocks in (
        [MARKDOWN, {"type": "markdown", "text": "y"}],
        [section("x" * 2_990)] * 4,
    ):
        assert await code(post(client, dm.id, text="x", blocks=blocks)) == "msg_blocks_too_long"


async def test_blocks_that_are_no_list_are_refused(
    client: AsyncWebClient, dm: Conversation
) -> None:
    for blocks in ("[{", '"x"', '["x"]'):
        assert await code(post(client, dm.id, text="x", blocks=blocks)) == "invalid_blocks_format"


async def test_the_sdks_verdict_on_blocks_is_kept(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    await client.chat_postMessage(channel=dm.id, text="x", blocks=[MarkdownBlock(text="**x**")])
    assert server.violations == []
    await post(client, dm.id, blocks=[section("x")])
    assert server.violations == ["top-level text is missing beside blocks"]
    await refusal(post(client, dm.id, text="x", blocks=[section("x" * 3_001)]))
    assert "section" in server.violations[1]


# ---- ephemerals and reactions ---------------------------------------------------------------


async def test_an_ephemeral_message_is_seen_by_one(
    server: SlackServer, client: AsyncWebClient, ana: User
) -> None:
    bo = server.user("Bo")
    channel = server.channel("general", members=[ana, bo])
    await client.chat_postEphemeral(channel=channel.id, user=ana.id, text="only you")
    assert [one.text for one in channel.ephemerals(ana)] == ["only you"]
    assert channel.ephemerals(bo) == []
    assert channel.messages == []
    outside = server.user("Cy")
    call = client.chat_postEphemeral(channel=channel.id, user=outside.id, text="x")
    assert await code(call) == "user_not_in_channel"


async def test_reactions_are_set_and_cleared_once(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    message = dm.send("hi")
    await client.reactions_add(channel=dm.id, timestamp=message.ts, name="eyes")
    assert message.reactions == {"eyes": [server.bot.id]}
    again = client.reactions_add(channel=dm.id, timestamp=message.ts, name="eyes")
    assert await code(again) == "already_reacted"
    await client.reactions_remove(channel=dm.id, timestamp=message.ts, name="eyes")
    assert message.reactions == {}
    gone = client.reactions_remove(channel=dm.id, timestamp=message.ts, name="eyes")
    assert await code(gone) == "no_reaction"
    odd = client.reactions_add(channel=dm.id, timestamp=message.ts, name="👀")
    assert await code(odd) == "invalid_name"
    nowhere = client.reactions_add(channel=dm.id, timestamp="1.000000", name="eyes")
    assert await code(nowhere) == "message_not_found"


# ---- reading --------------------------------------------------------------------------------


async def test_history_is_read_in_pages_newest_first(
    client: AsyncWebClient, dm: Conversation
) -> None:
    sent = [dm.send(f"m{n}") for n in range(5)]
    assert len({one.ts for one in sent}) == 5
    assert [one.ts for one in sent] == sorted(one.ts for one in sent)
    first = await client.conversations_history(channel=dm.id, limit=3)
    assert [one["text"] for one in first["messages"]] == ["m4", "m3", "m2"]
    assert first["has_more"]
    cursor = first["response_metadata"]["next_cursor"]
    second = await client.conversations_history(channel=dm.id, limit=3, cursor=cursor)
    assert [one["text"] for one in second["messages"]] == ["m1", "m0"]
    one = await client.conversations_history(
        channel=dm.id, latest=sent[2].ts, oldest=sent[2].ts, inclusive=True
    )
    assert [message["text"] for message in one["messages"]] == ["m2"]
    after = await client.conversations_history(channel=dm.id, oldest=sent[3].ts)
    assert [message["text"] for message in after["messages"]] == ["m4"]


async def test_people_bots_teams_and_channels_can_be_looked_up(
    server: SlackServer, client: AsyncWebClient, ana: User, dm: Conversation
) -> None:
    user = (await client.users_info(user=ana.id, include_locale=True))["user"]
    assert (user["real_name"], user["locale"], user["tz"]) == ("Ana", "de-DE", "Europe/Berlin")
    assert not user["is_bot"]
    assert not user["is_restricted"]
    assert user["team_id"] == server.team_id
    assert "locale" not in (await client.users_info(user=ana.id))["user"]
    assert await code(client.users_info(user="U404")) == "user_not_found"
    bot = (await client.bots_info(bot=server.bot.bot_id))["bot"]
    assert bot["user_id"] == server.bot.id
    assert await code(client.bots_info(bot="B404")) == "bot_not_found"
    assert (await client.team_info())["team"]["id"] == server.team_id
    info = (await client.conversations_info(channel=dm.id))["channel"]
    assert (info["is_im"], info["user"]) == (True, ana.id)
    channel = server.channel("general", members=[ana])
    info = (await client.conversations_info(channel=channel.id, include_num_members=True))[
        "channel"
    ]
    assert (info["name"], info["is_member"], info["num_members"]) == ("general", True, 2)
    members = await client.conversations_members(channel=channel.id)
    assert members["members"] == [ana.id, server.bot.id]


# ---- files ----------------------------------------------------------------------------------


async def test_a_file_is_uploaded_in_three_steps(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    root = dm.send("please")
    answer = await client.files_upload_v2(
        channel=dm.id,
        content="a,b\n1,2\n",
        filename="t.csv",
        initial_comment="here",
        thread_ts=root.ts,
    )
    (message,) = dm.thread(root)
    assert message.text == "here"
    assert message.files[0].content == b"a,b\n1,2\n"
    info = await client.files_info(file=answer["file"]["id"])
    assert info["file"]["size"] == 8
    assert info["file"]["shares"]["private"][dm.id][0]["ts"] == message.ts
    assert await code(client.files_info(file="F404")) == "file_not_found"


async def test_a_download_without_token_or_scope_is_a_login_page(
    server: SlackServer, dm: Conversation
) -> None:
    file = server.file("a.txt", b"hello", user=server.user("Bo"))
    right = {"Authorization": f"Bearer {server.bot_token}"}
    async with aiohttp.ClientSession() as session:

        async def fetch(headers: dict[str, str]) -> tuple[int, str, bytes]:
            async with session.get(file.url, headers=headers) as answer:
                return answer.status, answer.content_type, await answer.read()

        assert (await fetch(right))[1] == "text/html"  # shown nowhere yet
        dm.send("look", files=[file])
        assert await fetch(right) == (200, "text/plain", b"hello")
        status, kind, body = await fetch({})
        assert (status, kind) == (200, "text/html")
        assert body.startswith(b"<!DOCTYPE html>")
        server.scopes.remove("files:read")
        assert (await fetch(right))[1] == "text/html"


# ---- faults ---------------------------------------------------------------------------------


async def test_a_rate_limit_is_429_with_retry_after(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.rate_limit("chat.postMessage", retry_after=7, count=1)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=dm.id, text="x")
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "7"
    assert caught.value.response.data["error"] == "ratelimited"
    server.rate_limit("chat.postMessage", retry_after=0)
    client.retry_handlers.append(AsyncRateLimitErrorRetryHandler())
    await client.chat_postMessage(channel=dm.id, text="x")
    assert len(server.calls_to("chat.postMessage")) == 3


async def test_a_rate_limit_can_come_as_200(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.rate_limit("chat.postMessage", 3, status=200)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=dm.id, text="x")
    assert caught.value.response.status_code == 200
    assert caught.value.response.data == {"ok": False, "error": "ratelimited"}
    await client.chat_postMessage(channel=dm.id, text="x")


async def test_calls_fail_as_scripted(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    server.fail_next("chat.postMessage", error="fatal_error", text="boom")
    await client.chat_postMessage(channel=dm.id, text="fine")
    assert await code(client.chat_postMessage(channel=dm.id, text="boom")) == "fatal_error"
    server.fail_next("chat.postMessage", html=True, status=502)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=dm.id, text="x")
    assert caught.value.response.status_code == 502
    assert [one.text for one in dm.messages] == ["fine"]


@pytest.mark.parametrize("acted", [False, True])
async def test_a_connection_is_cut_before_or_after_the_act(
    server: SlackServer, client: AsyncWebClient, dm: Conversation, acted: bool
) -> None:
    client.retry_handlers.clear()  # the SDK repeats a call whose connection is lost
    server.fail_next("chat.postMessage", drop=True, acted=acted)
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=dm.id, text="x")
    assert len(dm.messages) == acted


async def test_a_stalled_call_goes_on_when_released(
    server: SlackServer, client: AsyncWebClient, dm: Conversation
) -> None:
    fault = server.fail_next("chat.postMessage", stall=True)
    call = asyncio.create_task(client.chat_postMessage(channel=dm.id, text="x"))
    await server.wait_for_call("chat.postMessage")
    assert dm.messages == []
    fault.release()
    await call
    assert [one.text for one in dm.messages] == ["x"]


async def test_a_wait_that_fails_tells_what_is_there(server: SlackServer, dm: Conversation) -> None:
    dm.send("hello")
    with pytest.raises(AssertionError, match="hello"):
        await server.wait_for(lambda: False, timeout=0.01)


# ---- response_url ---------------------------------------------------------------------------


async def test_a_response_url_answers_five_times(
    server: SlackServer, client: AsyncWebClient, ana: User, dm: Conversation
) -> None:
    await client.chat_postMessage(channel=dm.id, text="q", blocks=[actions(button("Yes", "y"))])
    original = dm.from_bot[0]
    hook = AsyncWebhookClient(server.response_url(dm, ana, original))
    assert (await hook.send(text="seen", replace_original=False)).body == "ok"
    assert [one.text for one in dm.ephemerals(ana)] == ["seen"]
    await hook.send(text="to all", response_type="in_channel", replace_original=False)
    assert [one.text for one in dm.from_bot] == ["q", "to all"]
    await hook.send(text="done", replace_original=True)
    assert original.shown == "done"
    assert (await hook.send(text=" ")).status_code == 400
    await hook.send(delete_original=True)
    assert original not in dm.messages
    used = await hook.send(text="x")
    assert (used.status_code, "used_url" in used.body) == (404, True)


async def test_a_response_url_ends_after_half_an_hour(
    server: SlackServer, ana: User, dm: Conversation
) -> None:
    url = server.response_url(dm, ana, None)
    server.response_urls[url.rpartition("/")[2]].at -= 30 * 60 + 1
    answer = await AsyncWebhookClient(url).send(text="x")
    assert (answer.status_code, "expired_url" in answer.body) == (404, True)
    assert dm.ephemerals(ana) == []


async def test_a_download_fails_as_scripted(server: SlackServer, dm: Conversation) -> None:
    file = server.file("a b/ü.txt", b"hello")
    server.fail_next("files.download", html=True, status=503)
    headers = {"Authorization": f"Bearer {server.bot_token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.get(file.url) as answer:
            assert answer.status == 503
        async with session.get(file.json()["url_private_download"]) as answer:
            assert await answer.read() == b"hello"
    assert len(server.calls_to("files.download")) == 2


async def test_a_body_that_is_no_json_is_refused(server: SlackServer) -> None:
    headers = {"Authorization": f"Bearer {server.bot_token}", "Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{server.base_url}chat.postMessage", data=b"{") as answer,
    ):
        assert (await answer.json())["error"] == "invalid_json"
