"""Telegram end to end: the real SDKs, the local Bot API server, a strict local model endpoint."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge.cli.running import ask_running
from memory.database import Database
from memory.transcripts import READING
from tests.e2e.bed import App, config, llm_server, running, telegram_settings
from tests.servers.llm import LlmServer, tool
from tests.servers.pictures import cut_png, huge_png, noise_png, sent_sizes
from tests.servers.telegram import TelegramServer


@dataclass
class World:
    telegram: TelegramServer
    llm: LlmServer
    app: App
    ana: Any
    chat: Any


@pytest.fixture(params=["anthropic", "openai"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as telegram, llm_server(request.param) as llm:
        ana = telegram.user("Ana", language_code="en")
        chat = telegram.private(ana)
        made = config(
            llm,
            kind=request.param,
            telegram=telegram_settings(telegram, owners=[str(ana.id)], allowed=["-100500"]),
        )
        async with running(made, tmp_path) as app:
            await telegram.wait_for_poll()
            yield World(telegram, llm, app, ana, chat)


async def test_a_question_gets_a_streamed_answer_in_one_message(world: World) -> None:
    reply = world.llm.answer("Hello **Ana**, how are you today?").stall_after(1)
    world.chat.send("hi")
    await reply.reached.wait()
    preview = await world.chat.wait_for_button("Stop")
    reply.release()
    final = await world.chat.wait_for_text("Hello Ana, how are you today?")
    assert final.id == preview.id
    assert final.buttons == []
    assert [entity["type"] for entity in final.entities] == ["bold"]
    assert len(world.chat.bot_messages) == 1


async def test_with_privacy_mode_on_a_group_is_answered_by_ask_and_by_reply(world: World) -> None:
    group = world.telegram.group("Team", members=[world.ana], id=-100500)
    world.llm.answer("By ask.")
    group.send("/ask what else?", sender=world.ana)
    answer = await group.wait_for_text("By ask.")
    assert world.llm.requests[-1].last_user_text == "[Ana#1] what else?"
    world.llm.answer("By reply.")
    group.send("and then?", sender=world.ana, reply_to=answer)
    await group.wait_for_text("By reply.")


async def test_with_privacy_off_a_mention_is_heard_and_other_text_is_not(tmp_path: Path) -> None:
    async with TelegramServer(privacy_mode=False) as telegram, llm_server() as llm:
        ana = telegram.user("Ana")
        group = telegram.group("Team", members=[ana], id=-100500)
        made = config(llm, telegram=telegram_settings(telegram, owners=[str(ana.id)]))
        async with running(made, tmp_path):
            llm.answer("Yes?")
            group.send("just chatting", sender=ana)
            group.send(f"@{telegram.bot.username} hello", sender=ana)
            await group.wait_for_text("Yes?")
            assert [request.last_user_text for request in llm.requests] == ["[Ana#1] hello"]


async def test_a_photo_reaches_the_model(world: World) -> None:
    world.llm.answer("A grey picture.")
    world.chat.send_photo(caption="what is this?")
    await world.chat.wait_for_text("A grey picture.")
    assert "image" in str(world.llm.requests[-1].messages[-1]["content"])


async def test_a_picture_sent_as_a_file_of_12_mb_reaches_the_model(world: World) -> None:
    data = noise_png(2_300, 1_800)
    assert len(data) > 12_000_000
    world.llm.answer("Noise.")
    world.chat.send_document("scan.png", data, mime_type="image/png", caption="what is this?")
    await world.chat.wait_for_text("Noise.")
    assert sent_sizes(world.llm.requests[-1]) == [(1_568, 1_227)]


async def test_a_picture_that_cannot_be_opened_is_said(world: World) -> None:
    world.chat.send_document("cut.png", cut_png(), mime_type="image/png")
    await world.chat.wait_for_text(lambda text: "damaged" in text)
    world.chat.send_document("huge.png", huge_png(), mime_type="image/png")
    await world.chat.wait_for_text(lambda text: "megapixels" in text)
    assert world.llm.requests == []


async def test_a_tool_is_called_and_answers(world: World) -> None:
    world.llm.answer(tool("current_time", {}))
    world.llm.answer("It is late.")
    world.chat.send("what time is it?")
    await world.chat.wait_for_text("It is late.")
    assert "(Europe/Berlin)" in str(world.llm.requests[-1].body)


@pytest.mark.parametrize("how", ["command", "word", "button"])
async def test_stop_ends_a_stalled_stream(world: World, how: str) -> None:
    reply = world.llm.answer("A very long answer, indeed.").stall_after(1)
    world.chat.send("hi")
    await reply.reached.wait()
    preview = await world.chat.wait_for_button("Stop")
    if how == "button":
        press = world.chat.press(preview, "Stop")
    elif how == "word":
        world.chat.send("stop")
    else:
        world.chat.send("/cancel")
    stopped = await world.chat.wait_for_text(lambda text: text.endswith("Stopped."))
    assert stopped.buttons == []
    await world.llm.wait_for(lambda: world.llm.requests[-1].disconnected)
    if how == "button":
        await world.telegram.wait_for(lambda: press.answered)
    assert len(world.chat.bot_messages) == 1
    world.llm.answer("fine")
    world.chat.send("go on")
    await world.chat.wait_for_text("fine")


async def test_stop_while_queued_behind_another(world: World) -> None:
    bo = world.telegram.user("Bo")
    group = world.telegram.group("Team", members=[world.ana, bo], id=-100500)
    reply = world.llm.answer("For Ana only.").stall_after(1)
    group.send("/ask first", sender=world.ana)
    await reply.reached.wait()
    queued = group.send("/ask second", sender=bo)
    await world.telegram.wait_for(lambda: group.find(queued.id).reactions)
    group.send("/cancel", sender=bo)
    await group.wait_for_text(lambda text: "dropped: 1" in text)
    reply.release()
    await group.wait_for_text("For Ana only.")
    assert len(world.llm.requests) == 1


async def test_a_restart_keeps_the_conversation(world: World) -> None:
    world.llm.answer("Noted.")
    world.chat.send("My cat is called Pablo.")
    await world.chat.wait_for_text("Noted.")
    await world.app.stop()
    world.chat.send("What is my cat called?")
    world.llm.answer("Pablo.")
    await world.app.start()
    await world.chat.wait_for_text("Pablo.")
    assert "My cat is called Pablo." in str(world.llm.requests[-1].messages)
    assert len(world.llm.requests) == 2


async def test_two_chats_do_not_wait_for_each_other(world: World) -> None:
    group = world.telegram.group("Team", members=[world.ana], id=-100500)
    slow = world.llm.answer("Slow one here.").stall_after(1)
    world.chat.send("hi")
    await slow.reached.wait()
    world.llm.answer("Quick.")
    group.send("/ask hi", sender=world.ana)
    await group.wait_for_text("Quick.")
    slow.release()
    await world.chat.wait_for_text("Slow one here.")


async def test_a_stranger_is_told_a_code_and_their_id_once(world: World) -> None:
    eve = world.telegram.user("Eve")
    chat = world.telegram.private(eve)
    chat.send("let me in")
    await chat.wait_for_text(lambda text: str(eve.id) in text)
    for _ in range(2):
        chat.send("please")
        await chat.wait_for_text(lambda text: "has not answered yet" in text)
    chat.send("/help")
    await chat.wait_for_text(lambda text: "/cancel" in text)
    assert len(chat.bot_messages) == 3
    assert world.llm.requests == []


async def test_a_pasted_text_reaches_the_model_as_it_was(world: World) -> None:
    code = "\n".join(f"    line {number} = {'x' * 30}" for number in range(200)).strip()
    world.llm.answer("Read.")
    assert len(world.chat.paste(code)) == 3
    await world.chat.wait_for_text("Read.")
    assert world.llm.requests[0].last_user_text == code


async def test_a_redelivered_update_is_answered_once(world: World) -> None:
    world.llm.answer("Once.")
    message = world.chat.send("hi")
    await world.chat.wait_for_text("Once.")
    world.telegram.redeliver(message)
    await world.telegram.wait_until_confirmed()
    world.llm.answer("Next.")
    world.chat.send("and?")
    await world.chat.wait_for_text("Next.")
    assert len(world.llm.requests) == 2


async def test_a_poison_update_does_not_block_the_queue(world: World) -> None:
    world.telegram.push_raw({"message": {"message_id": "x", "chat": 5}})
    world.llm.answer("Still here.")
    world.chat.send("hi")
    await world.chat.wait_for_text("Still here.")


async def test_a_long_answer_comes_whole_and_in_order(world: World) -> None:
    long = "\n\n".join(f"Paragraph {i}: " + "word " * 60 for i in range(40))
    world.llm.answer(long)
    world.chat.send("tell me everything")
    await world.chat.wait_for_text(lambda text: "Paragraph 39" in text)
    texts = [message.text for message in world.chat.bot_messages]
    parts = [text.removesuffix(f"\n\n{n}/{len(texts)}") for n, text in enumerate(texts, start=1)]
    assert all(part != text for part, text in zip(parts, texts, strict=True))
    assert "".join("".join(parts).split()) == "".join(long.split())


async def test_an_error_is_one_sentence_with_an_id(world: World) -> None:
    world.llm.fail(401, "invalid x-api-key")
    world.chat.send("hi")
    await world.chat.wait_for_text(lambda text: "Error id: " in text)
    assert "x-api-key" not in world.chat.last.text


async def test_the_token_never_reaches_database_or_chat(world: World, tmp_path: Path) -> None:
    world.telegram.fail_next("getUpdates", status=500)
    world.llm.answer("Hello.")
    world.chat.send("hi")
    await world.chat.wait_for_text("Hello.")
    await world.app.stop()
    secret = world.telegram.token.split(":")[1].encode()
    files = await asyncio.to_thread(lambda: [f for f in tmp_path.rglob("*") if f.is_file()])
    assert files
    contents = [await asyncio.to_thread(file.read_bytes) for file in files]
    assert not any(secret in content for content in contents)
    await world.app.start()


async def test_a_stop_button_that_a_block_has_left_goes_when_the_person_is_back(
    world: World,
) -> None:
    reply = world.llm.answer("A long answer, indeed.").stall_after(1)
    world.chat.send("hi")
    await reply.reached.wait()
    preview = await world.chat.wait_for_button("Stop")
    world.chat.block()
    reply.release()
    await world.app.stop()  # the answer is found undeliverable and closed by then
    await world.app.start()
    world.chat.unblock()
    world.llm.answer("Welcome back.")
    world.chat.send("back")
    await world.chat.wait_for_text("Welcome back.")
    await world.telegram.wait_for(lambda: not any(m.buttons for m in world.chat.messages))
    assert preview in world.chat.messages, "its text stays"


async def test_who_reads_a_conversation_is_noted_by_the_bot_that_runs(
    world: World, tmp_path: Path
) -> None:
    read = {"actor": "os:ana", "session": "telegram:1:2"}
    await asyncio.to_thread(ask_running, tmp_path, READING, **read)
    database = await Database.open_beside(tmp_path / "galata.db")
    rows = await database.read("SELECT actor, action, target FROM audit ORDER BY id DESC LIMIT 1")
    assert tuple(rows[0]) == ("os:ana", READING, "telegram:1:2")
    await database.close()


async def test_garbage_is_collected_again_once_everything_is_loaded(world: World) -> None:
    """The command line collects none while modules are imported (`bridge.cli.run`)."""
    await world.app.stop()
    gc.disable()
    try:
        await world.app.start()
        world.chat.send("hi")
        await world.telegram.wait_for(gc.isenabled)
    finally:
        gc.enable()
