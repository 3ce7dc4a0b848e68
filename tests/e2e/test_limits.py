"""Limits in Telegram and Slack: who may set them is asked each time, and they hold at once."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.e2e.bed import config, llm_server, running, slack_settings, telegram_settings
from tests.field_cases.world import on_telegram
from tests.servers.slack import SlackServer
from tests.servers.telegram import Message, Press, TelegramServer, User


async def test_limits_in_a_telegram_group(tmp_path: Path) -> None:
    async with on_telegram(tmp_path) as it:
        group, server = it.group, it.server
        boss, bo = server.user("Boss", language_code="en"), server.user("Bo", language_code="en")
        group.members |= {boss.id: boss, bo.id: bo}
        group.make_admin(boss)

        group.send("/limits set\nQuestions per person per day： 1", sender=boss)
        await group.wait_for_message(lambda m: "not set → 1" in m.text)
        it.llm.answer("One.")
        group.send("/ask one", sender=bo)
        await group.wait_for_text("One.")
        group.send("/ask two", sender=bo)
        told = await group.wait_for_message(lambda m: "may ask here in a day" in m.text)
        assert "(Europe/Berlin)" in told.text

        group.send("/limits set questions_per_person_per_day 9", sender=bo)
        await group.wait_for_message(lambda m: "Only admins of this group" in m.text)
        server.fail_next("getChatAdministrators", status=502)
        group.send("/limits set questions_per_person_per_day 8", sender=boss)
        await group.wait_for_message(lambda m: "cannot find out right now" in m.text)
        group.make_admin(boss, "member")
        group.send("/limits set questions_per_person_per_day 7", sender=boss)
        await server.wait_for(lambda: sum(t.startswith("Only admins") for t in group.texts) == 2)

        group.send_anonymously("/limits set questions_per_person_per_day 5")
        await group.wait_for_message(lambda m: "1 → 5" in m.text)
        it.llm.answer("Two.")
        group.send("/ask two", sender=bo)
        await group.wait_for_text("Two.")
        assert len(server.calls_to("getChatAdministrators")) >= 4, "asked anew each time"


async def test_the_buttons_of_limits_in_a_telegram_group(tmp_path: Path) -> None:
    async with TelegramServer(privacy_mode=False) as telegram, llm_server() as llm:
        boss, bo = telegram.user("Boss"), telegram.user("Bo")
        group = telegram.group("Team", members=[boss, bo], id=-100500)
        group.make_admin(boss)
        made = config(llm, telegram=telegram_settings(telegram, allowed=["-100500"]))
        file = tmp_path / "groups" / "telegram" / "-100500.yaml"

        async def press(message: Message, *path: str, user: User = boss) -> Press:
            for label in path:
                await telegram.wait_for(lambda label=label: label in message.buttons)  # type: ignore[misc]
                pressed = group.press(message, label, user=user)
                await telegram.wait_for(lambda pressed=pressed: pressed.answered)  # type: ignore[misc]
            return pressed

        async with running(made, tmp_path):
            group.send("/limits", sender=bo)
            members = await group.wait_for_text(lambda text: "Limits of this chat" in text)
            assert members.buttons == []
            silent = telegram.calls_to("sendMessage")[-1].params["disable_notification"]
            assert silent in ("true", "True", True)
            group.send_anonymously("/limits")
            await telegram.wait_for(lambda: len(group.bot_messages) == 2)
            assert group.bot_messages[-1].buttons == []
            group.forward("/limits set paused yes", boss, sender=boss)
            group.send("/limits", sender=boss)
            await telegram.wait_for(lambda: len(group.bot_messages) == 3)
            menu = group.bot_messages[-1]
            refused = await press(menu, "Costs", user=bo)
            assert refused.answer_text is not None
            assert "belong to" in refused.answer_text
            await press(menu, "Costs", "tokens_per_day", "200000")
        async with running(made, tmp_path):  # after a restart
            for lesser in (
                partial(group.make_admin, boss, "member"),
                partial(group.make_admin, boss, without=["can_change_info"]),
            ):
                lesser()
                refused = await press(menu, "Apply")
                assert refused.answer_text is not None
                assert "Only admins" in refused.answer_text
            group.make_admin(boss)
            await press(menu, "Apply")
            await telegram.wait_for(lambda: menu.buttons == ["Undo"])
            assert file.read_text() == "tokens_per_day: 200000\n"
            file.write_text("paused: no\n")  # the operator is faster
            group.send("/limits", sender=boss)
            await telegram.wait_for(lambda: len(group.bot_messages) == 4)
            text = group.bot_messages[-1]
            await press(text, "As text")
            await telegram.wait_for(lambda: "paused: no" in text.text)
            group.send("language: de", sender=boss, reply_to=text)
            await telegram.wait_for(lambda: len(group.bot_messages) == 5)
            await press(group.bot_messages[-1], "Apply")
            await telegram.wait_for(lambda: group.bot_messages[-1].buttons == ["Undo"])
            assert file.read_text() == "paused: no\nlanguage: de\n"
            file.write_text(f"instructions: {'a' * 500}\n")
            group.send("/limits", sender=boss)
            await telegram.wait_for(lambda: "As text" in group.bot_messages[-1].buttons)
            text = group.bot_messages[-1]
            await press(text, "As text")
            group.send(f"instructions: {'😀' * 2_000}", sender=boss, reply_to=text)
            await telegram.wait_for(lambda: "Discard" in group.bot_messages[-1].buttons)
            proposal = group.bot_messages[-1]
            await press(proposal, "Apply")
            await telegram.wait_for(lambda: "Undo" in group.bot_messages[-1].buttons)
            assert proposal.buttons == []
            shown = "".join(one.text for one in group.bot_messages if one.id > proposal.id)
            assert shown.count("😀") == 2_000, "what is applied is shown whole"
            assert llm.requests == []


async def test_the_form_of_limits_in_slack(tmp_path: Path) -> None:
    async with SlackServer() as slack, llm_server() as llm:
        boss, bo = slack.user("Boss", is_admin=True), slack.user("Bo")
        team = slack.channel("team", members=[boss, bo])
        made = config(llm, slack=slack_settings(slack, allowed=[team.id]))
        file = tmp_path / "groups" / "slack" / f"{team.id}.yaml"
        async with running(made, tmp_path):
            await slack.wait_for_connection(1)
            team.slash("/galata", "limits", bo)
            await slack.wait_for(lambda: team.ephemerals(bo))
            assert "Limits of this chat" in team.ephemerals(bo)[-1].shown
            team.slash("/galata", "limits", boss)
            await slack.wait_for(lambda: slack.views)
            (view,) = slack.views
            slack.submit(view, {"tokens_per_day": "many"})
            await slack.wait_for(lambda: view.errors)
            assert set(view.errors) == {"tokens_per_day"}
            slack.submit(view, {"tokens_per_day": "50k", "paused": "yes"})
            told = await team.wait_for_text("Changed (revision 1)")
            assert not view.open
            assert file.read_text() == "paused: yes\ntokens_per_day: 50000\n"
            team.press(told, "Undo", bo)
            await slack.wait_for(lambda: len(team.ephemerals(bo)) == 2)
            assert "Only admins" in team.ephemerals(bo)[-1].shown
            asked = team.send("<@BOT> limits", sender=boss)
            answer = await team.wait_for_text("paused: yes")
            assert answer.thread_ts == asked.ts
            team.press(answer, "Change…", boss)
            await slack.wait_for(lambda: len(slack.views) == 2)
            slack.press_inside(slack.views[-1], "As text")
            await slack.wait_for(lambda: "text" in str(slack.views[-1].body["private_metadata"]))
            slack.submit(slack.views[-1], {"text": "language: de\n"})
            await slack.wait_for(lambda: not slack.views[-1].open)
            await slack.wait_for(lambda: file.read_text() == "language: de\n")
            team.slash("/galata", "limits set instructions Be brief", boss)
            announced = await team.wait_for_text("Be brief")
            assert announced.thread_ts is None, "what only an admin was answered is told to all"
            before = file.read_text()
            team.send("<@BOT> limits set paused yes", sender=bo, thread=asked)
            await slack.wait_for(lambda: len(team.ephemerals(bo)) == 3)
            assert file.read_text() == before
            refused = team.ephemerals(bo)[-1]
            assert "Only admins" in refused.shown
            assert refused.thread_ts == asked.ts
            team.send("<@BOT> limits here set paused yes", sender=boss, thread=asked)
            topic = file.with_suffix("") / f"{asked.ts.replace('.', '%2E')}.yaml"
            await slack.wait_for(lambda: "paused" in team.ephemerals(boss)[-1].shown)
            done = team.ephemerals(boss)[-1]
            assert (topic.read_text(), done.thread_ts) == ("paused: yes\n", asked.ts)
            team.press(done, "Undo", boss)
            await slack.wait_for(lambda: not topic.exists())
            team.send("<@BOT> limits here", sender=boss, thread=asked)
            await slack.wait_for(lambda: team.thread(asked)[-1].buttons and not topic.exists())
            here = team.thread(asked)[-1]
            team.press(here, "Change…", boss)
            await slack.wait_for(lambda: len(slack.views) == 3)
            assert slack.views[-1].body["title"]["text"] == "Limits of this topic"
            slack.submit(slack.views[-1], {"paused": "yes"})
            await slack.wait_for(lambda: "Changed " in team.thread(asked)[-1].shown)
            assert topic.read_text() == "paused: yes\n"
            team.press(here, "Change…", boss)
            await slack.wait_for(lambda: len(slack.views) == 4)
            slack.press_inside(slack.views[-1], "As text")
            await slack.wait_for(lambda: "text" in str(slack.views[-1].body["private_metadata"]))
            slack.submit(slack.views[-1], {"text": "model: nothing"})
            await slack.wait_for(lambda: slack.views[-1].errors)
            slack.submit(slack.views[-1], {"text": "paused: no"})
            await slack.wait_for(lambda: topic.read_text() == "paused: no\n")
            assert file.read_text() == before, "the chat's own are as they were"
            team.send("<@BOT> limits set tokens_per_day 7k", sender=boss)
            await slack.wait_for(lambda: "7000" in team.ephemerals(boss)[-1].shown)
            assert team.ephemerals(boss)[-1].thread_ts is None, "a new thread would not show it"
            assert llm.requests == []
        assert slack.violations == []


async def test_a_form_that_was_open_over_a_restart_an_edit_of_the_file_and_a_demotion(
    tmp_path: Path,
) -> None:
    async with SlackServer() as slack, llm_server() as llm:
        boss = slack.user("Boss", is_admin=True)
        team = slack.channel("team", members=[boss])
        made = config(llm, slack=slack_settings(slack, allowed=[team.id]))
        file = tmp_path / "groups" / "slack" / f"{team.id}.yaml"
        async with running(made, tmp_path):
            await slack.wait_for_connection(1)
            for count in (1, 2, 3):
                team.slash("/galata", "limits", boss)
                await slack.wait_for(lambda count=count: len(slack.views) == count)  # type: ignore[misc]
            kept, older, demoted = slack.views
        async with running(made, tmp_path):
            await slack.wait_for_connection(1)
            slack.submit(kept, {"tokens_per_day": "50k"})
            await team.wait_for_text("Changed (revision 1)")
            file.write_text("language: de\n")
            slack.submit(older, {"tokens_per_day": "60k"})
            await slack.wait_for(lambda: older.errors)
            (told,) = older.errors.values()
            assert "Somebody has changed the limits" in told
            assert "`language`: not set → de" in told
            boss.is_admin = False
            slack.submit(demoted, {"paused": "yes"})
            await slack.wait_for(lambda: demoted.errors)
            assert "Only admins" in str(demoted.errors)
            assert file.read_text() == "language: de\n"
        assert slack.violations == []


async def test_limits_of_a_topic_by_buttons(tmp_path: Path) -> None:
    async with TelegramServer(privacy_mode=False) as telegram, llm_server() as llm:
        boss = telegram.user("Boss")
        forum = telegram.group("Forum", members=[boss], id=-100500, forum=True)
        forum.make_admin(boss)
        tides, winds = (forum.open_topic(name, boss) for name in ("Tides", "Winds"))
        made = config(llm, telegram=telegram_settings(telegram, allowed=["-100500"]))
        async with running(made, tmp_path):
            forum.send("/limits here", sender=boss, topic=tides)
            menu = await forum.wait_for_message(lambda m: "Who" in m.buttons)
            for label in ("Who", "paused", "yes", "Apply"):
                await telegram.wait_for(lambda label=label: label in menu.buttons)  # type: ignore[misc]
                pressed = forum.press(menu, label, user=boss)
                await telegram.wait_for(lambda pressed=pressed: pressed.answered)  # type: ignore[misc]
            await telegram.wait_for(lambda: menu.buttons == ["Undo"])
            folder = tmp_path / "groups" / "telegram" / "-100500"
            assert [one.read_text() for one in folder.iterdir()] == ["paused: yes\n"]
            forum.forward("/limits here set paused no", boss, sender=boss, topic=tides)
            forum.send("/ask what now?", sender=boss, topic=tides)
            await forum.wait_for_text("I am paused here")
            llm.answer("There is wind.")
            forum.send("/ask what now?", sender=boss, topic=winds)
            await forum.wait_for_text("There is wind.")
            forum.send("/limits here undo", sender=boss, topic=tides)
            await forum.wait_for_message(lambda m: "yes → not set" in m.text)
            assert list(folder.iterdir()) == []
