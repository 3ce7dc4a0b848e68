"""Replies as people see them, through PTB and the local Bot API server."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import (
    Address,
    Button,
    OutboundDocument,
    OutboundReply,
    ReplyPart,
    StopControl,
)
from channels.errors import ChannelUnavailable, NotStored, ReplyRefused, Uncertain, Unreachable
from channels.parts import NUMBER_ROOM
from channels.telegram import deliver, limiter
from channels.telegram import reply as reply_module
from channels.telegram.channel import TelegramChannel
from channels.telegram.compose import MAX_UNITS
from channels.telegram.reply import TelegramReply
from tests.channels.numbering import unnumbered
from tests.channels.telegram.conftest import Inbox, make_channel
from tests.contracts.journals import Diary
from tests.servers.telegram import Chat, Message, TelegramServer

STOP = StopControl("Stop", "run-1")
SIZE = MAX_UNITS - NUMBER_ROOM  # of a full text of several


@pytest.fixture
def chat(server: TelegramServer) -> Chat:
    return server.private(server.user("Ana"))


@pytest.fixture
def group(server: TelegramServer) -> Chat:
    return server.group("Team", members=[server.user("Bob")], forum=True)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "_AGAIN_S", (0.01,) * 20)
    monkeypatch.setattr(limiter, "_CHAT_PERIOD_S", 0.5)
    monkeypatch.setattr(reply_module, "_STOP_AFTER_S", 0.3)


def place(chat: Chat, thread: int | None = None) -> Address:
    topic = None if thread is None else str(thread)
    return Address("telegram", "123456", str(chat.id), topic, chat.kind == "private")


def open_reply(
    channel: TelegramChannel,
    chat: Chat,
    *,
    to: Message | None = None,
    stop: StopControl | None = STOP,
    thread: int | None = None,
) -> TelegramReply:
    reply_to = None if to is None else str(to.id)
    return channel.open_reply(place(chat, thread), reply_to=reply_to, stop=stop)


async def send(channel: TelegramChannel, chat: Chat, markdown: str) -> None:
    await open_reply(channel, chat).finish(OutboundReply(markdown))


# ---- the way of a reply -------------------------------------------------------------------------


async def test_typing_is_shown_at_once(channel: TelegramChannel, chat: Chat) -> None:
    reply = open_reply(channel, chat)
    await chat.world.wait_for(lambda: chat.actions)
    assert chat.actions[0][1] == "typing"
    await reply.discard()
    assert chat.texts == []


async def test_a_preview_with_a_stop_button_becomes_the_answer(
    channel: TelegramChannel, chat: Chat
) -> None:
    question = chat.send("hi")
    reply = open_reply(channel, chat, to=question)
    reply.show("Hel")
    preview = await chat.wait_for_button("Stop")
    assert (preview.text, preview.reply_to) == ("Hel", question.id)
    reply.show("lo **wor")
    await chat.wait_for_text("Hello **wor")
    await reply.finish(OutboundReply("Hello **world**"))
    assert preview.history == ["Hel", "Hello **wor", "Hello world"]
    assert preview.formatted == [("bold", "world")]
    assert (preview.buttons, len(chat.bot_messages)) == ([], 1)


async def test_the_stop_button_is_there_before_any_text_comes(
    channel: TelegramChannel, chat: Chat, inbox: Inbox, listening: asyncio.Task[None]
) -> None:
    reply = open_reply(channel, chat)
    preview = await chat.wait_for_button("Stop")
    assert preview.text == "…"
    pressed = chat.press(preview, "Stop")
    (message,) = await inbox.wait_for(1)
    assert message.press is not None
    assert (message.press.action, message.press.value) == ("stop", "run-1")
    assert message.press.message_id == str(preview.id)
    await channel.answer_press(message, "Stopping")
    assert pressed.answer_text == "Stopping"
    await reply.discard()
    assert chat.bot_messages == []


async def test_words_and_button_follow_the_bare_sign_at_once(
    channel: TelegramChannel, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a journal keeps its id first, and though "typing" was shown before."""
    monkeypatch.setattr(reply_module, "_STOP_AFTER_S", 60.0)
    monkeypatch.setattr(reply_module, "_PRIVATE_INTERVAL_S", 60.0)  # nothing that is dropped comes
    reply = channel.open_reply(place(chat), reply_to=None, stop=STOP, journal=Diary())
    await chat.world.wait_for(lambda: chat.actions)
    reply.show("Hello")
    preview = await chat.wait_for_button("Stop")
    assert preview.history == ["…", "Hello"]
    await reply.discard()


