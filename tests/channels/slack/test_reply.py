"""Replies: the preview, the final text, and what Slack may do to them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from channels.base import (
    Address,
    OutboundDocument,
    OutboundReply,
    ReplyPart,
    Resumed,
    StopControl,
)
from channels.errors import ChannelUnavailable, ReplyRefused, Uncertain, Unreachable
from channels.slack.channel import SlackChannel
from channels.slack.reply import ReplyTiming
from tests.channels.numbering import unnumbered
from tests.channels.slack.conftest import QUICK, make_channel
from tests.servers.slack import Conversation, Message, SlackServer

STOP = StopControl("Stop", "r1")


@pytest.fixture
def dm(server: SlackServer) -> Conversation:
    return server.dm(server.user("Ana"))


@pytest.fixture
def general(server: SlackServer) -> Conversation:
    return server.channel("general", members=[server.user("Ana")])


def here(conversation: Conversation, thread: Message | None = None) -> Address:
    world = conversation.world
    private = conversation.kind == "im"
    return Address("slack", world.team_id, conversation.id, thread.ts if thread else None, private)


def texts(conversation: Conversation) -> list[str]:
    return [one.shown for one in conversation.from_bot]


async def shown(conversation: Conversation) -> Message:
    """The preview, when it is there."""
    return await conversation.world.wait_for(
        lambda: next((one for one in conversation.from_bot if one.buttons), None)
    )


# ---- the preview ----------------------------------------------------------------------------------


async def test_the_answer_grows_in_one_message_that_can_be_stopped(
    channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    reply.show("Once upon")
    preview = await dm.wait_for_text("Once upon")
    assert [(b.text, b.action_id, b.value) for b in preview.buttons] == [("Stop", "stop", "r1")]
    reply.show(" a time")
    await dm.wait_for_text("Once upon a time")
    await reply.finish(OutboundReply("Once upon a time. **End.**"))
    assert texts(dm) == ["Once upon a time. **End.**"]
    assert dm.from_bot[0].ts == preview.ts
    assert preview.buttons == []


async def test_a_short_answer_is_posted_once(channel: SlackChannel, dm: Conversation) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    reply.show("Yes")
    await reply.finish(OutboundReply("Yes"))
    assert texts(dm) == ["Yes"]


async def test_the_stop_button_is_there_before_any_text(
    channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    preview = await shown(dm)
    assert preview.shown.startswith("…")
    reply.show("Now")
    await dm.wait_for_text("Now")
    await reply.finish(OutboundReply("Now"))
    assert len(dm.log) == 1


async def test_without_a_stop_button_nothing_is_shown_before_the_text(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None)
    await reply.finish(OutboundReply("a notice"))
    assert [call.method for call in server.calls] == ["chat.postMessage"]
    assert texts(dm) == ["a notice"]


async def test_in_a_channel_everything_is_in_the_thread(
    channel: SlackChannel, general: Conversation
) -> None:
    root = general.send("<@BOT> go")
    reply = channel.open_reply(here(general, root), reply_to=root.ts, stop=STOP)
    await shown(general)
    await reply.finish(OutboundReply("a" * 13_300, (OutboundDocument("a.txt", "x"),)))
    assert len(general.thread(root)) == 3
    assert general.from_bot == general.thread(root)


async def test_updates_are_counted_out_and_end_before_the_answer(
    server: SlackServer, dm: Conversation
) -> None:
    channel = make_channel(server, replying=replace(QUICK, interval_s=60))
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    reply.show("0")
    await dm.wait_for_text("0")
    for number in range(1, 1_000):
        reply.show(f" {number}")
    await reply.finish(OutboundReply("done"))
    reply.show("too late")
    assert [call.method for call in server.calls] == ["chat.postMessage", "chat.update"]
    assert texts(dm) == ["done"]
    await channel.aclose()


async def test_a_long_preview_stays_within_what_an_update_takes(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    for _ in range(300):
        reply.show("日本語 & <x> " * 10)
        await asyncio.sleep(0)
    await server.wait_for(lambda: len(dm.from_bot[0].shown) > 3_000)
    await reply.discard()
    refused = [call for call in server.calls_to("chat.update") if len(str(call.params)) > 30_000]
    assert refused == []


async def test_a_discarded_reply_leaves_nothing(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await reply.discard()
    other = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    other.show("half an")
    await dm.wait_for_text("half an")
    server.fail_next("chat.delete", error="internal_error")
    await other.discard()
    assert texts(dm) == []


async def test_discarding_never_raises(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    server.fail_next("chat.delete", error="cant_delete_message")
    await reply.discard()


async def test_previews_are_dropped_while_slack_asks_to_wait(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    server.rate_limit("chat.update", 0.2)
    for number in range(20):
        reply.show(f"{number} ")
        await asyncio.sleep(0)
    await server.wait_for_call("chat.update")
    await dm.wait_for_text("19")  # shown when the wait is over, without any new text
    assert len(server.calls_to("chat.update")) == 2
    await reply.finish(OutboundReply("end"))
    assert texts(dm) == ["end"]


@pytest.mark.parametrize(
    "fault",
    [{"error": "internal_error"}, {"html": True, "status": 503}, {"drop": True}],
    ids=["code", "html", "drop"],
)
async def test_a_failed_update_of_the_preview_is_tried_with_the_next_text(
    server: SlackServer, channel: SlackChannel, dm: Conversation, fault: dict[str, Any]
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    server.fail_next("chat.update", **fault)
    reply.show("a")
    await server.wait_for_call("chat.update")
    reply.show("b")
    await dm.wait_for_text("ab")
    await reply.finish(OutboundReply("abc"))
    assert texts(dm) == ["abc"]


async def test_a_preview_whose_answer_was_lost_is_found_again(
    server: SlackServer, channel: SlackChannel, dm: Conversation, general: Conversation
) -> None:
    for conversation in (dm, general):
        question = conversation.send("<@BOT> hi")
        thread = question if conversation is general else None
        server.fail_next("chat.postMessage", drop=True, acted=True)
        to = here(conversation, thread)
        reply = channel.open_reply(to, reply_to=question.ts, stop=STOP)
        reply.show("a")
        preview = await shown(conversation)
        reply.show("b")
        await reply.finish(OutboundReply("abc"))
        assert texts(conversation) == ["abc"]
        assert conversation.from_bot[0].ts == preview.ts
        assert preview.buttons == []


async def test_a_lost_preview_that_is_not_there_is_not_repeated(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.fail_next("chat.postMessage", drop=True)
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    reply.show("a")
    await server.wait_for_call("chat.postMessage")
    reply.show("b")
    await reply.finish(OutboundReply("abc"))
    assert texts(dm) == ["abc"]
    assert len(server.calls_to("chat.postMessage")) == 2


async def test_a_preview_that_hangs_does_not_hold_the_answer(
    server: SlackServer, dm: Conversation
) -> None:
    channel = make_channel(server, replying=replace(QUICK, frame_s=0.5))
    await channel.identify()  # so that a frame does not have to connect first
    for method in ("chat.postMessage", "chat.update"):
        reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
        if method == "chat.update":
            await shown(dm)
        server.fail_next(method, stall=True)
        calls = len(server.calls_to(method))
        reply.show("a")
        await server.wait_for_call(method, calls + 1)
        await reply.finish(OutboundReply("the answer"))
    assert texts(dm) == ["the answer", "the answer"]
    await channel.aclose()


# ---- what an earlier process has left -------------------------------------------------------------


async def test_a_preview_that_cannot_be_looked_for_now_is_looked_for_again(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    server.fail_next("conversations.history", html=True, status=503)
    other = make_channel(server)
    reply = other.open_reply(here(dm), reply_to=None, stop=STOP, resumed=Resumed())
    await reply.finish(OutboundReply("all of it"))
    await server.wait_for(lambda: texts(dm) == ["all of it"])
    await other.aclose()


async def test_a_first_part_beside_a_preview_that_is_gone_is_found_by_its_button(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    preview = await shown(dm)
    dm.delete(preview)
    bodies = await reply.compose(OutboundReply("a" * 3_700 + "\n\n" + "b" * 11_000))
    stalled = server.fail_next("chat.postMessage", stall=True, text="bbb")
    delivering = asyncio.create_task(reply.deliver([ReplyPart(body) for body in bodies]))
    await server.wait_for(lambda: stalled.used)
    delivering.cancel()
    await asyncio.gather(delivering, return_exceptions=True)
    first = await shown(dm)
    other = make_channel(server)
    resumed = other.open_reply(here(dm), reply_to=None, stop=STOP, resumed=Resumed(preview.ts))
    parts = [ReplyPart(body, "again") for body in bodies]
    assert (await resumed.deliver(parts, note="Again?")).complete
    assert [one.shown.replace("Again?", "").strip()[0] for one in dm.from_bot] == ["a", "b"]
    assert dm.from_bot[0].ts == first.ts
    assert not [one for one in dm.from_bot if one.buttons]
    await other.aclose()


# ---- the answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3_001, 4_001, 12_001, 13_300, 40_001])
@pytest.mark.parametrize("previewed", [True, False])
@pytest.mark.parametrize("letter", ["a", "日", "word "])
async def test_an_answer_of_any_length_arrives_whole_and_in_order(
    channel: SlackChannel, dm: Conversation, size: int, previewed: bool, letter: str
) -> None:
    markdown = (letter * size)[: size - 4].rstrip() + " end"
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP if previewed else None)
    if previewed:
        await shown(dm)
    await reply.finish(OutboundReply(markdown))
    arrived = unnumbered(texts(dm))
    assert "".join("".join(arrived).split()) == "".join(markdown.split())
    assert arrived[-1].endswith("end")
    assert not [one for one in dm.from_bot if one.buttons]


@pytest.mark.parametrize("empty", ["", "\n", "  "])
@pytest.mark.parametrize("previewed", [True, False])
async def test_an_empty_answer_is_not_posted(
    channel: SlackChannel, dm: Conversation, empty: str, previewed: bool
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP if previewed else None)
    if previewed:
        await shown(dm)
    await reply.finish(OutboundReply(empty))
    assert texts(dm) == []


@pytest.mark.parametrize("code", ["invalid_blocks", "msg_too_long", "msg_blocks_too_long"])
@pytest.mark.parametrize("plain", [True, False])
async def test_a_final_text_that_no_update_takes_is_sent_as_a_new_message(
    server: SlackServer, channel: SlackChannel, dm: Conversation, code: str, plain: bool
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    server.fail_next("chat.update", error=code)
    if plain:
        server.fail_next("chat.postMessage", error=code)
    await reply.finish(OutboundReply("**a** <b> & c"))
    assert texts(dm) == ["**a** <b> & c"]
    assert [bool(one.blocks) for one in dm.from_bot] == [not plain]


async def test_a_refused_new_message_is_sent_once_more_as_plain_text(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.fail_next("chat.postMessage", error="invalid_blocks")
    await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("**a**"))
    assert texts(dm) == ["**a**"]


async def test_what_is_refused_also_as_plain_text_is_reported_and_the_rest_still_sent(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.fail_next("chat.postMessage", error="invalid_arguments", count=2)
    reply = channel.open_reply(here(dm), reply_to=None)
    with pytest.raises(ReplyRefused, match="invalid_arguments"):
        await reply.finish(OutboundReply("a" * 11_700 + "\n\n" + "b" * 200 + " rest"))
    assert len(texts(dm)) == 1
    assert texts(dm)[0].endswith("rest\n\n2/2")


@pytest.mark.parametrize("code", ["message_not_found", "edit_window_closed", "cant_update_message"])
async def test_a_preview_that_is_gone_is_replaced_by_a_new_message(
    server: SlackServer, channel: SlackChannel, dm: Conversation, code: str
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    preview = await shown(dm)
    if code == "message_not_found":
        dm.delete(preview)
    else:
        server.fail_next("chat.update", error=code)
    await reply.finish(OutboundReply("all of it"))
    assert texts(dm)[-1] == "all of it"


@pytest.mark.parametrize("status", [429, 200])
@pytest.mark.parametrize("previewed", [True, False])
async def test_an_answer_waits_as_long_as_slack_asks_and_goes_on(
    server: SlackServer, channel: SlackChannel, dm: Conversation, status: int, previewed: bool
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP if previewed else None)
    if previewed:
        await shown(dm)
    method = "chat.update" if previewed else "chat.postMessage"
    before = len(server.calls_to(method))
    server.rate_limit(method, 0.1, 2, status=status)
    await reply.finish(OutboundReply("the answer"))
    calls = server.calls_to(method)[before:]
    assert len(calls) == 3
    assert all(b.at - a.at > 0.09 for a, b in pairwise(calls))
    assert texts(dm) == ["the answer"]


async def test_a_wait_of_minutes_is_left_to_a_later_delivery(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.rate_limit("chat.postMessage", 600)
    with pytest.raises(ChannelUnavailable) as raised:
        await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("a"))
    assert raised.value.retry_after_s == 600


async def test_waiting_in_one_conversation_holds_up_no_other(
    server: SlackServer, channel: SlackChannel, dm: Conversation, general: Conversation
) -> None:
    server.rate_limit("chat.postMessage", 30)
    slow = asyncio.create_task(
        channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("slow"))
    )
    await server.wait_for_call("chat.postMessage")
    root = general.send("<@BOT>")
    await channel.open_reply(here(general, root), reply_to=None).finish(OutboundReply("quick"))
    assert texts(general) == ["quick"]
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


@pytest.mark.parametrize(
    "code",
    ["channel_not_found", "is_archived", "not_in_channel", "account_inactive", "thread_not_found"],
)
async def test_where_the_bot_may_not_write_the_chat_is_unreachable(
    server: SlackServer, channel: SlackChannel, dm: Conversation, code: str
) -> None:
    server.fail_next("chat.postMessage", error=code, count=9)
    with pytest.raises(Unreachable, match=code):
        await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("a"))
    assert len(server.calls_to("chat.postMessage")) == 1


async def test_a_missing_scope_is_named(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.scopes.remove("chat:write")
    with pytest.raises(ReplyRefused, match="chat:write"):
        await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("a"))


@pytest.mark.parametrize(
    "fault",
    [{"drop": True}, {"drop": True, "acted": True}, {"html": True, "status": 502}],
    ids=["lost", "arrived", "html"],
)
async def test_a_new_message_without_a_clear_answer_is_not_sent_again(
    server: SlackServer, channel: SlackChannel, dm: Conversation, fault: dict[str, Any]
) -> None:
    server.fail_next("chat.postMessage", **fault)
    with pytest.raises(Uncertain):
        await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("a"))
    assert len(server.calls_to("chat.postMessage")) == 1


async def test_what_a_proxy_has_turned_away_is_sent_again_and_what_is_too_large_is_not(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.fail_next("chat.postMessage", status=404, html=True)
    await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("once"))
    server.fail_next("chat.postMessage", status=413, html=True, count=2)  # formatted, and plain
    with pytest.raises(ReplyRefused):
        await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("too much"))
    assert texts(dm) == ["once"]


async def test_an_update_without_a_clear_answer_is_repeated(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    server.fail_next("chat.update", drop=True)
    server.fail_next("chat.update", html=True)
    await reply.finish(OutboundReply("the answer"))
    assert texts(dm) == ["the answer"]


async def test_a_delivery_that_stopped_half_way_goes_on_where_it_was(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None)
    answer = OutboundReply("one " * 2_900 + "\n\n" + "two " * 2_900 + "\n\nend")
    server.fail_next("chat.postMessage", error="service_unavailable", count=3, text="two")
    with pytest.raises(ChannelUnavailable):
        await reply.finish(answer)
    assert len(texts(dm)) == 1
    await reply.finish(answer)
    assert " ".join(unnumbered(texts(dm))).split() == answer.markdown.split()


async def test_documents_follow_the_text(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    documents = (OutboundDocument("a.csv", "x;y\n1;é\n"), OutboundDocument("empty.txt", ""))
    await channel.open_reply(here(dm), reply_to=None).finish(OutboundReply("see", documents))
    assert [one.shown for one in dm.from_bot] == ["see", ""]
    (file,) = dm.from_bot[1].files
    assert (file.name, file.content.decode()) == ("a.csv", "x;y\n1;é\n")


async def test_documents_without_a_text_take_the_previews_place(
    channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await shown(dm)
    await reply.finish(OutboundReply("", (OutboundDocument("a.txt", "x"),)))
    assert [len(one.files) for one in dm.from_bot] == [1]


async def test_a_missing_scope_for_documents_is_named(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.scopes.remove("files:write")
    reply = channel.open_reply(here(dm), reply_to=None)
    with pytest.raises(ReplyRefused, match="files:write"):
        await reply.finish(OutboundReply("see", (OutboundDocument("a.txt", "x"),)))
    assert texts(dm) == ["see"]


async def test_no_address_in_an_answer_is_looked_up(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    await channel.open_reply(here(dm), reply_to=None).finish(
        OutboundReply("https://a.example/?k=1")
    )
    (call,) = server.calls_to("chat.postMessage")
    assert (call.params["unfurl_links"], call.params["unfurl_media"]) == (False, False)


async def test_twenty_chats_at_once_get_their_own_answers(
    server: SlackServer, channel: SlackChannel
) -> None:
    chats = [server.dm(server.user(f"P{n}")) for n in range(20)]

    async def answer(number: int, chat: Conversation) -> None:
        reply = channel.open_reply(
            here(chat), reply_to=None, stop=StopControl("Stop", f"r{number}")
        )
        for _ in range(5):
            reply.show(f"tag{number} ")
            await asyncio.sleep(0.005)
        await reply.finish(OutboundReply(f"tag{number} end"))

    await asyncio.gather(*(answer(number, chat) for number, chat in enumerate(chats)))
    assert [texts(chat) for chat in chats] == [[f"tag{n} end"] for n in range(20)]
    seen = [
        {word for one in chat.log for text in one.history for word in text.split()}
        for chat in chats
    ]
    for number, words in enumerate(seen):
        assert {w for w in words if w.startswith("tag")} == {f"tag{number}"}


def test_the_default_pace_is_below_slacks_limit() -> None:
    assert ReplyTiming().interval_s >= 60 / 50
