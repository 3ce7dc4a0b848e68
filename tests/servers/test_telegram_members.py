"""What members do on the local Telegram arrives at the bot as the real server sends it."""

from collections.abc import AsyncIterator

import pytest
import telegram
from telegram import MessageEntity, ReplyParameters
from telegram.error import BadRequest, Forbidden

from tests.servers.telegram import Chat, TelegramServer, User
from tests.servers.telegram_bot import messages, receive, running


@pytest.fixture
def server() -> TelegramServer:
    return TelegramServer(username="galata_bot")


@pytest.fixture
async def bot(server: TelegramServer) -> AsyncIterator[telegram.Bot]:
    async with running(server) as made:
        yield made


@pytest.fixture
def ana(server: TelegramServer) -> User:
    return server.user("Ana", username="ana")


@pytest.fixture
def group(server: TelegramServer, ana: User) -> Chat:
    return server.group("Team", members=[ana])


# ---- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "text", "entities"),
    [
        ("/ask@galata_bot 😀 why", "/ask@galata_bot 😀 why", [("bot_command", 0, 15)]),
        ("😀 @galata_bot?", "😀 @galata_bot?", [("mention", 3, 11)]),
        ("mail me@example.org", "mail me@example.org", [("email", 5, 14)]),
        ("see https://a.org/x.", "see https://a.org/x.", [("url", 4, 15)]),
        ("a/b and `/not @a command`", "a/b and /not @a command", [("code", 8, 15)]),
        ("**bold** __it__ #tag", "bold it #tag", [("bold", 0, 4), ("italic", 5, 2)]),
    ],
)
async def test_a_typed_text_gets_the_entities_that_telegram_finds(
    server: TelegramServer,
    bot: telegram.Bot,
    ana: User,
    typed: str,
    text: str,
    entities: list[tuple[str, int, int]],
) -> None:
    server.private(ana).send(typed)
    (message,) = await messages(bot)
    assert message.text == text
    assert list(message.entities)[: len(entities)] == [MessageEntity(*e) for e in entities]


