"""What an update means: who is meant, what may be executed, what cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from telegram import Update

from channels.base import Attachment, Command, InboundMessage, Press
from channels.telegram.parse import BotIdentity, parse
from tests.servers.telegram_text import as_typed

BOT = BotIdentity(99, "Galata_Bot", sees_all_group_messages=True)
NOW = datetime(2026, 11, 30, tzinfo=UTC)
ANA = {"id": 5, "is_bot": False, "first_name": "Ana", "last_name": "B", "language_code": "pt-br"}
ME = {"id": 99, "is_bot": True, "first_name": "Galata", "username": "Galata_Bot"}
PRIVATE = {"id": 5, "type": "private", "first_name": "Ana"}
GROUP = {"id": -100123, "type": "supergroup", "title": "Team"}
PHOTO = [
    {"file_id": "small", "file_unique_id": "s", "width": 90, "height": 60, "file_size": 900},
    {"file_id": "large", "file_unique_id": "l", "width": 900, "height": 600, "file_size": 90_000},
]


LIVE_PHOTO: dict[str, Any] = {
    "file_id": "video",
    "file_unique_id": "v",
    "width": 900,
    "height": 600,
    "duration": 2,
}


def message(text: str = "", chat: dict[str, Any] = PRIVATE, **fields: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"message_id": 17, "date": 1_796_000_000, "chat": chat, "from": ANA}
    if text:
        plain, entities = as_typed(text)
        data |= {"text": plain, "entities": entities}
    return data | {key.rstrip("_"): value for key, value in fields.items()}


def parsed(kind: str = "message", bot: BotIdentity = BOT, **payload: Any) -> InboundMessage | None:
    update = Update.de_json({"update_id": 1, kind: payload})
    return parse(update, bot, received_at=NOW)


def read(text: str = "", chat: dict[str, Any] = PRIVATE, **fields: Any) -> InboundMessage:
    result = parsed(**message(text, chat, **fields))
    assert result is not None
    return result


def bots_own(text: str = "my answer", **fields: Any) -> dict[str, Any]:
    return message(text, GROUP, message_id=3, from_=ME, **fields)


# ---- who is meant -------------------------------------------------------------------------------


def test_every_private_text_is_for_the_bot() -> None:
    result = read("hello")
    assert (result.text, result.addressed, result.command) == ("hello", True, None)
    assert (result.address.chat, result.address.account, result.address.private) == (
        "5",
        "99",
        True,
    )
    assert (result.sender.id, result.sender.name, result.sender.language) == ("5", "Ana B", "pt-br")
    assert (result.event, result.message_id) == ("m:17", "17")
    assert result.sent_at == datetime.fromtimestamp(1_796_000_000, UTC)


@pytest.mark.parametrize(
    ("text", "meant", "left"),
    [
        ("hello", False, "hello"),
        ("@galata_bot hello", True, "hello"),
        ("@Galata_Bot, hello", True, "hello"),
        ("hello @galata_bot how are you", True, "hello how are you"),
        ("@galata_bot", True, ""),
        ("😀 @galata_bot 😀", True, "😀 😀"),
        ("@galata_bots hello", False, "@galata_bots hello"),
        ("mail me@galata_bot.org", False, "mail me@galata_bot.org"),
        ("`@galata_bot` is its name", False, "@galata_bot is its name"),
    ],
)
def test_a_group_text_is_for_the_bot_when_an_entity_names_it(
    text: str, meant: bool, left: str
) -> None:
    result = read(text, GROUP)
    assert (result.addressed, result.text) == (meant, left)
    assert not result.address.private


def test_a_mention_without_a_username_names_a_user_by_id() -> None:
    entity = {"type": "text_mention", "offset": 0, "length": 6, "user": ME}
    assert read(chat=GROUP, text_="Galata hi", entities=[entity]).addressed
    entity = entity | {"user": ANA}
    assert not read(chat=GROUP, text_="Galata hi", entities=[entity]).addressed


def test_a_reply_to_the_bot_is_for_it_and_carries_what_was_said() -> None:
    result = read("why?", GROUP, reply_to_message=bots_own("x" * 2000))
    assert result.addressed
    assert result.quote == "x" * 1000
    other = read("why?", GROUP, reply_to_message=message("hm", GROUP))
    assert (other.addressed, other.quote) == (False, "hm")


def test_a_topic_that_the_bot_opened_does_not_make_everything_a_reply_to_it() -> None:
    root = bots_own("", forum_topic_created={"name": "T", "icon_color": 1})
    result = read("hi", GROUP, reply_to_message=root, message_thread_id=3, is_topic_message=True)
    assert (result.addressed, result.quote, result.address.thread) == (False, None, "3")


def test_a_chosen_quote_is_preferred_to_the_whole_message() -> None:
    quote = {"text": "answer", "position": 3}
    assert read("why?", GROUP, reply_to_message=bots_own(), quote=quote).quote == "answer"


def test_anonymous_admins_and_channels_are_told_apart_by_their_chat() -> None:
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    result = read("/status", GROUP, from_=anonymous, sender_chat=GROUP)
    assert (result.sender.id, result.sender.name) == ("-100123", "Team")


def test_other_bots_are_not_heard() -> None:
    other = {"id": 7, "is_bot": True, "first_name": "B"}
    assert parsed(**message("@galata_bot hi", GROUP, from_=other)) is None


# ---- where --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "thread"),
    [
        ({"message_thread_id": 77}, None),  # a reply in General: cannot be sent to
        ({"message_thread_id": 1, "is_topic_message": True}, None),  # General itself
        ({"message_thread_id": 77, "is_topic_message": True}, "77"),
        ({}, None),
    ],
)
def test_only_real_topics_are_threads(fields: dict[str, Any], thread: str | None) -> None:
    assert read("hi", GROUP | {"is_forum": True}, **fields).address.thread == thread
    assert read("hi", PRIVATE, **fields).address.thread == thread


# ---- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/cancel", Command("cancel")),
        ("/Cancel@galata_BOT now  please ", Command("cancel", "now  please")),
        ("/ask what is\nthis?", Command("ask", "what is\nthis?")),
        ("/ask @galata_bot hi", Command("ask", "hi")),
        ("/unknown x", Command("unknown", "x")),
        ("/start own_abc", Command("start", "own_abc")),
        ("see /cancel", None),
        ("path/cancel", None),
    ],
)
@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_a_command_stands_at_the_very_beginning(
    text: str, command: Command | None, chat: dict[str, Any]
) -> None:
    result = read(text, chat)
    assert result.command == command
    assert result.addressed == (command is not None or chat is PRIVATE)


def test_a_command_for_another_bot_is_not_ours() -> None:
    result = read("/cancel@other_bot", GROUP)
    assert (result.command, result.addressed) == (None, False)
    result = read("/cancel@other_bot @galata_bot", GROUP, reply_to_message=bots_own())
    assert (result.command, result.addressed) == (None, False)
    assert read("/cancel@other_bot", PRIVATE).command is None


PASSED_ON: list[dict[str, Any]] = [
    {"forward_origin": {"type": "hidden_user", "sender_user_name": "X", "date": 1}},
    {"via_bot": {"id": 8, "is_bot": True, "first_name": "I"}},
    {"is_automatic_forward": True, "sender_chat": {"id": -1008, "type": "channel"}},
]


@pytest.mark.parametrize("fields", PASSED_ON)
def test_what_someone_passed_on_executes_nothing(fields: dict[str, Any]) -> None:
    for text in ("/cancel", "/new@galata_bot", "@galata_bot hi"):
        private, group = read(text, PRIVATE, **fields), read(text, GROUP, **fields)
        assert (private.command, private.addressed) == (None, True)
        assert (group.command, group.addressed) == (None, False)


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_words_that_someone_passed_on_are_not_their_own(chat: dict[str, Any]) -> None:
    for fields in PASSED_ON:
        for text in ("stop", "own_abc", "hello"):
            assert not read(text, chat, **fields).own_words
    assert read("stop", chat).own_words
    assert read("stop", chat, reply_to_message=message("before", chat)).own_words
    assert read("stop", chat, from_=None, sender_chat=chat).own_words


def test_a_quoted_command_executes_nothing() -> None:
    replied = message("/cancel", PRIVATE)
    result = read("look", reply_to_message=replied, quote={"text": "/cancel", "position": 0})
    assert (result.command, result.quote) == (None, "/cancel")


def test_channel_posts_are_not_messages() -> None:
    channel = {"id": -1008, "type": "channel", "title": "C"}
    post = {"message_id": 1, "date": 1, "chat": channel, "text": "/cancel"}
    assert parsed("channel_post", **post) is None
    assert parsed("edited_channel_post", **post, edit_date=2) is None
    assert parsed("message", **post, sender_chat=channel) is None


# ---- edits --------------------------------------------------------------------------------------

EDITED_AT = 1_796_000_060


def edited(text: str, chat: dict[str, Any] = PRIVATE, **fields: Any) -> InboundMessage | None:
    fields = {"edit_date": EDITED_AT} | fields
    return parsed("edited_message", **message(text, chat, **fields))


@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
@pytest.mark.parametrize("text", ["/cancel", "/New@galata_bot please", "/ask what?", "/unknown"])
def test_an_edit_into_a_command_carries_none(text: str, chat: dict[str, Any]) -> None:
    result = edited(text, chat)
    assert result is not None
    assert (result.edited_command, result.command, result.addressed) == (True, None, True)
    assert (result.event, result.message_id) == (f"e:17:{EDITED_AT}", "17")
    assert result.sent_at == datetime.fromtimestamp(EDITED_AT, UTC)
    assert result.sender.id == "5"


def test_each_edit_is_an_event_of_its_own_and_stays_it() -> None:
    events = [edited("/new", edit_date=EDITED_AT + later) for later in (0, 0, 1)]
    first, again, other = [result.event for result in events if result is not None]
    assert first == again != other


@pytest.mark.parametrize(
    "text",
    ["hello", "stop", "see /cancel", "/cancel@other_bot", "@galata_bot hello", "`/cancel`"],
)
@pytest.mark.parametrize("chat", [PRIVATE, GROUP])
def test_every_other_edit_is_nothing(text: str, chat: dict[str, Any]) -> None:
    assert edited(text, chat) is None


def test_a_change_that_nobody_has_typed_is_no_edit() -> None:
    assert parsed("edited_message", **message("/ask https://a.example")) is None


def test_a_forwarded_or_inline_text_that_changes_is_nothing() -> None:
    assert edited("/cancel", via_bot={"id": 8, "is_bot": True, "first_name": "I"}) is None
    channel = {"id": -1008, "type": "channel"}
    assert edited("/cancel", GROUP, is_automatic_forward=True, sender_chat=channel) is None


def test_a_caption_that_is_edited_into_a_command_asks_about_no_file() -> None:
    caption, entities = as_typed("/ask what is this?")
    result = edited("", photo=PHOTO, caption=caption, caption_entities=entities)
    assert result is not None
    assert (result.edited_command, result.attachments) == (True, ())


# ---- files --------------------------------------------------------------------------------------


def document(name: str, mime: str | None, size: int = 100) -> dict[str, Any]:
    data = {"file_id": "f", "file_unique_id": "u", "file_name": name, "file_size": size}
    return data | ({"mime_type": mime} if mime else {})


def test_a_photo_gives_its_largest_size_and_its_caption() -> None:
    caption, entities = as_typed("/ask what is this?")
    result = read(photo=PHOTO, caption=caption, caption_entities=entities)
    assert result.command == Command("ask", "what is this?")
    assert result.attachments == (
        Attachment("image", "large", "photo-17.jpg", "image/jpeg", 90_000),
    )


def test_files_that_were_sent_as_one_know_it_and_may_not_be_the_last() -> None:
    result = read(photo=PHOTO, media_group_id="13")
    assert (result.album, result.more_expected_s) == ("13", 1.0)
    alone = read(photo=PHOTO)
    assert (alone.album, alone.more_expected_s) == (None, 0.0)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        (document("a.txt", "text/plain"), "document"),
        (document("a.json", "application/json"), "document"),
        (document("a.yml", None), "document"),
        (document("a.py", "application/octet-stream"), "document"),
        (document("a.png", "image/png"), "image"),
        (document("a.txt", "text/plain", 1_000_001), "document"),
        (document("a.png", "image/png", 20_000_001), "image"),
        (document("a.pdf", "application/pdf"), None),
        (document("a", None), None),
    ],
)
def test_texts_and_images_are_attached_other_files_are_named(
    file: dict[str, Any], kind: str | None
) -> None:
    result = read(document=file)
    assert [attachment.kind for attachment in result.attachments] == ([kind] if kind else [])
    assert result.unreadable == (None if kind else "document")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("voice", {"file_id": "f", "file_unique_id": "u", "duration": 3}),
        ("location", {"longitude": 1.0, "latitude": 2.0}),
        ("contact", {"phone_number": "1", "first_name": "A"}),
        ("dice", {"emoji": "🎲", "value": 3}),
        ("giveaway", {"chats": [], "winners_selection_date": 1, "winner_count": 1}),
        (
            "invoice",
            {
                "title": "a",
                "description": "b",
                "start_parameter": "c",
                "currency": "EUR",
                "total_amount": 5,
            },
        ),
        ("live_photo", LIVE_PHOTO),
    ],
)
def test_a_kind_that_cannot_be_read_is_named(kind: str, content: dict[str, Any]) -> None:
    result = read(**{kind: content})
    assert (result.unreadable, result.addressed, result.text) == (kind, True, "")


def test_the_still_of_a_live_photo_is_a_photo() -> None:
    for fields in ({"live_photo": LIVE_PHOTO | {"photo": PHOTO}}, {"photo": PHOTO}):
        result = read(**({"live_photo": LIVE_PHOTO} | fields), caption="look")
        assert [attachment.ref for attachment in result.attachments] == ["large"]
        assert (result.unreadable, result.text) == (None, "look")


def test_of_a_live_photo_without_a_still_its_caption_is_not_all() -> None:
    assert read(live_photo=LIVE_PHOTO, caption="look").unreadable == "live_photo"


@pytest.mark.parametrize("fields", [{}, {"hologram": {"x": 1}}])
def test_a_message_of_a_kind_that_nobody_knows_yet_is_no_silence(fields: dict[str, Any]) -> None:
    assert read(**fields).unreadable == "unknown"
    group = read("", GROUP, **fields)
    assert (group.unreadable, group.addressed) == ("unknown", False)


def test_an_animation_is_no_document() -> None:
    file = {"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1, "duration": 1}
    result = read(animation=file, document=document("a.mp4", "video/mp4"))
    assert (result.unreadable, result.attachments) == ("animation", ())


@pytest.mark.parametrize("text", ["/ask what is it?", "@galata_bot what is it?"])
def test_a_question_about_a_message_brings_its_photo_and_text(text: str) -> None:
    replied = message("", GROUP, photo=PHOTO, caption="look here")
    result = read(text, GROUP, reply_to_message=replied)
    assert [attachment.ref for attachment in result.attachments] == ["large"]
    assert result.quote == "look here"


def test_a_remark_that_is_not_for_the_bot_brings_no_files() -> None:
    replied = message("", GROUP, photo=PHOTO)
    assert read("nice", GROUP, reply_to_message=replied).attachments == ()


# ---- others -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "more"), [(3999, 0.0), (4000, 2.0), (4096, 2.0)])
def test_a_long_text_may_go_on(length: int, more: float) -> None:
    assert read(text_="a" * length).more_expected_s == more
    assert read(text_="😀" * (length // 2)).more_expected_s == (2.0 if length >= 4000 else 0.0)


@pytest.mark.parametrize(
    ("text", "seam"),
    [
        ("a" * 4096, ""),  # full: cut within a word
        ("line\n" * 815, ""),  # what is white at the cut has come along
        ("line\n" * 815 + "line", "\n"),
        ("word " * 815 + "word", " "),
        ("a line\n" + "word " * 815 + "word", " "),
        ("short", ""),
    ],
)
def test_what_a_client_has_lost_where_it_cut_a_text(text: str, seam: str) -> None:
    assert read(text_=text).seam == seam
    assert read(text_=text).text == text


@pytest.mark.parametrize(
    "fields",
    [
        {"new_chat_members": [ME]},
        {"left_chat_member": ANA},
        {"forum_topic_created": {"name": "T", "icon_color": 1}},
        {"pinned_message": message("hi")},
        {"new_chat_title": "T"},
        {"delete_chat_photo": True},
        {"message_auto_delete_timer_changed": {"message_auto_delete_time": 5}},
        {"write_access_allowed": {"from_request": True}},
        {"boost_added": {"boost_count": 1}},
        {"video_chat_started": {}},
    ],
)
def test_service_messages_are_nothing_for_us(fields: dict[str, Any]) -> None:
    assert parsed(**message("", GROUP, **fields)) is None


def press(**fields: Any) -> dict[str, Any]:
    return {"id": "44", "from": ANA, "chat_instance": "1", **fields}


def test_a_press_carries_action_value_and_message() -> None:
    carrier = bots_own(message_thread_id=9, is_topic_message=True)
    result = parsed("callback_query", **press(message=carrier, data="stop:run:1"))
    assert result is not None
    assert result.press == Press("44", "stop", "run:1", "3")
    assert (result.event, result.sender.id, result.sent_at) == ("p:44", "5", NOW)
    assert (result.address.chat, result.address.thread) == ("-100123", "9")


def test_a_press_on_a_message_that_is_gone_is_a_press() -> None:
    gone = {"message_id": 3, "date": 0, "chat": GROUP}
    result = parsed("callback_query", **press(message=gone, data="stop"))
    assert result is not None
    assert result.press == Press("44", "stop", "", "3")


def test_a_press_without_data_or_message_is_nothing() -> None:
    assert parsed("callback_query", **press(inline_message_id="x", data="stop:1")) is None
    assert parsed("callback_query", **press(message=bots_own(), game_short_name="g")) is None


def membership(new: str, old: str = "left", chat: dict[str, Any] = GROUP) -> dict[str, Any]:
    def member(status: str) -> dict[str, Any]:
        rights = {"can_be_edited": False, "is_anonymous": False, "until_date": 0}
        return {"user": ME, "status": status} | _RIGHTS | rights

    data = {"chat": chat, "from": ANA, "date": 1_796_000_000}
    return data | {"old_chat_member": member(old), "new_chat_member": member(new)}


_RIGHTS = dict.fromkeys(
    (
        *("can_manage_chat", "can_delete_messages", "can_manage_video_chats"),
        *("can_restrict_members", "can_promote_members", "can_change_info", "can_invite_users"),
        *("can_post_stories", "can_edit_stories", "can_delete_stories"),
    ),
    False,
)
DEAF = BotIdentity(99, "Galata_Bot", sees_all_group_messages=False)


def test_a_bot_that_cannot_hear_mentions_says_so_when_it_is_added() -> None:
    result = parsed("my_chat_member", DEAF, **membership("member"))
    assert result is not None
    assert (result.joined_deaf, result.joined, result.addressed) == (True, True, True)
    assert (result.event, result.message_id) == ("joined:1796000000", "")


def test_a_bot_that_hears_joins_without_a_word() -> None:
    for bot, change in (
        (BOT, membership("member")),
        (DEAF, membership("administrator")),
        (DEAF, membership("member", chat=PRIVATE)),  # no block any more
    ):
        result = parsed("my_chat_member", bot, **change)
        assert result is not None
        assert (result.joined, result.left) == (True, False)
        assert (result.joined_deaf, result.addressed) == (False, False)


@pytest.mark.parametrize("chat", [GROUP, PRIVATE])
@pytest.mark.parametrize("status", ["left", "kicked"])
def test_a_removal_and_a_block_are_told(status: str, chat: dict[str, Any]) -> None:
    result = parsed("my_chat_member", BOT, **membership(status, "member", chat=chat))
    assert result is not None
    assert (result.left, result.joined, result.addressed) == (True, False, False)
    assert result.address.chat == str(chat["id"])


def test_other_changes_of_the_bots_place_are_nothing() -> None:
    assert parsed("my_chat_member", DEAF, **membership("member", "administrator")) is None
    assert parsed("my_chat_member", BOT, **membership("left", "kicked")) is None


@pytest.mark.parametrize("told_in", ["old", "new"])
def test_a_groups_new_id_is_told_in_both_chats_alike(told_in: str) -> None:
    old = {"id": -451, "type": "group", "title": "Team"}
    new = {"id": -100247, "type": "supergroup", "title": "Team"}
    fields = (
        {"chat": old, "migrate_to_chat_id": -100247}
        if told_in == "old"
        else {"chat": new, "migrate_from_chat_id": -451}
    )
    base = {"message_id": 153, "date": 1_796_000_000, "from": ANA}
    result = parsed("message", BOT, **base, **fields)
    assert result is not None
    assert (result.address.chat, result.moved_from) == ("-100247", "-451")
    assert (result.addressed, result.text, result.command) == (False, "", None)


def test_unknown_kinds_are_nothing() -> None:
    update = Update.de_json({"update_id": 6, "something_new": {"a": 1}})
    assert parse(update, BOT, received_at=NOW) is None
