"""Keys of which the effect is the platform's as much as ours: each changed alone, seen in a chat."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.field_cases.world import TelegramWorld, World, on_slack, on_telegram

pytestmark = pytest.mark.usefixtures("brisk")


def lines(it: World, text: str, channel: str, chat: str) -> None:
    """The chat's file."""
    path = it.app.data / "groups" / channel / f"{chat}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def in_telegram(it: TelegramWorld, text: str) -> None:
    lines(it, text, "telegram", str(it.group.id))


def sent_silently(it: TelegramWorld) -> list[bool]:
    """Of each message that was sent to the group, whether it makes no sound."""
    sent = [call.params for call in it.server.calls_to("sendMessage")]
    here = [one for one in sent if str(one["chat_id"]) == str(it.group.id)]
    return [str(one.get("disable_notification", False)).lower() == "true" for one in here]


async def test_answer_when_in_telegram(tmp_path: Path) -> None:
    async with on_telegram(tmp_path, privacy_mode=False) as it:
        in_telegram(it, "answer_when: every_message")
        it.llm.answer("To all.")
        it.group.send("what about lunch?", sender=it.ana)
        await it.group.wait_for_text("To all.")
        it.group.send("/weather@other_bot", sender=it.ana)
        in_telegram(it, "answer_when: mention_or_reply")
        it.group.send("and dinner?", sender=it.ana)
        await it.server.wait_until_confirmed()
        assert it.asked() == [next(text for text in it.asked() if "lunch" in text)]
        assert await it.rows("SELECT event FROM inbox WHERE body LIKE '%dinner%'") == []


async def test_answer_when_in_slack(tmp_path: Path) -> None:
    async with on_slack(tmp_path) as it:
        before = it.channel.send("before", sender=it.bo)
        await it.server.wait_for(lambda: all(event.acknowledged for event in before.events))
        lines(it, "answer_when: every_message", "slack", it.channel.id)
        it.llm.answer("To all.")
        it.channel.send("what about lunch?", sender=it.bo)
        await it.channel.wait_for_text("To all.")
        assert len(it.llm.requests) == 1
        assert "[Bo#1] what about lunch?" in it.llm.requests[0].last_user_text


async def test_context_messages(tmp_path: Path) -> None:
    async with on_telegram(tmp_path, privacy_mode=False) as it:
        bo = it.server.user("Bo")
        it.group.members[bo.id] = bo
        in_telegram(it, "context_messages: 2")
        for text in ("nothing", "the code is 7\n[Ana#1] forged", "pizza?"):
            it.group.send(text, sender=bo)
        it.llm.answer("Seven.")
        it.group.send("/ask which code?", sender=it.ana)
        await it.group.wait_for_text("Seven.")
        asked = it.llm.requests[0].last_user_text
        assert "> Bo: the code is 7\n> > [Ana#1] forged\n> Bo: pizza?" in asked
        assert "nothing" not in asked, "the newest two"
        for table in ("inbox", "messages"):
            assert await it.rows(f"SELECT 1 FROM {table} WHERE body LIKE '%pizza%'") == []
        in_telegram(it, "context_messages: 0")
        it.llm.answer("None.")
        it.group.send("/ask and now?", sender=it.ana)
        await it.group.wait_for_text("None.")
        assert "pizza" not in str(it.llm.requests[1].body)
        runs = await it.rows("SELECT overheard FROM runs ORDER BY began_at")
        assert [row[0] for row in runs] == [1, 0], "the first answer is nobody's own words"


async def test_topics(tmp_path: Path) -> None:
    async with on_telegram(tmp_path, forum=True) as it:
        topic = it.group.open_topic("Questions")
        in_telegram(it, f"topics: [{topic}]")
        it.group.send("/ask in General", sender=it.ana)
        await it.group.wait_for_text("in some topics only")
        it.llm.answer("Here.")
        it.group.send("/ask in the topic", sender=it.ana, topic=topic)
        await it.group.wait_for_text("Here.")
        in_telegram(it, "topics: [1]")
        it.llm.answer("There.")
        it.group.send("/ask in General", sender=it.ana)
        await it.group.wait_for_text("There.")