async def test_a_fence_keeps_its_language_and_given_entities_are_taken_as_they_are(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    chat = server.private(ana)
    chat.send("look:\n```python\nprint('**')\n```")
    chat.send("**as is**", entities=[])
    fence, plain = await messages(bot)
    assert fence.text == "look:\nprint('**')\n"
    assert fence.entities == (MessageEntity("pre", 6, 12, language="python"),)
    assert plain.text == "**as is**"


async def test_a_long_paste_arrives_in_parts_of_4096_units(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    chat = server.private(ana)
    text = "a" * 4095 + "😀" * 2500
    chat.paste(text)
    with pytest.raises(ValueError, match="4097"):
        chat.send("a" * 4097)
    parts = [message.text or "" for message in await messages(bot)]
    assert [len(part.encode("utf-16-le")) // 2 for part in parts] == [4095, 4096, 904]
    assert "".join(parts) == text


async def test_an_edit_arrives_with_its_date_and_keeps_its_id(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    chat = server.private(ana)
    message = chat.send("frist")
    chat.edit(message, "first")
    before, after = await receive(bot)
    assert before.message is not None
    assert before.message.text == "frist"
    assert after.edited_message is not None
    assert after.edited_message.message_id == before.message.message_id
    assert after.edited_message.edit_date is not None


async def test_a_reply_and_a_quote_carry_the_message(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    chat = server.private(ana)
    await bot.send_message(chat.id, "one 😀 two three")
    chat.send("why?", reply_to=chat.last, quote="two")
    (message,) = await messages(bot)
    assert message.reply_to_message is not None
    assert message.reply_to_message.from_user == await bot.get_me()
    assert message.quote is not None
    assert (message.quote.text, message.quote.position) == ("two", 7)


async def test_albums_stickers_and_voice_arrive_as_media(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    chat = server.private(ana)
    chat.send_album(["one", "", "three"])
    chat.send_sticker("👍")
    chat.send_voice(seconds=4)
    *album, sticker, voice = await messages(bot)
    assert len({m.media_group_id for m in album}) == 1
    assert [m.caption for m in album] == ["one", None, "three"]
    assert all(m.photo for m in album)
    assert sticker.sticker is not None
    assert sticker.sticker.emoji == "👍"
    assert voice.voice is not None
    assert voice.voice.mime_type == "audio/ogg"


async def test_forwards_and_inline_messages_name_their_origin(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    chat = server.private(ana)
    chat.forward("by Ben", server.user("Ben"))
    chat.forward("by nobody", "Hidden")
    chat.forward("by a channel", server.channel("News"))
    chat.send("inline", via_bot=server.user("Gif", username="gif", is_bot=True))
    *forwards, inline = await messages(bot)
    assert [m.forward_origin.type for m in forwards if m.forward_origin] == [
        "user",
        "hidden_user",
        "channel",
    ]
    assert inline.via_bot is not None
    assert inline.via_bot.username == "gif"


# ---- groups -------------------------------------------------------------------------------------


async def test_privacy_mode_passes_commands_replies_and_service_messages_only(
    server: TelegramServer, bot: telegram.Bot, group: Chat, ana: User
) -> None:
    theirs = group.send("hello all")
    group.send("@galata_bot hello")
    group.send("/ask hi")
    group.send("/ask@galata_bot hi")
    group.send("/ask@other_bot hi")
    group.send_photo(caption="look")
    group.send("to me", reply_to=theirs)
    await bot.send_message(group.id, "answer")
    group.send("to the bot", reply_to=group.last)
    group.join(server.user("Ben"))
    seen = await messages(bot)
    assert [m.text for m in seen] == ["/ask hi", "/ask@galata_bot hi", "to the bot", None]
    assert seen[-1].new_chat_members[0].first_name == "Ben"


async def test_without_privacy_mode_or_as_administrator_the_bot_sees_all(
    server: TelegramServer, bot: telegram.Bot, group: Chat
) -> None:
    group.promote_bot()
    group.send("hello all")
    assert [m.text for m in await messages(bot) if m.text] == ["hello all"]
    open_server = TelegramServer(privacy_mode=False)
    async with running(open_server) as other:
        open_server.group("Team", members=[open_server.user("Ben")]).send("hello all")
        assert [m.text for m in await messages(other)] == ["hello all"]


async def test_the_bot_is_told_when_it_is_added_and_removed(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    group = server.group("Team", members=[ana], bot_status="left")
    group.send("/unheard")
    group.add_bot(by=ana)
    group.remove_bot(by=ana)
    group.send("/unheard")
    added, service, removed = await receive(bot)
    assert added.my_chat_member is not None
    assert added.my_chat_member.old_chat_member.status == "left"
    assert added.my_chat_member.new_chat_member.status == "member"
    assert added.my_chat_member.from_user.id == ana.id
    assert service.message is not None
    assert service.message.new_chat_members[0].id == server.bot.id
    assert removed.my_chat_member is not None
    assert removed.my_chat_member.new_chat_member.status == "kicked"


async def test_a_block_and_its_end_are_told(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    chat = server.private(ana)
    chat.block()
    with pytest.raises(Forbidden):
        await bot.send_message(chat.id, "x")
    chat.unblock()
    chat.send("/start")
    updates = await receive(bot)
    statuses = [u.my_chat_member.new_chat_member.status for u in updates if u.my_chat_member]
    assert statuses == ["kicked", "member"]


async def test_anonymous_admins_and_channels_write_by_their_service_accounts(
    bot: telegram.Bot, server: TelegramServer, group: Chat
) -> None:
    group.send_anonymously("/admin")
    group.send_as_channel("/channel", server.channel("News"))
    admin, channel = await messages(bot)
    assert admin.from_user is not None
    assert (admin.from_user.id, admin.from_user.username) == (1087968824, "GroupAnonymousBot")
    assert admin.sender_chat is not None
    assert admin.sender_chat.id == group.id
    assert channel.sender_chat is not None
    assert channel.sender_chat.title == "News"


async def test_a_channel_post_is_forwarded_into_the_discussion_group(
    server: TelegramServer, bot: telegram.Bot, group: Chat
) -> None:
    group.promote_bot()
    channel = server.channel("News", discussion=group)
    channel.send("today")
    _, post, copy = await receive(bot)
    assert post.channel_post is not None
    assert post.channel_post.from_user is None
    assert copy.message is not None
    assert copy.message.is_automatic_forward
    assert copy.message.sender_chat is not None
    assert copy.message.sender_chat.id == channel.id
    assert copy.message.from_user is not None
    assert copy.message.from_user.id == 777000
    assert (await bot.get_chat(group.id)).linked_chat_id == channel.id
    await bot.send_message(channel.id, "a post by the bot")
    assert channel.messages[-1].sender_id is None


# ---- topics -------------------------------------------------------------------------------------


async def test_messages_of_a_topic_are_marked_and_answer_its_first_message(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    forum = server.group("Forum", members=[ana], forum=True)
    topic = forum.open_topic("Deploys", creator=server.bot)
    forum.send("/ask", topic=topic)
    forum.send("not for the bot, though the bot opened the topic", topic=topic)
    opened, message = await messages(bot)
    assert opened.forum_topic_created is not None
    assert message.chat.is_forum
    assert (message.message_thread_id, message.is_topic_message) == (topic, True)
    assert message.reply_to_message is not None
    assert message.reply_to_message.forum_topic_created is not None
    sent = await bot.send_message(forum.id, "here", message_thread_id=topic)
    assert sent.is_topic_message
    answer = await bot.send_message(forum.id, "x", reply_parameters=ReplyParameters(message.id))
    assert answer.message_thread_id == topic
    assert forum.messages[-1].reply_to == message.id
    await bot.send_chat_action(forum.id, "typing", message_thread_id=topic)
    assert [thread for _, _, thread in forum.actions] == [topic]


async def test_general_has_no_thread_id_that_can_be_sent_to(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    forum = server.group("Forum", members=[ana], forum=True)
    first = forum.send("/ask", topic=1)
    forum.send("/more", reply_to=first)
    general, reply = await messages(bot)
    assert (general.message_thread_id, general.is_topic_message) == (None, None)
    assert (reply.message_thread_id, reply.is_topic_message) == (first.id, None)
    for thread in (1, first.id):
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(forum.id, "x", message_thread_id=thread)


async def test_closed_and_deleted_topics_refuse(
    server: TelegramServer, bot: telegram.Bot, ana: User
) -> None:
    forum = server.group("Forum", members=[ana], forum=True)
    topic = forum.open_topic("Deploys")
    await bot.send_message(forum.id, "x", message_thread_id=topic)
    forum.close_topic(topic)
    with pytest.raises(BadRequest, match="Topic_closed"):
        await bot.send_message(forum.id, "x", message_thread_id=topic)
    forum.delete_topic(topic)
    assert forum.messages == []
    with pytest.raises(BadRequest, match="Message thread not found"):
        await bot.send_message(forum.id, "x", message_thread_id=topic)


async def test_a_private_chat_can_have_topics(bot: telegram.Bot, ana: User) -> None:
    server = TelegramServer(topics_enabled=True)
    async with running(server) as other:
        chat = server.private(ana)
        topic = chat.open_topic("Trip")
        chat.send("hi", topic=topic)
        _, message = await messages(other)
        assert message.is_topic_message
        await other.send_message_draft(chat.id, 5, "…", message_thread_id=topic)
        assert chat.drafts[0]["message_thread_id"] == topic
