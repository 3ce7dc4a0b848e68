"""An answer of several parts that is stopped in between, and the Stop button until then."""

from __future__ import annotations

import asyncio

import pytest

from channels.base import Address, Delivered, OutboundDocument, OutboundReply, StopControl
from channels.errors import ChannelUnavailable, Uncertain
from channels.parts import NUMBER_ROOM
from channels.telegram import deliver
from channels.telegram.channel import TelegramChannel
from channels.telegram.compose import MAX_UNITS
from channels.telegram.reply import TelegramReply
from tests.servers.telegram import Chat, Fault, TelegramServer

SIZE = MAX_UNITS - NUMBER_ROOM  # of a full text of several
FIVE = OutboundReply("".join(letter * SIZE for letter in "abcde"))
TWO = OutboundReply("a" * SIZE + "b" * SIZE)
STOP = StopControl("Stop", "run-1")


@pytest.fixture
def chat(server: TelegramServer) -> Chat:
    return server.private(server.user("Ana"))


@pytest.fixture
async def reply(channel: TelegramChannel, chat: Chat) -> TelegramReply:
    to = Address("telegram", "123456", str(chat.id))
    return channel.open_reply(to, reply_to=None, stop=STOP)


async def previewed(chat: Chat, reply: TelegramReply) -> None:
    reply.show("a")
    await chat.wait_for_button("Stop")


def flood(server: TelegramServer, text: str, *, seconds: int) -> Fault:
    wait = {"retry_after": seconds}
    return server.fail_next("sendMessage", status=429, parameters=wait, text=text)


def letters(chat: Chat) -> str:
    return "".join(text[:1] for text in chat.texts)


@pytest.mark.parametrize("with_preview", [True, False])
async def test_an_answer_that_a_flood_holds_up_ends_where_it_is(
    server: TelegramServer, chat: Chat, reply: TelegramReply, with_preview: bool
) -> None:
    if with_preview:
        await previewed(chat, reply)
    flooded = flood(server, "c", seconds=300)
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: flooded.used)
    assert [message.buttons for message in chat.bot_messages] == [["Stop"], []]
    reply.halt()
    assert await finishing == Delivered(2, 5)
    assert letters(chat) == "ab"