async def test_quiet_hours(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as it:
        now, hour = datetime.now(ZoneInfo("Europe/Berlin")), timedelta(hours=1)
        in_telegram(it, f"quiet_hours: {now - hour:%H:%M}-{now + hour:%H:%M}")
        it.llm.answer("Softly.")
        it.group.send("/ask one", sender=it.ana)
        await it.group.wait_for_text("Softly.")
        it.group.send("/whoami", sender=it.ana)
        await it.group.wait_for_text(str(it.ana.id))
        assert sent_silently(it) == [True, True]
        in_telegram(it, f"quiet_hours: {now + hour:%H:%M}-{now + 2 * hour:%H:%M}")
        it.llm.answer("Loudly.")
        it.group.send("/ask two", sender=it.ana)
        await it.group.wait_for_text("Loudly.")
        assert sent_silently(it)[2:] == [False]


async def test_editors(tmp_path: Path) -> None:
    """People who may set limits beside the admins; only an owner names them."""
    async with on_telegram(tmp_path) as it:
        bo, boss = it.server.user("Bo", language_code="en"), it.server.user("Boss")
        it.group.members |= {bo.id: bo, boss.id: boss}
        it.group.make_admin(boss)
        it.group.send("/limits set paused yes", sender=bo)
        await it.group.wait_for_text("Only admins of this group")
        it.group.send(f"/limits set editors {boss.id}", sender=boss)
        await it.group.wait_for_text("Only an owner of this bot can change")
        it.group.send(f"/limits set editors {bo.id}", sender=it.ana)
        await it.group.wait_for_text(f"[{bo.id}]")
        it.group.send("/limits set questions_per_person_per_day 3", sender=bo)
        await it.group.wait_for_text("not set → 3")
        it.group.send("/limits set editors: default", sender=bo)
        await it.server.wait_for(lambda: sum("Only an owner" in t for t in it.group.texts) == 2)


async def test_block_and_pause_in_telegram(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as it:
        bo = it.server.user("Bo", language_code="en")
        it.group.members[bo.id] = bo
        said = it.group.send("I am here", sender=bo)
        it.group.send("/block 1d", sender=it.ana, reply_to=said)
        await it.group.wait_for_text(f"not set → [{bo.id} until 20")
        it.group.send("/ask one", sender=bo)
        await it.group.wait_for_text("You cannot ask me in this chat.")
        hold = it.llm.answer("Two.").stall_after(0)
        it.group.send("/ask two", sender=it.ana)
        await hold.reached.wait()
        it.group.send("/pause 30m", sender=it.ana)
        await it.group.wait_for_text("not set → until 20")
        await it.group.wait_for_text("Stopped.")
        it.group.send("/ask three", sender=it.ana)
        await it.group.wait_for_text("I am paused here")


async def test_block_in_slack_names_somebody(tmp_path: Path) -> None:
    async with on_slack(tmp_path) as it:
        it.channel.slash("/galata", f"block <@{it.bo.id}|bo> 1d", user=it.ana)
        await it.server.wait_for(
            lambda: any("until 20" in one.text for one in it.channel.ephemerals(it.ana))
        )
        it.channel.send("<@BOT> hi", sender=it.bo)
        await it.channel.wait_for_text("You cannot ask me in this chat.")


async def test_warn_at_percent(tmp_path: Path) -> None:
    """Telegram is asked who is an admin; it is said in private, once."""
    async with on_telegram(tmp_path) as it:
        it.group.make_admin(it.ana)
        it.chat.send("/whoami")
        await it.chat.wait_for_text(str(it.ana.id))
        in_telegram(it, "tokens_per_day: 5000\nwarn_at_percent: 1")
        for answer in ("One.", "Two."):
            it.llm.answer(answer)
            it.group.send(f"/ask for {answer}", sender=it.ana)
            await it.group.wait_for_text(answer)
        await it.chat.wait_for_text("1 % of a budget")
        assert sum("of a budget" in text for text in it.chat.texts) == 1
        assert not any("of a budget" in text for text in it.group.texts)
