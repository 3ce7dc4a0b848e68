"""Field cases (e) about what comes in from Telegram: each message once, nothing of somebody else's, and
no update blocks another.

Asserted elsewhere already:

    82   e2e/test_telegram.py: a_redelivered_update_is_answered_once (under another update id; times
         between the two play no part); after a restart: test_restart.py
    84   there is no switch to forget: a group text without mention is never read. e2e/test_telegram.py:
         with_privacy_off_a_mention_is_heard_and_other_text_is_not
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from channels.telegram import parse
from tests.e2e.bed import Hanging
from tests.field_cases.world import on_telegram
from tests.servers.llm import tool
from tests.servers.telegram_updates import CONFLICT

pytestmark = pytest.mark.usefixtures("brisk")


async def test_another_poller_is_named_waited_for_and_known_to_health(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 76: five conflicts; then messages are answered, once. (It does not give up: the other one
    may be an old process that is about to end, and owners are told.)"""
    async with on_telegram(tmp_path) as it:
        conflicts = it.server.fail_next("getUpdates", status=409, description=CONFLICT, count=5)
        it.server.end_poll()
        await it.server.wait_for(lambda: conflicts.used == 5)
        it.llm.answer("Here again.")
        it.chat.send("hi")
        await it.chat.wait_for_text("Here again.")
        assert it.chat.texts == ["Here again."]
        told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        assert "another process receives messages with the token" in told[0]
        assert "channels.telegram.token" in told[0]


async def test_who_writes_is_told_apart_and_what_nobody_wrote_is_no_message(tmp_path: Path) -> None:
    """Case 79: anonymous admins share one user, channels post without one; other bots and changes of
    members are nothing."""
    async with on_telegram(tmp_path) as it:
        server, group = it.server, it.group
        channel = server.channel("News", discussion=group)
        channel.send("/ask from the channel")
        group.send("/ask from a bot", sender=server.user("Other", is_bot=True))
        server.push_raw({"chat_member": {}})
        it.llm.answer("To the admin.")
        group.send_anonymously("/ask from the admin")
        await group.wait_for_text("To the admin.")
        it.llm.answer("To the channel's member.")
        group.send_as_channel("/ask from a member", channel)
        await group.wait_for_text("To the channel's member.")
        assert it.asked() == ["[Team#1] from the admin", "[News#2] from a member"]


async def test_unknown_and_broken_updates_are_passed_over(tmp_path: Path) -> None:
    """Case 89: each is acknowledged, and the next message answered."""
    async with on_telegram(tmp_path) as it:
        photo = it.chat.send_photo(caption="")
        it.llm.answer("A photo.")
        await it.chat.wait_for_text("A photo.")
        it.server.push_raw({"my_chat_member": {}})
        it.server.push_raw({"poll": {}})
        it.server.push_raw({"something_new": {"id": 1}})
        it.server.push_raw({"edited_message": photo.json() | {"edit_date": 1_796_000_000}})
        it.llm.answer("Still here.")
        it.chat.send("hi")
        await it.chat.wait_for_text("Still here.")
        await it.server.wait_until_confirmed()
        assert it.chat.texts == ["A photo.", "Still here."]
        assert len(it.llm.requests) == 2


async def test_a_run_that_hangs_holds_up_neither_others_nor_its_own_end(tmp_path: Path) -> None:
    """Case 91: a tool hangs; another chat is answered, and /cancel."""
    hanging = Hanging()
    async with on_telegram(tmp_path, tools=[hanging]) as it:
        it.llm.answer(tool("pay", {}))
        it.chat.send("pay it")
        await hanging.begun.wait()
        it.llm.answer("Hello, team.")
        it.group.send("/ask hi")
        await it.group.wait_for_text("Hello, team.")
        it.chat.send("/cancel")
        await it.chat.wait_for_text("Stopped")
        await hanging.ended.wait()


async def test_in_a_group_with_privacy_mode_it_says_that_it_is_deaf_and_offers_ask(
    tmp_path: Path,
) -> None:
    """Case 85."""
    async with on_telegram(tmp_path) as it:
        it.group.bot_leaves()
        it.group.add_bot()
        told = await it.group.wait_for_text("/ask")
        assert "@BotFather" in told.text
        it.llm.answer("By ask.")
        it.group.send("/ask hi")
        await it.group.wait_for_text("By ask.")


async def test_an_album_is_one_question_with_its_pictures_in_order_and_its_captions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 77: three updates, captions on the first and the third."""
    monkeypatch.setattr(parse, "_ALBUM_S", 0.05)
    async with on_telegram(tmp_path) as it:
        it.llm.answer("Three pictures.")
        it.chat.send_album(["a cat", "", "a dog"])
        await it.chat.wait_for_text("Three pictures.")
        (request,) = it.llm.requests
        content = request.messages[-1]["content"]
        assert [block["type"] for block in content] == ["image", "image", "image", "text"]
        assert content[-1]["text"] == "[Image 1] a cat\n\n[Image 3] a dog"
        assert it.chat.texts == ["Three pictures."]
        assert it.server.calls_to("setMessageReaction") == [], "none of them waits behind another"


async def test_the_other_pictures_of_an_album_need_no_mention_in_a_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 77: a mention stands in one caption only."""
    monkeypatch.setattr(parse, "_ALBUM_S", 0.05)
    async with on_telegram(tmp_path, privacy_mode=False) as it:
        it.llm.answer("Two pictures.")
        it.group.send_album([f"@{it.server.bot.username} what are these?", ""])
        await it.group.wait_for_text("Two pictures.")
        (request,) = it.llm.requests
        types = [block["type"] for block in request.messages[-1]["content"]]
        assert types == ["image", "image", "text"]
        assert it.asked() == ["[Ana#1] what are these?"]