async def test_an_answer_that_waits_for_its_turn_ends_where_it_is(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    finishing = asyncio.create_task(reply.finish(FIVE))
    await chat.wait_for_text("c")
    reply.halt()  # the fourth of a burst has to wait a second
    assert await finishing == Delivered(3, 5)
    first = chat.bot_messages[0]
    await server.wait_for(lambda: not first.buttons)
    assert letters(chat) == "abc"


async def test_after_a_halt_the_button_goes_as_soon_as_the_flood_is_over(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    flooded = flood(server, "b", seconds=1)
    finishing = asyncio.create_task(reply.finish(TWO))
    await server.wait_for(lambda: flooded.used)
    reply.halt()
    assert await finishing == Delivered(1, 2)
    await server.wait_for(lambda: not chat.bot_messages[0].buttons)
    assert letters(chat) == "a"


async def test_a_part_that_is_under_way_is_finished(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    stalled = server.fail_next("sendMessage", stall=True, text="b")
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: stalled.used)
    reply.halt()
    await asyncio.sleep(0)
    assert not finishing.done()
    stalled.release()
    assert await finishing == Delivered(2, 5)
    assert letters(chat) == "ab"


async def test_a_preview_that_becomes_the_first_part_counts(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    await previewed(chat, reply)
    stalled = server.fail_next("editMessageText", stall=True)
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: stalled.used)
    reply.halt()
    stalled.release()
    assert await finishing == Delivered(1, 5)
    await server.wait_for(lambda: not chat.bot_messages[0].buttons)
    assert chat.texts == ["a" * SIZE + "\n\n1/5"]


async def test_a_pause_before_a_repetition_ends_at_once(
    server: TelegramServer, chat: Chat, reply: TelegramReply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "_AGAIN_S", (600.0,))
    await previewed(chat, reply)
    refused = server.fail_next("editMessageText", status=502)
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: refused.used)
    reply.halt()
    assert await finishing == Delivered(0, 5)
    assert chat.texts == ["a"]


async def test_a_refused_part_is_not_sent_as_plain_text_any_more(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    refusal = "Bad Request: can't parse entities"
    refused = server.fail_next("sendMessage", status=400, description=refusal, text="b")
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: refused.used)
    reply.halt()
    assert await finishing == Delivered(1, 5)
    assert len(server.calls_to("sendMessage")) == 2


async def test_a_halt_before_the_end_leaves_the_preview_without_its_button(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    await previewed(chat, reply)
    reply.halt()
    reply.show(" and more")
    assert await reply.finish(TWO) == Delivered(0, 2)
    await server.wait_for(lambda: not chat.bot_messages[0].buttons)
    assert chat.texts == ["a"]


async def test_documents_are_parts(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    documents = (OutboundDocument("a.txt", "x"), OutboundDocument("b.txt", "y"))
    stalled = server.fail_next("sendDocument", stall=True)
    finishing = asyncio.create_task(reply.finish(OutboundReply("text", documents)))
    await server.wait_for(lambda: stalled.used)
    reply.halt()
    stalled.release()
    assert await finishing == Delivered(2, 3)
    assert len(chat.bot_messages) == 2


async def test_what_may_have_arrived_is_not_counted_and_no_longer_reported(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    server.fail_next("sendMessage", drop=True, acted=True, text="b")
    flooded = flood(server, "c", seconds=300)
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: flooded.used)
    reply.halt()
    assert await finishing == Delivered(1, 5)


async def test_a_halt_during_the_last_part_hides_no_trouble(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    lost = server.fail_next("sendMessage", drop=True, text="b")
    finishing = asyncio.create_task(reply.finish(TWO))
    await server.wait_for(lambda: lost.used)
    reply.halt()
    with pytest.raises(Uncertain):
        await finishing


async def test_the_button_stays_while_telegram_is_out_of_reach_and_goes_with_the_last_part(
    server: TelegramServer,
    chat: Chat,
    reply: TelegramReply,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliver, "_AGAIN_S", (0.01,))
    answer = OutboundReply("a" * SIZE + "b" * SIZE + "c")
    flooded = flood(server, "c", seconds=1)
    finishing = asyncio.create_task(reply.finish(answer))
    await server.wait_for(lambda: flooded.used)
    await server.stop()
    with pytest.raises(ChannelUnavailable):
        await finishing
    assert chat.bot_messages[0].buttons == ["Stop"]
    await server.start()
    assert await reply.finish(answer) == Delivered(3, 3)
    assert [message.buttons for message in chat.bot_messages] == [[], [], []]
    assert letters(chat) == "abc"


async def test_an_answer_of_one_part_never_gets_a_button_of_its_own(
    server: TelegramServer, chat: Chat, reply: TelegramReply
) -> None:
    await reply.finish(OutboundReply("short"))
    assert "reply_markup" not in server.calls_to("sendMessage")[0].params
    assert server.calls_to("editMessageReplyMarkup") == []


@pytest.mark.parametrize("fault", ["message to edit not found", "message is not modified"])
async def test_a_button_that_cannot_be_taken_away_is_no_trouble(
    server: TelegramServer, chat: Chat, reply: TelegramReply, fault: str
) -> None:
    server.fail_next("editMessageReplyMarkup", status=400, description=f"Bad Request: {fault}")
    assert await reply.finish(TWO) == Delivered(2, 2)


async def test_closing_ends_the_wait_to_take_the_button_away(
    server: TelegramServer, channel: TelegramChannel, chat: Chat, reply: TelegramReply
) -> None:
    flooded = flood(server, "b", seconds=300)
    finishing = asyncio.create_task(reply.finish(TWO))
    await server.wait_for(lambda: flooded.used)
    reply.halt()
    await finishing
    await channel.aclose()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "tidying up"]