async def test_a_preview_that_nobody_else_could_find_stays_a_bare_sign(
    channel: TelegramChannel, chat: Chat
) -> None:
    """Else its words and button would stay for ever after a crash, beside the answer."""
    journal = Diary()
    journal.unkept = 1
    reply = channel.open_reply(place(chat), reply_to=None, stop=STOP, journal=journal)
    reply.show("Hello")
    preview = await chat.wait_for_button("Stop")
    assert (preview.history, journal.preview_id) == (["…", "Hello"], str(preview.id))

    other = Diary()
    other.unkept = 10**6
    lost = channel.open_reply(place(chat), reply_to=None, stop=STOP, journal=other)
    lost.show("Hello")
    sign = await chat.wait_for_text("…")
    parts = other.composed(await lost.compose(OutboundReply("Hello there.")))
    with pytest.raises(NotStored):
        await lost.deliver(parts)
    assert sign.history == ["…"]
    other.unkept = 0
    await lost.deliver(parts)
    assert sign.history == ["…", "Hello there."]
    await reply.discard()


async def test_text_takes_the_place_of_the_empty_preview(
    channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    await chat.wait_for_text("…")
    reply.show("Hello")
    preview = await chat.wait_for_text("Hello")
    assert preview.history == ["…", "Hello"]
    await reply.finish(OutboundReply("Hello"))
    assert chat.texts == ["Hello"]


async def test_without_a_stop_control_nothing_is_shown_before_the_text(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat, stop=None)
    reply.show("Hello")
    preview = await chat.wait_for_text("Hello")
    assert preview.buttons == []
    await reply.finish(OutboundReply("Hello"))  # "message is not modified" is success
    assert chat.texts == ["Hello"]
    assert len(server.calls_to("editMessageText")) == 1


async def test_an_answer_without_a_preview_is_one_message(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    question = chat.send("hi")
    reply = open_reply(channel, chat, to=question)
    await reply.finish(OutboundReply("a_b*c `x` <b>", silent=True))
    (message,) = chat.bot_messages
    assert (message.text, message.reply_to) == ("a_b*c x <b>", question.id)
    assert message.formatted == [("code", "x")]
    (call,) = server.calls_to("sendMessage")
    assert call.params["disable_notification"] in ("true", "True", True)


async def test_frames_that_look_alike_are_not_sent(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    for piece in ("Analysis", "\n", "\n"):
        reply.show(piece)
        await asyncio.sleep(0)
    await chat.wait_for_text("Analysis")
    reply.show("rest")
    await chat.wait_for_text("rest")
    await reply.finish(OutboundReply("Analysis\n\nrest"))
    assert chat.bot_messages[0].history == ["Analysis", "Analysis\n\nrest"]


async def test_a_long_answer_comes_in_order_and_only_its_first_part_replies(
    channel: TelegramChannel, chat: Chat
) -> None:
    question = chat.send("hi")
    reply = open_reply(channel, chat, to=question)
    reply.show("x" * 9000)
    await chat.wait_for_button("Stop")
    await reply.finish(OutboundReply("x" * SIZE + "y" * SIZE + "z" * 808))
    assert unnumbered(chat.texts) == ["x" * SIZE, "y" * SIZE, "z" * 808]
    assert [message.reply_to for message in chat.bot_messages] == [question.id, None, None]
    assert [message.buttons for message in chat.bot_messages] == [[], [], []]


async def test_documents_come_after_the_text(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    document = OutboundDocument("notes.md", "# Ünïcode\n")
    await reply.finish(OutboundReply("Here it is", (document,)))
    text, sent = chat.bot_messages
    assert text.text == "Here it is"
    assert sent.data["document"]["file_name"] == "notes.md"
    assert server.files.get(sent.data["document"]["file_id"]).content == "# Ünïcode\n".encode()


@pytest.mark.parametrize("blank", ["", "\n \t"])
async def test_a_blank_answer_is_not_sent_and_its_preview_goes(
    channel: TelegramChannel, chat: Chat, blank: str
) -> None:
    reply = open_reply(channel, chat)
    reply.show("thinking")
    await chat.wait_for_text("thinking")
    await reply.finish(OutboundReply(blank))
    assert chat.bot_messages == []


@pytest.mark.parametrize("invisible", ["\u200b\n", "\u2063", "\ufeff", "\u2800", "\ufffc", "\x07"])
async def test_an_answer_that_nobody_would_see_is_spelled_out(
    channel: TelegramChannel, chat: Chat, invisible: str
) -> None:
    reply = open_reply(channel, chat)
    reply.show(invisible)
    preview = await chat.wait_for_button("Stop")
    delivered = await reply.finish(OutboundReply(invisible))
    assert (delivered.sent, delivered.of) == (1, 1)
    assert preview.history == ["…", f"U+{ord(invisible[0]):04X}"]


async def test_discard_removes_the_preview_and_shows_nothing_more(
    channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    reply.show("partial")
    await chat.wait_for_text("partial")
    await reply.discard()
    reply.show("more")
    assert chat.bot_messages == []


async def test_discard_never_raises(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    reply.show("partial")
    await chat.wait_for_text("partial")
    server.fail_next("deleteMessage", status=400, description="Bad Request: something odd")
    await reply.discard()


async def test_a_request_id_that_no_button_can_hold_is_a_fault_of_ours(
    channel: TelegramChannel, chat: Chat
) -> None:
    with pytest.raises(ValueError, match="64 bytes"):
        open_reply(channel, chat, stop=StopControl("Stop", "x" * 60))


# ---- buttons ------------------------------------------------------------------------------------

ASK = (Button("Ask them now", "ask", "m:17"), Button("停止", "stop", "run:2"))


@pytest.mark.parametrize("with_preview", [True, False])
async def test_short_buttons_stand_beside_each_other_under_the_answer_and_their_presses_come_back(
    channel: TelegramChannel,
    chat: Chat,
    inbox: Inbox,
    listening: asyncio.Task[None],
    with_preview: bool,
) -> None:
    reply = open_reply(channel, chat)
    if with_preview:
        await chat.wait_for_button("Stop")
    await reply.finish(OutboundReply("Dropped: 2", buttons=ASK))
    (message,) = chat.bot_messages
    rows = message.data["reply_markup"]["inline_keyboard"]
    assert [[button["text"] for button in row] for row in rows] == [["Ask them now", "停止"]]
    chat.press(message, "Ask them now")
    chat.press(message, "停止")
    presses = [got.press for got in await inbox.wait_for(2)]
    assert [(press.action, press.value) for press in presses if press is not None] == [
        ("ask", "m:17"),
        ("stop", "run:2"),
    ]
    assert message.buttons == ["Ask them now", "停止"]


async def test_buttons_stand_under_the_last_of_several_parts(
    channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    await reply.finish(OutboundReply("x" * SIZE + "y" * 10, buttons=ASK[:1]))
    assert [message.buttons for message in chat.bot_messages] == [[], ["Ask them now"]]


async def test_buttons_stand_under_the_last_document(channel: TelegramChannel, chat: Chat) -> None:
    documents = (OutboundDocument("a.txt", "a"), OutboundDocument("b.txt", "b"))
    await open_reply(channel, chat).finish(OutboundReply("", documents, ASK[:1]))
    assert [message.buttons for message in chat.bot_messages] == [[], ["Ask them now"]]


async def test_buttons_stay_when_the_formatting_is_refused(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    server.fail_next("sendMessage", status=400, description="Bad Request: can't parse entities")
    await open_reply(channel, chat).finish(OutboundReply("**bold**", buttons=ASK[:1]))
    assert [message.buttons for message in chat.bot_messages] == [["Ask them now"]]


@pytest.mark.parametrize(
    "button", [Button("x", "ask", "y" * 61), Button("x", "ask", "é" * 31), Button("x", "a:b", "c")]
)
async def test_a_button_that_telegram_cannot_hold_is_a_fault_of_ours(
    channel: TelegramChannel, chat: Chat, button: Button
) -> None:
    with pytest.raises(ValueError, match="a button"):
        await open_reply(channel, chat).finish(OutboundReply("hello", buttons=(button,)))


# ---- topics -------------------------------------------------------------------------------------


async def test_a_reply_goes_to_its_topic(channel: TelegramChannel, group: Chat) -> None:
    topic = group.open_topic("Plans")
    question = group.send("/ask hi", topic=topic)
    reply = open_reply(channel, group, to=question, thread=topic)
    await group.world.wait_for(lambda: group.actions)
    assert group.actions[0][2] == topic
    reply.show("Hello")
    preview = await group.wait_for_text("Hello")
    assert preview.thread == topic
    await reply.finish(OutboundReply("Hello!"))
    assert group.texts == ["Hello!"]


async def test_a_topic_that_is_gone_is_left_out_in_the_same_chat(
    channel: TelegramChannel, group: Chat
) -> None:
    topic = group.open_topic("Plans")
    group.delete_topic(topic)
    await open_reply(channel, group, thread=topic).finish(OutboundReply("Hello"))
    (message,) = group.bot_messages
    assert (message.text, message.thread) == ("Hello", None)


async def test_a_group_that_has_moved_is_followed(
    server: TelegramServer, channel: TelegramChannel
) -> None:
    old = server.group("Team", members=[server.user("Bob")], basic=True)
    new = old.migrate()
    await open_reply(channel, old).finish(OutboundReply("Hello"))
    await server.wait_for(lambda: new.bot_messages)
    assert [message.text for message in new.bot_messages] == ["Hello"]


# ---- previews that fail -------------------------------------------------------------------------


async def test_a_flood_on_previews_never_leads_to_a_second_message(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    reply.show("one ")
    await chat.wait_for_text("one")
    server.flood(chat, retry_after=1, count=1)
    reply.show("two ")
    await server.wait_for_call("editMessageText")
    reply.show("three")
    await chat.wait_for_text("one two three")  # without any new text the frame is tried again
    await reply.finish(OutboundReply("one two three four"))
    assert chat.texts == ["one two three four"]
    assert len(server.calls_to("sendMessage")) == 1


async def test_a_flood_on_the_final_edit_leaves_one_message(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    reply.show("partial")
    await chat.wait_for_text("partial")
    server.flood(chat, retry_after=1, count=1)
    await reply.finish(OutboundReply("whole"))
    assert chat.texts == ["whole"]


async def test_a_preview_of_unknown_fate_is_not_sent_again(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    server.fail_next("sendMessage", drop=True, acted=True)
    reply = open_reply(channel, chat)
    reply.show("partial")
    await chat.wait_for_text("partial")
    reply.show(" and more")
    await reply.finish(OutboundReply("whole"))
    assert chat.texts == ["partial", "whole"]


@pytest.mark.parametrize("fault", ["deleted", "not editable"])
async def test_a_preview_that_cannot_be_edited_is_followed_by_a_new_message(
    channel: TelegramChannel, chat: Chat, fault: str
) -> None:
    question = chat.send("hi")
    reply = open_reply(channel, chat, to=question)
    reply.show("partial")
    preview = await chat.wait_for_text("partial")
    if fault == "deleted":
        chat.delete(preview)
    preview.editable = False
    await reply.finish(OutboundReply("whole"))
    last = chat.last
    assert last is not None
    assert (last.text, last.reply_to) == ("whole", question.id)


async def test_a_blocked_bot_stops_showing(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    chat.block()
    reply.show("partial")
    await server.wait_for_call("sendMessage")
    reply.show("more")
    with pytest.raises(Unreachable):
        await reply.finish(OutboundReply("whole"))
    assert len(server.calls_to("sendMessage")) == 2


# ---- answers that fail --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", [{"drop": True, "acted": True}, {"reset": True, "acted": True}, {"status": 502}]
)
async def test_a_new_message_of_unknown_fate_is_never_sent_again(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, fault: dict[str, object]
) -> None:
    server.fail_next("sendMessage", **fault)  # type: ignore[arg-type]
    with pytest.raises(Uncertain) as caught:
        await open_reply(channel, chat).finish(OutboundReply("whole"))
    assert len(server.calls_to("sendMessage")) == 1
    assert server.token not in repr(caught.value)


async def test_parts_after_one_of_unknown_fate_are_still_sent(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    server.fail_next("sendMessage", drop=True, acted=True, text="y")
    with pytest.raises(Uncertain):
        await send(channel, chat, "x" * SIZE + "y" * SIZE + "z")
    assert [text[0] for text in chat.texts] == ["x", "y", "z"]


async def test_an_edit_of_unknown_fate_is_repeated(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    reply = open_reply(channel, chat)
    reply.show("partial")
    await chat.wait_for_text("partial")
    server.fail_next("editMessageText", drop=True, acted=True)
    server.fail_next("editMessageText", drop=True)
    await reply.finish(OutboundReply("whole"))
    assert chat.texts == ["whole"]


async def test_a_message_that_never_left_is_sent_once_when_telegram_is_back(
    server: TelegramServer,
    channel: TelegramChannel,
    chat: Chat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliver, "_AGAIN_S", (0.02,) * 500)
    await server.stop()
    finishing = asyncio.create_task(open_reply(channel, chat).finish(OutboundReply("whole")))
    await asyncio.sleep(0)
    await server.start()
    await finishing
    assert chat.texts == ["whole"]


async def test_finishing_again_after_an_outage_goes_on_with_what_is_missing(
    server: TelegramServer,
    channel: TelegramChannel,
    chat: Chat,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliver, "_AGAIN_S", (0.01,))
    reply = open_reply(channel, chat)
    answer = OutboundReply("x" * SIZE + "y" * SIZE + "z")
    flooded = server.fail_next("sendMessage", status=429, text="z")  # for a second
    finishing = asyncio.create_task(reply.finish(answer))
    await server.wait_for(lambda: flooded.used)
    await server.stop()
    with pytest.raises(ChannelUnavailable):
        await finishing
    await server.start()
    await reply.finish(answer)
    assert [text[0] for text in chat.texts] == ["x", "y", "z"]


async def test_refused_formatting_is_sent_once_as_plain_text(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    server.fail_next("sendMessage", status=400, description="Bad Request: can't parse entities")
    await send(channel, chat, "**bold** and <b>")
    (message,) = chat.bot_messages
    assert (message.text, message.entities) == ("bold and <b>", [])


async def test_a_reply_that_is_refused_twice_is_reported(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    server.fail_next("sendMessage", status=400, description="Bad Request: odd", count=2)
    with pytest.raises(ReplyRefused, match="Odd"):
        await send(channel, chat, "**bold**")
    assert len(server.calls_to("sendMessage")) == 2


async def test_a_blocked_chat_is_unreachable(channel: TelegramChannel, chat: Chat) -> None:
    chat.block()
    with pytest.raises(Unreachable):
        await send(channel, chat, "hello")


async def test_a_group_without_the_bot_is_unreachable(
    channel: TelegramChannel, group: Chat
) -> None:
    for leave in (group.remove_bot, group.bot_leaves, group.restrict_bot):
        leave()
        with pytest.raises(Unreachable):
            await send(channel, group, "hello")


async def test_a_chat_that_is_unknown_is_unreachable(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    del server.chats[chat.id]
    with pytest.raises(Unreachable):
        await send(channel, chat, "hello")


async def test_a_cancelled_answer_sends_no_further_part(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    stalled = server.fail_next("sendMessage", stall=True, text="y")
    finishing = asyncio.create_task(send(channel, chat, "x" * SIZE + "y" * SIZE + "z"))
    await server.wait_for(lambda: stalled.used)
    finishing.cancel()
    await asyncio.gather(finishing, return_exceptions=True)
    assert [call.params["text"][0] for call in server.calls_to("sendMessage")] == ["x", "y"]


# ---- what may have arrived ----------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True])
async def test_a_note_without_room_comes_once_before_its_part_whatever_becomes_of_it(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, lost: bool
) -> None:
    sink = open_reply(channel, chat, stop=None)
    (body,) = await sink.compose(OutboundReply("x" * 4_090))
    if lost:
        server.fail_next("sendMessage", drop=True, text="Again?")
    server.fail_next("sendMessage", status=401, description="Unauthorized", text="xxx")
    part = ReplyPart(body, "again")
    with pytest.raises(ChannelUnavailable):
        await sink.deliver([part], note="Again?")
    assert (await sink.deliver([part], note="Again?")).complete
    assert chat.texts == ["Again?"] * (not lost) + ["x" * 4_090]


@pytest.mark.parametrize("status", [302, 400, 403, 404, 408, 409])
async def test_what_a_proxy_has_turned_away_is_sent_later(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, status: int
) -> None:
    server.fail_next("sendMessage", status=status, html=True)
    await open_reply(channel, chat, stop=None).finish(OutboundReply("once"))
    assert chat.texts == ["once"]


async def test_what_is_too_large_has_certainly_not_arrived(
    server: TelegramServer, channel: TelegramChannel, chat: Chat
) -> None:
    server.fail_next("sendMessage", status=413, html=True)
    with pytest.raises(ReplyRefused):
        await open_reply(channel, chat, stop=None).finish(OutboundReply("too much"))
    assert chat.texts == []


# ---- the end ------------------------------------------------------------------------------------


async def test_closing_ends_what_is_under_way(server: TelegramServer, chat: Chat) -> None:
    channel = make_channel(server)
    open_reply(channel, chat, stop=None)
    await chat.world.wait_for(lambda: chat.actions)
    await channel.aclose()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "typing"]
