"""The local Bot API keeps Telegram's rules and words, seen through python-telegram-bot."""

import asyncio
import io
from collections.abc import AsyncIterator

import pytest
import telegram
from telegram import (
    BotCommand,
    BotCommandScopeAllPrivateChats,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TimedOut,
)

from tests.servers.telegram import ApiError, Chat, TelegramServer
from tests.servers.telegram_bot import call, client, make_bot, messages, receive, running
from tests.servers.telegram_faults import FloodControl

TOO_OLD = "query is too old and response timeout expired or query id is invalid"
STOP = InlineKeyboardMarkup([[InlineKeyboardButton("Stop", callback_data="stop:1")]])


@pytest.fixture(autouse=True)
def _durations(monkeypatch: pytest.MonkeyPatch) -> None:
    """PTB warns on each RetryAfter unless this is set."""
    monkeypatch.setenv("PTB_TIMEDELTA", "1")


@pytest.fixture
def server() -> TelegramServer:
    return TelegramServer()


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[telegram.Bot]:
    async with running(server) as made:
        yield made


@pytest.fixture
def chat(server: TelegramServer) -> Chat:
    return server.private(server.user("Ana", language_code="en", username="ana"))


def late(start: int, end: int) -> str:
    return (
        f"entity beginning at utf-16 offset {start} ends after the end of the text "
        f"at utf-16 offset {end}"
    )


def refusal(error: pytest.ExceptionInfo[BaseException]) -> str:
    """PTB strips "Bad Request: " and capitalises."""
    return str(error.value).lower()


