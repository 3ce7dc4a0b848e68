"""Field cases (e), (g) and (k) about chats: one that moves keeps everything, one that is gone ends
quietly, none sees another, and what came during an outage is neither lost nor a flood.

Asserted elsewhere already:

    106  channels/slack/test_catch_up.py: after_a_lost_connection_it_reads_again_from_before_the_loss
    140  memory/test_chats.py: every_column_that_can_name_a_chat_follows_it_or_says_why_not

All other entries of these groups: test_delivery_*.py, test_intake_*.py, test_restart.py,
test_persistence.py and test_leakage.py.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.messages import Message, assistant_text
from agent.provider import ModelRequest
from bridge.session import session_of
from channels.base import Address
from memory.database import Database
from tests.bridge.bed import bed
from tests.e2e.bed import App, config, llm_server, running, telegram_settings
from tests.servers.llm import LlmServer
from tests.servers.telegram import TelegramServer


@dataclass
class World:
    telegram: TelegramServer
    llm: LlmServer
    app: App
    ana: Any
    data: Path

    async def column(self, sql: str) -> list[Any]:
        """What the stopped bot has stored."""
        database = await Database.open(self.data / "galata.db")
        try:
            return [row[0] for row in await database.read(sql)]
        finally:
            await database.close()


@asynccontextmanager
async def world(data: Path, allowed: Sequence[str] = ("-451",)) -> AsyncGenerator[World]:
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana", language_code="en")
        settings = telegram_settings(telegram, owners=[str(ana.id)], allowed=list(allowed))
        async with running(config(llm, telegram=settings), data) as app:
            await telegram.wait_for_poll()
            yield World(telegram, llm, app, ana, data)


async def test_a_group_that_becomes_a_supergroup_keeps_its_history_and_its_rights(
    tmp_path: Path,
) -> None:
    """Case 75: history and rights follow; a repeat is harmless, also after a restart; the service
    messages are not given to the model."""
    async with world(tmp_path) as it:
        bo = it.telegram.user("Bo")
        old = it.telegram.group("Team", members=[it.ana, bo], id=-451)
        it.llm.answer("Noted.")
        old.send("/ask My cat is called Pablo.", sender=bo)
        await old.wait_for_text("Noted.")
        new = old.migrate()
        await it.telegram.wait_until_confirmed()
        it.llm.answer("Pablo.")
        new.send("/ask What is it called?", sender=bo)  # the YAML still names the old id only
        await new.wait_for_text("Pablo.")
        assert "My cat is called Pablo." in str(it.llm.requests[-1].messages)
        await it.app.stop()
        old.announce_migration()
        await it.app.start()
        await it.telegram.wait_until_confirmed()
        it.llm.answer("Still Pablo.")
        new.send("/ask Sure?", sender=bo)
        await new.wait_for_text("Still Pablo.")
        assert "What is it called?" in str(it.llm.requests[-1].messages)
        assert len(it.llm.requests) == 3
        await it.app.stop()
        assert await it.column("SELECT chat FROM sessions") == [str(new.id)]
        await it.app.start()


async def test_a_message_in_the_new_chat_before_the_service_message_joins_the_old_history(
    tmp_path: Path,
) -> None:
    """Case 75: the service messages may come after the first message of the new chat."""
    async with world(tmp_path) as it:
        old = it.telegram.group("Team", members=[it.ana], id=-451)
        it.llm.answer("Noted.")
        old.send("/ask My cat is called Pablo.", sender=it.ana)
        await old.wait_for_text("Noted.")
        new = old.migrate(announce=False)
        it.llm.answer("I do not know.")
        new.send("/ask What is it called?", sender=it.ana)
        await new.wait_for_text("I do not know.")
        old.announce_migration()
        await it.telegram.wait_until_confirmed()
        it.llm.answer("Pablo.")
        new.send("/ask And now?", sender=it.ana)
        await new.wait_for_text("Pablo.")
        sent = str(it.llm.requests[-1].messages)
        assert sent.index("called Pablo") < sent.index("What is it called?")


async def test_an_answer_under_way_arrives_in_the_new_chat_once(tmp_path: Path) -> None:
    """Case 75: queued sends move to the new id."""
    async with world(tmp_path) as it:
        old = it.telegram.group("Team", members=[it.ana], id=-451)
        reply = it.llm.answer("A long answer, which comes late.").stall_after(1)
        old.send("/ask hi", sender=it.ana)
        await reply.reached.wait()
        new = old.migrate()
        await it.telegram.wait_until_confirmed()
        reply.release()
        await new.wait_for_text("A long answer, which comes late.")
        it.llm.answer("Here.")
        new.send("/ask and?", sender=it.ana)
        await new.wait_for_text("Here.")
        texts = [message.text for message in new.bot_messages]
        assert texts == ["A long answer, which comes late.", "Here."]
        assert "A long answer" in str(it.llm.requests[-1].messages)


async def test_a_blocked_or_removed_bot_ends_quietly_and_others_are_answered(
    tmp_path: Path,
) -> None:
    """Case 83: the chat is known as gone until its next message; other chats are unaffected."""
    async with world(tmp_path) as it:
        chat = it.telegram.private(it.ana)
        group = it.telegram.group("Team", members=[it.ana], id=-451)
        reply = it.llm.answer("For nobody any more.").stall_after(1)
        chat.send("hi")
        await reply.reached.wait()
        chat.block()
        reply.release()
        it.llm.answer("In the group.")
        group.send("/ask hi", sender=it.ana)
        await group.wait_for_text("In the group.")
        await it.app.stop()
        assert await it.column("SELECT chat FROM gone_chats") == [str(chat.id)]
        await it.app.start()
        chat.unblock()
        it.llm.answer("Welcome back.")
        chat.send("hello again")
        await chat.wait_for_text("Welcome back.")
        await it.app.stop()
        assert await it.column("SELECT chat FROM gone_chats") == []
        await it.app.start()


@pytest.mark.parametrize(
    ("words", "private"),
    [
        ("Forbidden: bot was blocked by the user", True),
        ("Forbidden: user is deactivated", True),
        ("Forbidden: bot was kicked from the supergroup chat", False),
    ],
)
async def test_what_only_a_refusal_tells_of_ends_it_too(
    tmp_path: Path, words: str, private: bool
) -> None:
    """Case 83, its own input: a 403 to each request, and no update says so. Nothing is tried again."""
    async with world(tmp_path, ("-451", "-452")) as it:
        group = it.telegram.group("Team", members=[it.ana], id=-451)
        chat = it.telegram.private(it.ana) if private else group

        def told() -> int:
            methods = ("sendMessage", "editMessageText")
            return sum(len(it.telegram.calls_to(method, chat)) for method in methods)

        reply = it.llm.answer("For nobody any more.").stall_after(1)
        chat.send("hi" if private else "/ask hi", sender=it.ana)
        await reply.reached.wait()
        refused = it.telegram.fail_next("*", status=403, description=words, chat=chat, count=1_000)
        reply.release()
        await it.telegram.wait_for(lambda: refused.used)
        it.llm.answer("Elsewhere.")
        other = it.telegram.group("Others", members=[it.ana], id=-452)
        other.send("/ask hi", sender=it.ana)
        await other.wait_for_text("Elsewhere.")
        await it.app.stop()
        tried = told()
        await it.app.start()
        await it.telegram.wait_for_poll()
        assert told() == tried
        await it.app.stop()
        assert await it.column("SELECT chat FROM gone_chats") == [str(chat.id)]
        assert await it.column("SELECT outcome FROM outbox ORDER BY id") == [
            "unreachable",
            "delivered",
        ]
        await it.app.start()


async def test_what_was_written_while_the_bot_was_down_is_answered_in_order(
    tmp_path: Path,
) -> None:
    """Case 122: three messages while it is down."""
    async with world(tmp_path) as it:
        chat = it.telegram.private(it.ana)
        await it.app.stop()
        for text in ("one", "two", "three"):
            chat.send(text)
        for text in ("first", "second", "third"):
            it.llm.answer(text)
        await it.app.start()
        await it.telegram.wait_for(lambda: _asked(it.llm) == ["one", "two", "three"])


def _asked(llm: LlmServer) -> list[str]:
    """The questions of all requests, each once, however they were joined to turns."""
    texts = [request.last_user_text for request in llm.requests]
    return [word for text in texts for word in text.split("\n\n")]


async def test_a_group_is_not_flooded_with_answers_after_a_long_outage(tmp_path: Path) -> None:
    """Case 122: an old backlog is answered by a stated rule, and nothing is skipped in silence."""
    async with world(tmp_path) as it:
        bo = it.telegram.user("Bo")
        group = it.telegram.group("Team", members=[it.ana, bo], id=-451)
        await it.app.stop()
        asked = [(it.ana, "one"), (bo, "two"), (it.ana, "three")]
        sent = [group.send(f"/ask {text}", sender=who).json() for who, text in asked]
        it.telegram.updates.clear()
        long_ago = int((datetime.now(UTC) - timedelta(hours=2)).timestamp())
        for message in sent:
            it.telegram.push_raw({"message": message | {"date": long_ago}})
        it.llm.answer("An answer.")
        it.llm.answer("An answer.")
        await it.app.start()
        notice = await group.wait_for_text(lambda text: "set aside: 1" in text)
        await it.telegram.wait_for(
            lambda: [m.text for m in group.bot_messages].count("An answer.") == 2
        )
        assert sorted(_asked(it.llm)) == ["[Ana#2] three", "[Bo#1] two"]
        it.llm.answer("After all.")
        group.press(notice, "Ask them now", user=bo)
        await group.wait_for_text("After all.")
        assert _asked(it.llm)[-1] == "[Ana#2] one"


def test_two_private_chats_two_bots_and_two_channels_never_share_a_session() -> None:
    """Case 156: the key is platform, bot account, chat and thread."""
    places = {
        session_of(Address(channel, account, chat, thread), "ana", "shared").key
        for channel in ("telegram", "slack")
        for account in ("1", "2")
        for chat in ("1", "2", "1:2")
        for thread in (None, "1", "t=1")
    }
    assert len(places) == 2 * 2 * 3 * 3


async def test_twenty_chats_at_once_see_their_own_words_only(tmp_path: Path) -> None:
    """Case 159: no buffer is shared between runs."""
    tags = [f"tag{random.Random(7).getrandbits(16)}x{number}" for number in range(20)]

    def echo(request: ModelRequest) -> Message:
        return assistant_text(" ".join(message.text for message in request.messages))

    async with bed(tmp_path, [echo] * 40) as made:
        for _ in range(2):
            await asyncio.gather(
                *(made.send(f"say {tag}", chat=str(i)) for i, tag in enumerate(tags))
            )
            await made.bridge.idle()
        for reply in made.channel.replies:
            said = set(re.findall(r"tag\w+", reply.final or ""))
            assert said == {tags[int(reply.to.chat)]}
        assert len(made.channel.finals) == 40
