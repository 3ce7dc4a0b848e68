"""Who may talk, end to end: the real SDKs, the local servers, a model that nobody reaches without a
right."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge.cli import access
from bridge.cli.options import Options
from memory.access.codes import ALPHABET
from tests.e2e.bed import App, config, llm_server, running, slack_settings, telegram_settings
from tests.servers.llm import LlmServer
from tests.servers.slack import Conversation, SlackServer
from tests.servers.telegram import Chat, Message, TelegramServer, User


@dataclass
class Telegram:
    server: TelegramServer
    llm: LlmServer
    ana: User
    owner: Chat
    app: App

    @property
    def data(self) -> Path:
        return self.app.data

    def private(self, user: User) -> Chat:
        return self.server.private(user)


@asynccontextmanager
async def telegram(data: Path, **ids: Any) -> AsyncGenerator[Telegram]:
    """Ana owns the bot, and has written to it."""
    async with TelegramServer(privacy_mode=False) as server, llm_server() as llm:
        ana = server.user("Ana")
        owner = server.private(ana)
        made = config(llm, telegram=telegram_settings(server, owners=[str(ana.id)], **ids))
        async with running(made, data) as app:
            await server.wait_for_poll()
            owner.send("/start")
            await owner.wait_for_text(lambda text: "Hello." in text)
            yield Telegram(server, llm, ana, owner, app)


@dataclass
class Slack:
    server: SlackServer
    llm: LlmServer
    owner: Conversation


@asynccontextmanager
async def slack(data: Path, **ids: Any) -> AsyncGenerator[Slack]:
    async with SlackServer() as server, llm_server() as llm:
        ana = server.user("Ana")
        made = config(llm, slack=slack_settings(server, owners=[ana.id], **ids))
        async with running(made, data):
            await server.wait_for_connection(1)
            yield Slack(server, llm, server.dm(ana))
        assert server.violations == []


def code_in(text: str) -> str:
    found = re.search(rf"\b([{ALPHABET}]{{8}})\b", text)
    assert found, text
    return found[1]


def unknown(text: str) -> bool:
    return text.startswith("I do not know you yet")


async def press(chat: Chat, message: Message, label: str) -> None:
    pressed = chat.press(message, label)
    await chat.world.wait_for(lambda: pressed.answered)


# Telegram ---------------------------------------------------------------------------------------------


async def test_telegram_an_owner_lets_a_stranger_in_by_a_button(tmp_path: Path) -> None:
    async with telegram(tmp_path) as it:
        eve = it.private(it.server.user("Eve *admin*"))
        eve.send("let me in")
        await eve.wait_for_text(unknown)
        asked = await it.owner.wait_for_button("Allow")
        assert asked.buttons == ["Allow", "Refuse"]
        assert asked.text.startswith(f"Eve admin (telegram:{eve.id}) would like to talk")
        await press(it.owner, asked, "Allow")
        await eve.wait_for_text(lambda text: text.startswith("You may talk to me now."))
        assert asked.buttons == []
        assert "may talk to me in private now" in asked.text
        it.llm.answer("Hello Eve.")
        eve.send("hi")
        await eve.wait_for_text("Hello Eve.")


async def test_telegram_a_code_is_approved_in_the_chat_and_on_the_command_line(
    tmp_path: Path,
) -> None:
    async with telegram(tmp_path) as it:
        for name in ("Eve", "Mal"):
            chat = it.private(it.server.user(name))
            chat.send("/start")
            code = code_in((await chat.wait_for_text(unknown)).text)
            if name == "Eve":
                it.owner.send(f"/approve {code}")
            else:
                options = Options(data=it.data, config=None, environ={}, code=code)
                assert await asyncio.to_thread(access.approve, options) == 0
            await chat.wait_for_text(lambda text: text.startswith("You may talk to me now."))


async def test_telegram_an_invitation_lets_in_and_revoking_ends_the_running_answer(
    tmp_path: Path,
) -> None:
    async with telegram(tmp_path) as it:
        it.owner.send("/invite 2 7d")
        told = await it.owner.wait_for_text(lambda text: "t.me/" in text)
        link = re.search(rf"https://t\.me/{it.server.bot.username}\?start=(inv_[\w-]+)", told.text)
        assert link, told.text
        eve = it.private(it.server.user("Eve"))
        eve.send(f"/start {link[1]}")
        await eve.wait_for_text(lambda text: text.startswith("You may talk to me now."))
        slow = it.llm.answer("A very long answer.").stall_after(1)
        eve.send("hi")
        await slow.reached.wait()
        it.owner.send(f"/revoke telegram:{eve.id}")
        await it.owner.wait_for_text(lambda text: "may not talk to me any more" in text)
        await eve.wait_for_text(lambda text: "Stopped." in text)
        eve.send("still there?")
        await eve.wait_for_text(unknown)
        assert len(it.llm.requests) == 1


@pytest.mark.parametrize("button", ["Allow", "Refuse and leave"])
async def test_telegram_an_unknown_group_waits_for_an_owner(tmp_path: Path, button: str) -> None:
    async with telegram(tmp_path) as it:
        eve = it.server.user("Eve")
        group = it.server.group("Zoo", members=[eve], bot_status="left")
        group.add_bot(eve)
        line = await group.wait_for_text(lambda text: "I do not know this group" in text)
        assert str(group.id) in line.text
        asked = await it.owner.wait_for_button("Allow")
        assert f"in the group Zoo (telegram:{group.id})" in asked.text
        group.send("/ask hello?", sender=eve)
        await press(it.owner, asked, button)
        if button == "Allow":
            greeting = await group.wait_for_text(lambda text: text.startswith("Hello."))
            assert all(word in greeting.text for word in ("/limits", "/privacy", str(group.id)))
            it.llm.answer("Roar.")
            group.send("/ask and now?", sender=eve)
            await group.wait_for_text("Roar.")
        else:
            await it.server.wait_for(lambda: group.bot_status == "left")
        assert len(it.llm.requests) == (button == "Allow")


async def test_telegram_members_of_a_named_group_are_let_in_until_they_leave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.access.members.KNOWN_S", 0.0)
    async with telegram(tmp_path, members_of=["-100500"]) as it:
        eve = it.server.user("Eve")
        club = it.server.group("Club", members=[eve], id=-100500)
        chat = it.private(eve)
        it.llm.answer("Hello member.")
        chat.send("hi")
        await chat.wait_for_text("Hello member.")
        club.members_hidden = True
        chat.send("hi again")
        await chat.wait_for_text(lambda text: text.startswith("I cannot find out right now"))
        club.members_hidden = False
        club.leave(eve)
        chat.send("and now?")
        await chat.wait_for_text(unknown)
        assert len(it.llm.requests) == 1


async def test_telegram_an_owner_who_never_wrote_is_named_in_the_status(tmp_path: Path) -> None:
    async with TelegramServer() as server, llm_server() as llm:
        ana, bo = server.user("Ana"), server.user("Bo")
        owners = [str(ana.id), str(bo.id)]
        made = config(llm, telegram=telegram_settings(server, owners=owners))
        async with running(made, tmp_path):
            chat = server.private(ana)
            chat.send("/status")
            told = await chat.wait_for_text(lambda text: "This conversation" in text)
            assert told.text.endswith(
                f"have never written to me or have blocked me: telegram:{bo.id}"
            )


# Slack ------------------------------------------------------------------------------------------------


async def test_slack_an_owner_lets_a_stranger_in_by_a_button(tmp_path: Path) -> None:
    async with slack(tmp_path) as it:
        eve = it.server.dm(it.server.user("Eve"))
        eve.send("let me in")
        code_in((await eve.wait_for_text("I do not know you yet")).shown)
        asked = await it.owner.wait_for_text("would like to talk to me")
        assert [one.text for one in asked.buttons] == ["Allow", "Refuse"]
        it.owner.press(asked, "Allow")
        await eve.wait_for_text("You may talk to me now.")
        await it.server.wait_for(lambda: "may talk to me in private now" in asked.shown)
        assert asked.buttons == []
        it.llm.answer("Hello Eve.")
        eve.send("hi")
        await eve.wait_for_text("Hello Eve.")


async def test_slack_a_code_and_an_invitation_work_as_messages(tmp_path: Path) -> None:
    async with slack(tmp_path) as it:
        ana = it.owner.members[0]
        eve, mal = (it.server.dm(it.server.user(name)) for name in ("Eve", "Mal"))
        eve.send("hello")
        code = code_in((await eve.wait_for_text("I do not know you yet")).shown)
        it.owner.slash("/galata", f"approve {code}", ana)
        await eve.wait_for_text("You may talk to me now.")
        it.owner.slash("/galata", "invite 1 2h", ana)
        told = await it.owner.wait_for_text("Whoever sends me this code")
        invitation = re.search(r"inv_[\w-]+", told.shown)
        assert invitation
        mal.send(invitation[0])
        await mal.wait_for_text("You may talk to me now.")
        it.owner.slash("/galata", f"revoke slack:{mal.members[0].id}", ana)
        await it.owner.wait_for_text("may not talk to me any more")
        mal.send("hi")
        await mal.wait_for_text("I do not know you yet")
        assert it.llm.requests == []


async def test_slack_full_members_are_let_in_and_guests_and_others_are_not(tmp_path: Path) -> None:
    async with slack(tmp_path, workspace_members=True) as it:
        full = it.server.dm(it.server.user("Bo"))
        it.llm.answer("Hello member.")
        full.send("hi")
        await full.wait_for_text("Hello member.")
        for who in (
            it.server.user("Gus", is_restricted=True),
            it.server.user("Uli", is_ultra_restricted=True),
            it.server.user("Fay", team_id="T0OTHER001"),
        ):
            chat = it.server.dm(who)
            chat.send("hi")
            await chat.wait_for_text("Here I answer full members of this workspace")
        assert len(it.llm.requests) == 1


async def test_slack_what_cannot_be_read_is_a_no(tmp_path: Path) -> None:
    async with slack(tmp_path, workspace_members=True) as it:
        it.server.scopes.remove("users:read")
        chat = it.server.dm(it.server.user("Bo"))
        chat.send("hi")
        await chat.wait_for_text("I cannot find out right now whether you may use me")
        assert it.llm.requests == []


@pytest.mark.parametrize("button", ["Allow", "Refuse and leave"])
@pytest.mark.parametrize("private", [False, True])
async def test_slack_an_unknown_channel_waits_for_an_owner(
    tmp_path: Path, button: str, private: bool
) -> None:
    async with slack(tmp_path) as it:
        eve = it.server.user("Eve")
        channel = it.server.channel("zoo", members=[eve], private=private)
        channel.join(it.server.bot, eve)
        await channel.wait_for_text("I do not know this group yet")
        asked = await it.owner.wait_for_text(f"(`slack:{eve.id}`) wants me in the group zoo")
        it.owner.press(asked, button)
        if button == "Allow":
            greeting = await channel.wait_for_text("Hello.")
            assert "/galata limits" in greeting.shown
            it.llm.answer("Roar.")
            channel.send("<@BOT> hi", eve)
            await channel.wait_for_text("Roar.")
        else:
            await it.server.wait_for(lambda: not channel.has_bot)
        assert len(it.llm.requests) == (button == "Allow")


async def test_slack_a_shared_channel_is_silent_though_it_is_listed(tmp_path: Path) -> None:
    async with SlackServer() as server, llm_server() as llm:
        ana, eve = server.user("Ana"), server.user("Eve")
        shared = server.channel("shared", members=[eve])
        shared.is_ext_shared = True
        settings = slack_settings(server, owners=[ana.id], allowed=[shared.id])
        async with running(config(llm, slack=settings), tmp_path):
            await server.wait_for_connection(1)
            shared.send("<@BOT> hi", eve)
            await shared.wait_for_text("in channels that no other organisation reads")
            assert llm.requests == []


async def test_slack_an_app_that_may_not_leave_says_so(tmp_path: Path) -> None:
    async with slack(tmp_path) as it:
        it.server.scopes.remove("channels:manage")
        channel = it.server.channel("zoo", members=[it.server.user("Eve")])
        channel.join(it.server.bot)
        asked = await it.owner.wait_for_text("wants me in the group zoo")
        it.owner.press(asked, "Refuse and leave")
        await it.owner.wait_for_text("I cannot leave zoo")
        assert channel.has_bot


async def test_telegram_a_group_without_an_answer_is_left_also_over_a_restart(
    tmp_path: Path,
) -> None:
    async with telegram(tmp_path) as it:
        group = it.server.group("Zoo", members=[it.server.user("Eve")], bot_status="left")
        group.add_bot()
        await it.owner.wait_for_button("Refuse and leave")
        await it.app.stop()
        with sqlite3.connect(it.data / "galata.db") as connection:
            connection.execute(
                "UPDATE jobs SET due_at = '2026-01-01T00:00:00' WHERE kind = 'leave_group'"
            )
        connection.close()
        await it.app.start()
        await it.server.wait_for(lambda: group.bot_status == "left")