async def test_a_text_comes_in_and_an_answer_is_seen(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    waiting = asyncio.create_task(bot.get_updates(timeout=5))
    await server.wait_for_poll()
    chat.send("hello `x`")
    (update,) = await waiting
    assert update.message is not None
    assert update.message.text == "hello x"
    assert update.message.entities == (MessageEntity("code", 6, 1),)
    assert update.message.from_user is not None
    assert update.message.from_user.language_code == "en"
    sent = await bot.send_message(chat.id, "…", reply_markup=STOP)
    assert (await chat.wait_for_button("Stop")).text == "…"
    await bot.edit_message_text("done", chat.id, sent.message_id)
    message = await chat.wait_for_text("done")
    assert message.history == ["…", "done"]
    assert message.buttons == []
    assert [c.method for c in server.calls if "essage" in c.method] == [
        "sendMessage",
        "editMessageText",
    ]
    assert server.calls_to("sendMessage", chat)[0].param("reply_markup") == STOP.to_dict()


async def test_get_me_tells_privacy_mode_and_topics() -> None:
    async with running(TelegramServer(privacy_mode=False, topics_enabled=True)) as bot:
        me = await bot.get_me()
        assert me.can_read_all_group_messages
        assert me.has_topics_enabled
        assert me.username == "galata_test_bot"


async def test_wrong_tokens_and_methods_are_refused_with_the_right_status(
    server: TelegramServer, bot: telegram.Bot
) -> None:
    assert await call(bot, "getMe", token="999:other") == (
        401,
        {"ok": False, "error_code": 401, "description": "Unauthorized"},
    )
    assert (await call(bot, "getMe", token="nonsense"))[0] == 404
    assert await call(bot, "sendMesage") == (
        404,
        {"ok": False, "error_code": 404, "description": "Not Found: method not found"},
    )
    with pytest.raises(InvalidToken):
        async with make_bot(server, "999:other"):
            pass


async def test_parameters_come_by_json_form_query_and_in_any_case(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    http = client(bot)
    body = {
        "chat_id": chat.id,
        "text": "json",
        "entities": [{"type": "bold", "offset": 0, "length": 4}],
    }
    assert (await http.post(f"{bot.base_url}/sendmessage", json=body)).status_code == 200
    query: dict[str, str] = {"chat_id": str(chat.id), "text": "query"}
    assert (await http.get(f"{bot.base_url}/SENDMESSAGE", params=query)).status_code == 200
    assert (await http.post(f"{bot.base_url}/sendMessage", data=query)).status_code == 200
    broken = await http.post(f"{bot.base_url}/sendMessage", data=query | {"entities": "[{"})
    assert broken.json()["description"] == "Bad Request: can't parse entities JSON object"
    assert chat.texts == ["json", "query", "query"]
    assert chat.messages[0].formatted == [("bold", "json")]


# ---- getUpdates ---------------------------------------------------------------------------------


async def test_updates_stay_until_the_offset_confirms_them(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    for text in ("a", "b", "c"):
        chat.send(text)
    first = await bot.get_updates(limit=2)
    again = await bot.get_updates()
    assert [u.update_id for u in first] == [u.update_id for u in again[:2]]
    rest = await bot.get_updates(offset=first[-1].update_id + 1)
    assert [u.message.text for u in rest if u.message] == ["c"]
    assert server.updates.pending == 1
    assert [u.message.text for u in await bot.get_updates(offset=-1) if u.message] == ["c"]
    await bot.get_updates(offset=rest[0].update_id + 1)
    await server.wait_until_confirmed()


async def test_a_poll_without_updates_ends_at_its_timeout(bot: telegram.Bot) -> None:
    assert await bot.get_updates(timeout=1) == ()


async def test_allowed_updates_filter_what_is_queued_and_are_remembered(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    message = chat.send("hi")
    chat.react(message, "👍")
    assert [u.message_reaction for u in await receive(bot)] == [None]
    await bot.get_updates(allowed_updates=["message_reaction"])
    chat.send("not wanted")
    chat.react(message, "👍", "🔥")
    (update,) = await receive(bot)
    assert update.message_reaction is not None
    new = update.message_reaction.new_reaction
    assert [r.to_dict()["emoji"] for r in new] == ["👍", "🔥"]
    await bot.get_updates(allowed_updates=[])
    chat.send("wanted")
    assert len(await receive(bot)) == 1
    assert (await bot.get_webhook_info()).pending_update_count == 0


async def test_a_second_poller_ends_the_first(server: TelegramServer, bot: telegram.Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=30))
    await server.wait_for_poll()
    async with make_bot(server) as other:
        second = asyncio.create_task(other.get_updates(timeout=30))
        with pytest.raises(Conflict, match="terminated by other getUpdates request"):
            await first
        await server.wait_for_poll()
        server.end_poll()
        with pytest.raises(Conflict):
            await second


async def test_a_webhook_excludes_polling(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    polling = asyncio.create_task(bot.get_updates(timeout=30))
    await server.wait_for_poll()
    await bot.set_webhook("https://example.org/hook", allowed_updates=["message"])
    with pytest.raises(Conflict, match="terminated by setWebhook"):
        await polling
    with pytest.raises(Conflict, match="while webhook is active"):
        await bot.get_updates()
    info = await bot.get_webhook_info()
    assert (info.url, info.allowed_updates) == ("https://example.org/hook", ("message",))
    with pytest.raises(BadRequest, match="https"):
        await bot.set_webhook("http://example.org")
    chat.send("dropped")
    await bot.delete_webhook(drop_pending_updates=True)
    assert await bot.get_updates() == ()


async def test_a_vanished_poller_loses_nothing(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    polling = asyncio.create_task(bot.get_updates(timeout=30))
    await server.wait_for_poll()
    polling.cancel()
    await server.wait_for(lambda: not server.updates.polled)
    chat.send("still there")
    assert len(await receive(bot)) == 1


async def test_raw_and_repeated_updates_are_delivered_as_given(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    message = chat.send("once")
    server.redeliver(message)
    first, second = await receive(bot)
    assert first.message == second.message
    assert first.update_id < second.update_id
    poison = server.push_raw({"message": {"message_id": "?"}})
    status, body = await call(bot, "getUpdates")
    assert (status, body["result"]) == (
        200,
        [{"update_id": poison, "message": {"message_id": "?"}}],
    )


# ---- text and entities --------------------------------------------------------------------------


async def test_text_is_at_most_4096_utf16_units_after_trimming(
    bot: telegram.Bot, chat: Chat
) -> None:
    await bot.send_message(chat.id, "😀" * 2048 + "  \n")
    for text in ("😀" * 2048 + "a", "a" * 4097):
        with pytest.raises(BadRequest) as error:
            await bot.send_message(chat.id, text)
        assert refusal(error) == "message is too long"
    sent = await bot.send_message(chat.id, "  short  ")
    assert sent.text == "short"
    with pytest.raises(BadRequest, match="Message is too long"):
        await bot.edit_message_text("a" * 4097, chat.id, sent.message_id)


@pytest.mark.parametrize(
    ("text", "words"), [("", "message text is empty"), (" \n\t", "text must be non-empty")]
)
async def test_empty_text_is_refused(bot: telegram.Bot, chat: Chat, text: str, words: str) -> None:
    with pytest.raises(BadRequest) as error:
        await bot.send_message(chat.id, text)
    assert refusal(error) == words


async def test_a_caption_is_at_most_1024_units(bot: telegram.Bot, chat: Chat) -> None:
    sent = await bot.send_document(chat.id, io.BytesIO(b"x"), filename="a.txt", caption="😀" * 512)
    assert chat.messages[0].text == "😀" * 512
    assert sent.document is not None
    with pytest.raises(BadRequest, match="Message caption is too long"):
        await bot.send_document(chat.id, sent.document, caption="a" * 1025)


@pytest.mark.parametrize(
    ("entities", "words"),
    [
        ([("bold", 7, 1)], "entity begins after the end of the text at utf-16 offset 7"),
        ([("bold", 3, 9)], late(3, 12)),
        ([("bold", 6, 1)], late(6, 7)),
        ([("bold", 2, 1)], "entity begins in a middle of a utf-16 symbol at byte offset 1"),
        ([("bold", 0, 2)], "entity ends in a middle of a utf-16 symbol at byte offset 1"),
        ([("sparkle", 0, 1)], "can't parse messageentity: unsupported type specified"),
        ([("text_link", 0, 1)], "can't parse messageentity: can't find field \"url\""),
        ([("bold", 0, 4), ("italic", 3, 2)], late(3, 5)),
        ([("code", 0, 4), ("bold", 1, 2)], late(1, 3)),
        ([("blockquote", 0, 5), ("blockquote", 1, 2)], late(1, 3)),
        ([("bold", 0, 1)] * 101, "entities_too_long"),
        ([("bold", 0, 0)], "entity has an empty or negative range at utf-16 offset 0"),
    ],
)
async def test_illegal_entities_are_refused(
    bot: telegram.Bot, chat: Chat, entities: list[tuple[str, int, int]], words: str
) -> None:
    text = "a😀bcd"  # 6 UTF-16 units, the emoji is 1 and 2
    with pytest.raises(BadRequest) as error:
        await bot.send_message(chat.id, text, entities=[MessageEntity(*e) for e in entities])
    assert refusal(error) == words
    assert chat.messages == []


async def test_a_text_link_needs_a_url_that_could_be_one(bot: telegram.Bot, chat: Chat) -> None:
    for url in ("localhost", "ftp://example.org", "javascript://example.org"):
        with pytest.raises(BadRequest, match="is invalid"):
            await bot.send_message(
                chat.id, "x", entities=[MessageEntity("text_link", 0, 1, url=url)]
            )
    for url in ("https://example.org/a_b?c", "example.org", "tg://user?id=5"):
        link = MessageEntity("text_link", 0, 1, url=url)
        assert (await bot.send_message(chat.id, "x", entities=[link])).entities == (link,)


async def test_nested_entities_survive_and_move_with_the_trimmed_text(
    bot: telegram.Bot, chat: Chat
) -> None:
    entities = [MessageEntity("bold", 2, 6), MessageEntity("italic", 4, 2)]
    await bot.send_message(chat.id, "  😀abcd @someone", entities=entities)
    assert chat.last is not None
    assert chat.last.formatted == [("bold", "😀abcd"), ("italic", "ab"), ("mention", "@someone")]


async def test_parse_mode_is_refused_since_the_bot_sends_entities(
    bot: telegram.Bot, chat: Chat
) -> None:
    with pytest.raises(BadRequest, match="no parse_mode"):
        await bot.send_message(chat.id, "x", parse_mode="HTML")


# ---- editing, deleting, replying ----------------------------------------------------------------


async def test_an_edit_without_a_change_is_refused(bot: telegram.Bot, chat: Chat) -> None:
    sent = await bot.send_message(chat.id, "same", reply_markup=STOP)
    status, body = await call(
        bot,
        "editMessageText",
        chat_id=chat.id,
        message_id=sent.message_id,
        text="same\n",
        reply_markup=STOP.to_dict(),
    )
    assert status == 400
    assert body["description"] == (
        "Bad Request: message is not modified: specified new message content and reply markup are "
        "exactly the same as a current content and reply markup of the message"
    )
    await bot.edit_message_text("same", chat.id, sent.message_id)  # the buttons go: a change
    with pytest.raises(BadRequest, match="not modified"):
        await bot.edit_message_reply_markup(chat.id, sent.message_id)
    await bot.edit_message_reply_markup(chat.id, sent.message_id, reply_markup=STOP)
    assert chat.messages[0].buttons == ["Stop"]
    assert chat.messages[0].history == ["same"]


async def test_only_own_visible_messages_can_be_edited(bot: telegram.Bot, chat: Chat) -> None:
    theirs = chat.send("mine")
    mine = await bot.send_message(chat.id, "yours")
    for message_id, words in ((theirs.id, "can't be edited"), (999, "to edit not found")):
        with pytest.raises(BadRequest, match=words):
            await bot.edit_message_text("x", chat.id, message_id)
    await bot.delete_message(chat.id, mine.message_id)
    with pytest.raises(BadRequest, match="Message to edit not found"):
        await bot.edit_message_text("x", chat.id, mine.message_id)
    with pytest.raises(BadRequest, match="Message to delete not found"):
        await bot.delete_message(chat.id, mine.message_id)
    old = await bot.send_message(chat.id, "old")
    chat.all_messages[old.message_id].editable = False
    with pytest.raises(BadRequest, match="Message can't be edited"):
        await bot.edit_message_text("x", chat.id, old.message_id)


async def test_a_reply_needs_its_message_unless_said_otherwise(
    bot: telegram.Bot, chat: Chat
) -> None:
    asked = chat.send("question")
    await bot.send_message(chat.id, "answer", reply_parameters=ReplyParameters(asked.id))
    assert chat.messages[-1].reply_to == asked.id
    chat.delete(asked)
    with pytest.raises(BadRequest) as error:
        await bot.send_message(chat.id, "answer", reply_parameters=ReplyParameters(asked.id))
    assert refusal(error) == "message to be replied not found"
    anyway = ReplyParameters(asked.id, allow_sending_without_reply=True)
    await bot.send_message(chat.id, "anyway", reply_parameters=anyway)
    assert chat.messages[-1].reply_to is None


async def test_callback_data_is_1_to_64_bytes(bot: telegram.Bot, chat: Chat) -> None:
    def keyboard(data: str) -> InlineKeyboardMarkup:
        return InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data=data)]])

    await bot.send_message(chat.id, "x", reply_markup=keyboard("é" * 32))
    for data in ("", "é" * 33):
        status, body = await call(
            bot,
            "sendMessage",
            chat_id=chat.id,
            text="x",
            reply_markup={"inline_keyboard": [[{"text": "x", "callback_data": data}]]},
        )
        assert (status, body["description"]) == (400, "Bad Request: BUTTON_DATA_INVALID")


async def test_a_press_is_answered_once_and_in_time(bot: telegram.Bot, chat: Chat) -> None:
    await bot.send_message(chat.id, "…", reply_markup=STOP)
    press = chat.press(chat.bot_messages[-1], "Stop")
    (update,) = await receive(bot)
    query = update.callback_query
    assert query is not None
    assert (query.data, query.id) == ("stop:1", press.id)
    await query.answer("Stopping")
    assert press.answer_text == "Stopping"
    with pytest.raises(BadRequest) as error:
        await query.answer()
    assert refusal(error) == TOO_OLD
    late = chat.press(chat.bot_messages[-1], "Stop")
    late.expired = True
    for query_id in (late.id, "123"):
        with pytest.raises(BadRequest) as error:
            await bot.answer_callback_query(query_id)
        assert refusal(error) == TOO_OLD


async def test_a_press_on_a_deleted_message_carries_an_inaccessible_one(
    bot: telegram.Bot, chat: Chat
) -> None:
    sent = await bot.send_message(chat.id, "…", reply_markup=STOP)
    message = chat.all_messages[sent.message_id]
    chat.delete(message)
    chat.press(message, "Stop")
    (update,) = await receive(bot)
    assert update.callback_query is not None
    assert update.callback_query.message is not None
    assert not update.callback_query.message.is_accessible


# ---- flood control and faults -------------------------------------------------------------------


async def test_scripted_flood_control_holds_one_chat(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    server.flood(chat, retry_after=7, count=2)
    status, body = await call(bot, "sendMessage", chat_id=chat.id, text="x")
    assert (status, body) == (
        429,
        {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 7",
            "parameters": {"retry_after": 7},
        },
    )
    with pytest.raises(RetryAfter):
        await bot.send_message(chat.id, "x")
    other = server.private(server.user("Ben"))
    await bot.send_message(other.id, "x")
    await bot.send_message(chat.id, "now")
    assert chat.texts == ["now"]
    server.flood(chat, retry_after=60, count=None, method="editMessageText")
    await bot.send_message(chat.id, "sending is free")
    for _ in range(3):
        with pytest.raises(RetryAfter):
            await bot.edit_message_text("x", chat.id, 1)
    assert server.floods.refused == 5


async def test_real_limits_refuse_a_burst() -> None:
    server = TelegramServer(flood_control=True)
    async with running(server) as bot:
        chat = server.private(server.user("Ana"))
        for _ in range(3):
            await bot.send_message(chat.id, "x")
        with pytest.raises(RetryAfter):
            await bot.send_message(chat.id, "x")
        await bot.send_chat_action(chat.id, "typing")  # not counted
    assert len(chat.bot_messages) == 3


def test_real_limits_are_20_a_minute_in_a_group_and_30_a_second_in_all() -> None:
    now = [1000.0]
    group = FloodControl(realistic=True, clock=lambda: now[0])
    for _ in range(20):
        group.check(-5, "sendmessage", counted=True)
        now[0] += 2
    with pytest.raises(ApiError, match="Too Many Requests: retry after 20"):
        group.check(-5, "sendmessage", counted=True)
    now[0] += 20.1
    group.check(-5, "sendmessage", counted=True)
    everyone = FloodControl(realistic=True, clock=lambda: now[0])
    for chat_id in range(1, 31):
        everyone.check(chat_id, "sendmessage", counted=True)
    with pytest.raises(ApiError):
        everyone.check(31, "sendmessage", counted=True)


@pytest.mark.parametrize("acted", [False, True])
@pytest.mark.parametrize("kind", ["drop", "reset"])
async def test_a_cut_connection_before_and_after_the_message_was_accepted(
    server: TelegramServer, bot: telegram.Bot, chat: Chat, kind: str, acted: bool
) -> None:
    fault = server.fail_next("sendMessage", drop=kind == "drop", reset=kind == "reset", acted=acted)
    with pytest.raises(NetworkError) as error:
        await bot.send_message(chat.id, "hello")
    assert not isinstance(error.value, BadRequest)
    assert (fault.used, chat.texts) == (1, ["hello"] if acted else [])
    await bot.send_message(chat.id, "again")
    assert chat.texts[-1] == "again"


async def test_errors_come_as_json_or_as_a_web_page(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    server.fail_next("sendMessage", html=True, acted=True)
    server.fail_next("sendMessage", status=500)
    server.fail_next("sendMessage", status=429, parameters={"retry_after": 3})
    server.fail_next("sendMessage", status=403, description="Forbidden: user is deactivated")
    for expected in (NetworkError, NetworkError, RetryAfter, Forbidden):
        with pytest.raises(expected):
            await bot.send_message(chat.id, "x")
    assert len(chat.messages) == 1


async def test_a_stalled_call_times_out_or_goes_on_when_released(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    server.fail_next("sendMessage", stall=True, text="first", acted=True)
    with pytest.raises(TimedOut):
        await bot.send_message(chat.id, "first", read_timeout=0.1)
    second = server.fail_next("sendMessage", stall=True, text="second")
    sending = asyncio.create_task(bot.send_message(chat.id, "second"))
    await server.wait_for(lambda: second.used)
    assert chat.texts == ["first"]
    second.release()
    await sending
    assert chat.texts == ["first", "second"]


async def test_a_fault_can_be_aimed_at_a_chat_and_a_text(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    other = server.private(server.user("Ben"))
    server.fail_next(chat=chat, text="bad", status=400, description="Bad Request: no")
    await bot.send_message(other.id, "bad")
    await bot.send_message(chat.id, "good")
    with pytest.raises(BadRequest):
        await bot.send_message(chat.id, "bad")


async def test_an_outage_keeps_the_port_and_the_state(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    polling = asyncio.create_task(bot.get_updates(timeout=30))
    await server.wait_for_poll()
    await server.stop()
    with pytest.raises(NetworkError):
        await polling
    with pytest.raises(NetworkError):
        await bot.send_message(chat.id, "x")
    chat.send("meanwhile")
    await server.start()
    assert len(await receive(bot)) == 1


# ---- access -------------------------------------------------------------------------------------


async def test_chats_without_access_are_refused_with_their_reason(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    ana = chat.someone()
    group = server.group("Team", members=[ana])
    basic = server.group("Old", members=[ana], basic=True)
    stranger = server.private(server.user("Eve"), started=False)
    group.remove_bot()
    basic.bot_leaves()
    chat.block()
    for chat_id, kind, words in (
        (5, BadRequest, "Chat not found"),
        (chat.id, Forbidden, "Forbidden: bot was blocked by the user"),
        (group.id, Forbidden, "Forbidden: bot was kicked from the supergroup chat"),
        (basic.id, Forbidden, "Forbidden: bot is not a member of the group chat"),
        (stranger.id, Forbidden, "Forbidden: bot can't initiate conversation with a user"),
    ):
        with pytest.raises(kind) as error:
            await bot.send_message(chat_id, "x")
        assert str(error.value) == words
    chat.unblock()
    await bot.send_message(chat.id, "back")
    group.add_bot()
    group.restrict_bot()
    with pytest.raises(BadRequest) as error:
        await bot.send_message(group.id, "x")
    assert refusal(error) == "not enough rights to send text messages to the chat"


async def test_a_migrated_group_names_its_new_id_and_says_so_in_both_chats(
    server: TelegramServer, bot: telegram.Bot
) -> None:
    old = server.group("Team", members=[server.user("Ana")], basic=True)
    new = old.migrate(announce=False)
    new.send("/first@galata_test_bot")
    old.announce_migration()
    status, body = await call(bot, "sendMessage", chat_id=old.id, text="x")
    assert (status, body["description"], body["parameters"]) == (
        400,
        "Bad Request: group chat was upgraded to a supergroup chat",
        {"migrate_to_chat_id": new.id},
    )
    with pytest.raises(ChatMigrated) as error:
        await bot.send_message(old.id, "x")
    assert error.value.new_chat_id == new.id
    first, out, into = await messages(bot)
    assert first.chat.id == new.id
    assert (out.chat.id, out.migrate_to_chat_id) == (old.id, new.id)
    assert (into.chat.id, into.migrate_from_chat_id) == (new.id, old.id)


# ---- files --------------------------------------------------------------------------------------


async def test_a_photo_comes_in_sizes_and_can_be_downloaded(bot: telegram.Bot, chat: Chat) -> None:
    chat.send_photo(caption="**look**", width=1280, height=960)
    (message,) = await messages(bot)
    photo = message.photo
    assert [(p.width, p.height) for p in photo] == [(90, 68), (320, 240), (800, 600), (1280, 960)]
    assert message.caption_entities == (MessageEntity("bold", 0, 4),)
    file = await bot.get_file(photo[-1].file_id)
    content = bytes(await file.download_as_bytearray())
    assert content.startswith(b"\xff\xd8\xff\xe0")
    assert content.endswith(b"\xff\xd9")
    assert len(content) == photo[-1].file_size
    assert len({p.file_unique_id for p in photo}) == 4


async def test_files_over_20_mb_and_unknown_ones_are_refused(bot: telegram.Bot, chat: Chat) -> None:
    chat.send_document("big.bin", b"x", size=20 * 2**20 + 1)
    (message,) = await messages(bot)
    assert message.document is not None
    with pytest.raises(BadRequest) as error:
        await bot.get_file(message.document.file_id)
    assert refusal(error) == "file is too big"
    with pytest.raises(BadRequest) as error:
        await bot.get_file("nonsense")
    assert refusal(error) == "wrong file_id or the file is temporarily unavailable"


async def test_a_download_can_fail_in_the_middle(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    chat.send_document("a.txt", b"x" * 100_000)
    (message,) = await messages(bot)
    assert message.document is not None
    file = await bot.get_file(message.document)
    server.fail_next("download", drop=True, acted=True)
    server.fail_next("download", drop=True)
    server.fail_next("download", status=500)
    for _ in range(3):
        with pytest.raises(NetworkError):
            await file.download_as_bytearray()
    assert bytes(await file.download_as_bytearray()) == b"x" * 100_000
    assert len(server.calls_to("download")) == 4


async def test_the_bot_sends_files_and_photos(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    await bot.send_document(chat.id, io.BytesIO(b"content"), filename="report.md", caption="here")
    seen = chat.messages[-1]
    assert (seen.text, seen.data["document"]["file_name"]) == ("here", "report.md")
    assert server.files.get(seen.data["document"]["file_id"]).content == b"content"
    await bot.send_photo(
        chat.id, server.files.get(chat.send_photo().data["photo"][0]["file_id"]).content
    )
    assert "photo" in chat.messages[-1].data
    with pytest.raises(BadRequest, match="Image_process_failed"):
        await bot.send_photo(chat.id, b"not an image")
    with pytest.raises(BadRequest, match="There is no text in the message to edit"):
        await bot.edit_message_text("x", chat.id, chat.messages[-1].id)
    await bot.edit_message_caption(chat.id, seen.id, caption="there")
    assert seen.history == ["here", "there"]


# ---- signs, settings, chats ---------------------------------------------------------------------


async def test_actions_reactions_and_drafts_are_seen_and_checked(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    message = chat.send("hi")
    await bot.send_chat_action(chat.id, "typing")
    assert [action for _, action, _ in chat.actions] == ["typing"]
    with pytest.raises(BadRequest, match="Wrong parameter action in request"):
        await bot.send_chat_action(chat.id, "dancing")
    await bot.set_message_reaction(chat.id, message.id, "👀")
    assert message.reactions == ["👀"]
    await bot.set_message_reaction(chat.id, message.id)
    assert message.reactions == []
    with pytest.raises(BadRequest, match="Reaction_invalid"):
        await bot.set_message_reaction(chat.id, message.id, "🍏")
    with pytest.raises(BadRequest, match="Message to react not found"):
        await bot.set_message_reaction(chat.id, 999, "👀")
    await bot.send_message_draft(chat.id, 1, "thin")
    await bot.send_message_draft(chat.id, 1, "thinking")
    assert [draft["text"] for draft in chat.drafts] == ["thin", "thinking"]
    group = server.group("Team", members=[chat.someone()])
    with pytest.raises(BadRequest, match="Textdraft_peer_invalid"):
        await bot.send_message_draft(group.id, 1, "x")


async def test_commands_are_kept_by_scope_and_language(bot: telegram.Bot) -> None:
    await bot.set_my_commands([BotCommand("help", "Help")])
    await bot.set_my_commands(
        [BotCommand("ayuda", "Ayuda")],
        scope=BotCommandScopeAllPrivateChats(),
        language_code="es",
    )
    assert [c.command for c in await bot.get_my_commands()] == ["help"]
    spanish = await bot.get_my_commands(BotCommandScopeAllPrivateChats(), "es")
    assert [c.command for c in spanish] == ["ayuda"]
    with pytest.raises(BadRequest, match="Bot_command_invalid"):
        await bot.set_my_commands([BotCommand("code-review", "x")])
    status, body = await call(
        bot, "setMyCommands", commands=[{"command": "a", "description": "x" * 257}]
    )
    assert (status, body["description"]) == (400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")


async def test_chats_and_members_can_be_looked_up(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    ana, ben = chat.someone(), server.user("Ben")
    group = server.group("Team", members=[ana])
    group.make_admin(ana, "creator")
    group.promote_bot()
    assert (await bot.get_chat(group.id)).title == "Team"
    assert (await bot.get_chat(chat.id)).first_name == "Ana"
    statuses = [(await bot.get_chat_member(group.id, u.id)).status for u in (ana, ben, server.bot)]
    assert statuses == ["creator", "left", "administrator"]
    admins = await bot.get_chat_administrators(group.id)
    assert [a.user.id for a in admins] == [ana.id, server.bot.id]
    with pytest.raises(BadRequest, match="There are no administrators in the private chat"):
        await bot.get_chat_administrators(chat.id)
    await bot.leave_chat(group.id)
    assert group.bot_status == "left"


async def test_of_hidden_members_only_the_administrators_are_told_to_every_bot(
    server: TelegramServer, bot: telegram.Bot
) -> None:
    ana = server.user("Ana")
    group = server.group("Team", members=[ana])
    group.make_admin(ana)
    group.members_hidden = True
    with pytest.raises(BadRequest, match="Member list is inaccessible"):
        await bot.get_chat_member(group.id, ana.id)
    assert [admin.user.id for admin in await bot.get_chat_administrators(group.id)] == [ana.id]
    group.promote_bot()
    assert (await bot.get_chat_member(group.id, ana.id)).status == "administrator"


async def test_after_log_out_nothing_works(server: TelegramServer, bot: telegram.Bot) -> None:
    assert await bot.close()
    assert await bot.log_out()
    with pytest.raises(BadRequest, match="Logged out"):
        await bot.get_updates()
    server.logged_out = False
    assert await bot.get_me()


async def test_a_wait_that_fails_shows_the_chats(
    server: TelegramServer, bot: telegram.Bot, chat: Chat
) -> None:
    await bot.send_message(chat.id, "something else")
    with pytest.raises(AssertionError, match="something else"):
        await chat.wait_for_text("hello", timeout=0.01)
