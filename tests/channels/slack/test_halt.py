"""An answer of several parts that is stopped in between, and the Stop button until then."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from channels.base import Address, Delivered, OutboundDocument, OutboundReply, StopControl
from channels.errors import ChannelUnavailable, ReplyRefused
from channels.slack.channel import SlackChannel
from tests.channels.slack.conftest import QUICK, make_channel
from tests.servers.slack import Conversation, SlackServer
from tests.servers.slack_faults import Fault

STOP = StopControl("Stop", "r1")
FIVE = OutboundReply("\n\n".join(letter * 11_000 for letter in "abcde"))
UPDATED = OutboundReply("a" * 3_700 + "\n\n" + "\n\n".join(letter * 11_000 for letter in "bcde"))
NOTICES = OutboundReply("\n\n".join(letter * 2_700 for letter in "abcde"))
TWO = OutboundReply("a" * 11_000 + "\n\n" + "b" * 11_000)


@pytest.fixture
def dm(server: SlackServer) -> Conversation:
    return server.dm(server.user("Ana"))


def here(dm: Conversation) -> Address:
    return Address("slack", dm.world.team_id, dm.id)


def letters(dm: Conversation) -> str:
    return "".join(one.shown[:1] or "." for one in dm.from_bot)


def buttons(dm: Conversation) -> list[int]:
    return [len(one.buttons) for one in dm.from_bot]


def hold(server: SlackServer, method: str, text: str, seconds: float = 100) -> Fault:
    """The next call with this text has to wait."""
    fault = Fault(method, error="ratelimited", status=429, retry_after=seconds, text=text)
    return server.faults.add(fault)


@pytest.mark.parametrize("with_preview", [True, False])
async def test_an_answer_that_slack_holds_up_ends_where_it_is_and_loses_its_button(
    server: SlackServer, channel: SlackChannel, dm: Conversation, with_preview: bool
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    if with_preview:
        await server.wait_for(lambda: buttons(dm) == [1])
    held = hold(server, "chat.postMessage", "ccc")
    finishing = asyncio.create_task(reply.finish(UPDATED if with_preview else FIVE))
    await server.wait_for(lambda: held.used)
    assert buttons(dm) == [1, 0]
    reply.halt()
    assert await finishing == Delivered(2, 5)
    await server.wait_for(lambda: buttons(dm) == [0, 0])
    assert letters(dm) == "ab"


async def test_the_button_stays_until_the_last_part_is_out(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    stalled = server.fail_next("chat.postMessage", stall=True, text="bbb")
    finishing = asyncio.create_task(reply.finish(TWO))
    await server.wait_for(lambda: stalled.used)
    assert buttons(dm) == [1]
    stalled.release()
    assert await finishing == Delivered(2, 2)
    assert (letters(dm), buttons(dm)) == ("ab", [0, 0])
    assert dm.from_bot[0].shown == "a" * 11_000 + "\n\n1/2"


async def test_an_answer_of_one_part_never_gets_a_button_of_its_own(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await reply.finish(OutboundReply("short"))
    assert [call.method for call in server.calls] == ["chat.postMessage"]
    assert buttons(dm) == [0]


async def test_a_part_that_is_under_way_is_finished(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None)
    stalled = server.fail_next("chat.postMessage", stall=True, text="bbb")
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: stalled.used)
    reply.halt()
    await asyncio.sleep(0)
    assert not finishing.done()
    stalled.release()
    assert await finishing == Delivered(2, 5)
    assert letters(dm) == "ab"


async def test_a_preview_that_becomes_the_first_part_counts(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await server.wait_for(lambda: buttons(dm) == [1])
    stalled = server.fail_next("chat.update", stall=True)
    finishing = asyncio.create_task(reply.finish(UPDATED))
    await server.wait_for(lambda: stalled.used)
    reply.halt()
    stalled.release()
    assert await finishing == Delivered(1, 5)
    await server.wait_for(lambda: buttons(dm) == [0])
    assert letters(dm) == "a"


async def test_a_pause_before_a_repetition_ends_at_once(
    server: SlackServer, dm: Conversation
) -> None:
    channel = make_channel(server, replying=replace(QUICK, repeats_s=(600.0,)))
    reply = channel.open_reply(here(dm), reply_to=None)
    refused = server.fail_next("chat.postMessage", error="service_unavailable", text="bbb")
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: refused.used)
    reply.halt()
    assert await finishing == Delivered(1, 5)
    await channel.aclose()


async def test_a_refused_part_is_not_sent_as_plain_text_any_more(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None)
    refused = server.fail_next("chat.postMessage", error="invalid_blocks", text="bbb")
    finishing = asyncio.create_task(reply.finish(FIVE))
    await server.wait_for(lambda: refused.used)
    reply.halt()
    assert await finishing == Delivered(1, 5)
    assert len(server.calls_to("chat.postMessage")) == 2


async def test_a_halt_before_the_end_leaves_the_preview_without_its_button(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    reply.show("half an")
    await dm.wait_for_text("half an")
    reply.halt()
    reply.show(" answer")
    assert await reply.finish(UPDATED) == Delivered(0, 5)
    await server.wait_for(lambda: buttons(dm) == [0])
    assert [one.shown for one in dm.from_bot] == ["half an"]


async def test_a_lost_preview_is_found_and_left_without_its_button(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    server.fail_next("chat.postMessage", drop=True, acted=True)
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    reply.show("half")
    await server.wait_for(lambda: buttons(dm) == [1])
    reply.halt()
    assert await reply.finish(UPDATED) == Delivered(0, 5)
    await server.wait_for(lambda: buttons(dm) == [0])
    assert [one.shown for one in dm.from_bot] == ["half"]


async def test_after_a_halt_the_button_goes_as_soon_as_slack_allows(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    held = hold(server, "chat.postMessage", "bbb")
    finishing = asyncio.create_task(reply.finish(TWO))
    await server.wait_for(lambda: held.used)
    server.rate_limit("chat.update", 0.2)
    reply.halt()
    assert await finishing == Delivered(1, 2)
    await server.wait_for(lambda: buttons(dm) == [0])
    assert len(server.calls_to("chat.update")) == 2


async def test_a_button_that_cannot_be_taken_away_is_no_trouble(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    server.fail_next("chat.update", error="cant_update_message")
    assert await reply.finish(TWO) == Delivered(2, 2)


async def test_a_first_part_that_is_sent_beside_its_preview_leaves_one_message_and_no_button(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await server.wait_for(lambda: buttons(dm) == [1])
    server.fail_next("chat.update", error="msg_too_long")
    held = hold(server, "chat.postMessage", "bbb")
    finishing = asyncio.create_task(reply.finish(UPDATED))
    await server.wait_for(lambda: held.used)
    reply.halt()
    assert await finishing == Delivered(1, 5)
    await server.wait_for(lambda: buttons(dm) == [0])
    assert letters(dm) == "a"


async def test_parts_stay_in_order_when_the_preview_cannot_take_the_first(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    reply = channel.open_reply(here(dm), reply_to=None, stop=STOP)
    await server.wait_for(lambda: buttons(dm) == [1])
    server.fail_next("chat.update", error="msg_too_long")
    assert await reply.finish(UPDATED) == Delivered(5, 5)
    assert (letters(dm), buttons(dm)) == ("abcde", [0] * 5)


async def test_documents_are_parts(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    documents = (OutboundDocument("a.txt", "x"), OutboundDocument("b.txt", "y"))
    reply = channel.open_reply(here(dm), reply_to=None)
    stalled = server.fail_next("files.completeUploadExternal", stall=True)
    finishing = asyncio.create_task(reply.finish(OutboundReply("text", documents)))
    await server.wait_for(lambda: stalled.used)
    reply.halt()
    stalled.release()
    assert await finishing == Delivered(2, 3)
    assert letters(dm) == "t."


async def test_where_the_bot_is_no_member_the_rest_for_the_person_is_halted_too(
    server: SlackServer, channel: SlackChannel, dm: Conversation
) -> None:
    ana = dm.members[0]
    server.fail_next("chat.postMessage", error="channel_not_found")
    reply = channel.open_reply(here(dm), reply_to=f"ephemeral:{ana.id}:gone", stop=STOP)
    held = hold(server, "chat.postEphemeral", "ccc", seconds=10_000)
    with pytest.raises(ChannelUnavailable):
        await reply.finish(NOTICES)
    assert held.used
    reply.halt()
    assert await reply.finish(NOTICES) == Delivered(2, 5)
    assert [one.shown[:1] for one in dm.ephemerals(ana)] == ["a", "b"]
    assert len(server.calls_to("chat.postMessage")) == 1, "the second try goes on where it was"


async def test_a_notice_goes_on_after_an_outage_with_what_is_missing(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    to = Address("slack", server.team_id, general.id, None, private=False)
    reply = channel.open_reply(to, reply_to=f"ephemeral:{ana.id}:gone")
    server.fail_next("chat.postEphemeral", error="service_unavailable", text="ccc")
    with pytest.raises(ChannelUnavailable):
        await reply.finish(NOTICES)
    assert await reply.finish(NOTICES) == Delivered(5, 5)
    assert [one.shown[:1] for one in general.ephemerals(ana)] == list("abcde")


async def test_a_notice_with_a_document_still_shows_its_text(
    server: SlackServer, channel: SlackChannel
) -> None:
    ana = server.user("Ana")
    general = server.channel("general", members=[ana])
    to = Address("slack", server.team_id, general.id, None, private=False)
    reply = channel.open_reply(to, reply_to=f"ephemeral:{ana.id}:gone")
    with pytest.raises(ReplyRefused, match="documents"):
        await reply.finish(OutboundReply("text", (OutboundDocument("a.txt", "x"),)))
    assert [one.shown for one in general.ephemerals(ana)] == ["text"]
