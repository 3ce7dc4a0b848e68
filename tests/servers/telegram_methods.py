"""The bot's methods that put messages into chats and change them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.servers.telegram_chat import Chat
from tests.servers.telegram_params import Params
from tests.servers.telegram_people import Message
from tests.servers.telegram_text import MAX_CAPTION, Json, TextRefused, checked
from tests.servers.telegram_updates import ApiError
from tests.servers.telegram_world import World

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)


def bad(description: str) -> ApiError:
    """400 with Telegram's prefix."""
    return ApiError(400, f"Bad Request: {description}")


def send_message(world: World, params: Params) -> Json:
    """sendMessage"""
    chat = world.chat_for_bot(params.values.get("chat_id"))
    content = text_content(params)
    return post(world, chat, params, content)


def edit_message_text(world: World, params: Params) -> Json:
    """editMessageText"""
    message = message_to_edit(world, params)
    content = text_content(params)
    if "text" not in message.data:
        raise bad("there is no text in the message to edit")
    return _edit(message, content | {"reply_markup": inline_keyboard(params)})


def edit_message_reply_markup(world: World, params: Params) -> Json:
    """editMessageReplyMarkup"""
    return _edit(message_to_edit(world, params), {"reply_markup": inline_keyboard(params)})


def delete_message(world: World, params: Params) -> bool:
    """deleteMessage"""
    chat = world.chat_for_bot(params.values.get("chat_id"))
    message = chat.find(params.integer("message_id"))
    if message is None:
        raise bad("message to delete not found")
    if not message.by_bot and chat.kind != "private" and chat.bot_status != "administrator":
        raise bad("message can't be deleted")
    message.deleted = True
    world.changed()
    return True


def text_content(params: Params) -> Json:
    """`text` and `entities` as stored. Raises `ApiError`."""
    text = params.text("text")
    if not text:
        raise bad("message text is empty")
    return _content(
        params, text, ("text", "entities"), {"too_long": "message is too long", "limit": 4096}
    )


def caption_content(params: Params) -> Json:
    """`caption` and `caption_entities` as stored, nothing for no caption. Raises `ApiError`."""
    limits = {"too_long": "message caption is too long", "limit": MAX_CAPTION}
    names = ("caption", "caption_entities")
    content = _content(params, params.text("caption"), names, limits)
    return content if content["caption"] else {}


def _content(params: Params, text: str, names: tuple[str, str], limits: Json) -> Json:
    if params.text("parse_mode"):
        raise bad(
            "can't parse entities: this server takes entities only, the bot must not use parse_mode"
        )
    entities = params.parsed(names[1], "entities") or []
    if not isinstance(entities, list):
        raise bad("can't parse entities JSON object")
    empty = "text must be non-empty" if names[0] == "text" else None
    try:
        text, entities = checked(text, entities, empty=empty, **limits)
    except TextRefused as refusal:
        raise bad(str(refusal)) from None
    return {names[0]: text, names[1]: entities or None}


def post(world: World, chat: Chat, params: Params, content: Json) -> Json:
    """Puts a checked content into the chat as the bot's message; the Bot API's Message."""
    if chat.muted:
        raise bad("not enough rights to send text messages to the chat")
    topic = _topic(chat, params)
    replied = _replied(world, chat, params)
    content = content | {"reply_markup": inline_keyboard(params)}
    fields = {key: value for key, value in content.items() if value is not None}
    author = None if chat.kind == "channel" else world.bot
    return chat.add(fields, author, replied, topic).json()


def _topic(chat: Chat, params: Params) -> int | None:
    """The topic that `message_thread_id` names. General has no id that could be sent."""
    topic = params.integer("message_thread_id")
    if not topic:
        return None
    if topic not in chat.topics:
        raise bad("message thread not found")
    if topic in chat.closed_topics and chat.bot_status != "administrator":
        raise bad("TOPIC_CLOSED")
    return topic


def _replied(world: World, chat: Chat, params: Params) -> Message | None:
    given = params.parsed("reply_parameters", "reply parameters") or {}
    message_id = int(given.get("message_id") or params.integer("reply_to_message_id"))
    if not message_id:
        return None
    message = chat.find(message_id)
    optional = given.get("allow_sending_without_reply") or params.boolean(
        "allow_sending_without_reply"
    )
    if message is None and not optional:
        raise bad("message to be replied not found")
    return message


def message_to_edit(world: World, params: Params) -> Message:
    """The bot's own visible message. Raises `ApiError`."""
    chat = world.chat_for_bot(params.values.get("chat_id"))
    message_id = params.integer("message_id")
    if not message_id:
        raise bad("message identifier is not specified")
    message = chat.find(message_id)
    if message is None:
        raise bad("message to edit not found")
    own_post = chat.kind == "channel" and chat.bot_status == "administrator"
    if not message.editable or not (message.by_bot or own_post):
        raise bad("message can't be edited")
    return message


def _edit(message: Message, fields: Json) -> Json:
    if all(message.data.get(key) == value for key, value in fields.items()):
        raise bad(NOT_MODIFIED)
    message.change(**fields)
    return message.json()


def inline_keyboard(params: Params) -> Json | None:
    """A checked `reply_markup`, None if there is none. Raises `ApiError`."""
    markup = params.parsed("reply_markup", "reply keyboard markup")
    if not markup:
        return None
    rows = [row for row in markup.get("inline_keyboard", []) if row]
    for button in (button for row in rows for button in row):
        _check_button(button)
    return {"inline_keyboard": rows} if rows else None


def _check_button(button: Json) -> None:
    if not button.get("text"):
        raise bad("can't parse inline keyboard button: Can't find field \"text\"")
    if len(button) < 2:
        raise bad(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
    data = button.get("callback_data")
    if data is not None and not 1 <= len(str(data).encode()) <= 64:
        raise bad("BUTTON_DATA_INVALID")


def answer_callback_query(world: World, params: Params) -> bool:
    """answerCallbackQuery"""
    answer = {"text": params.text("text"), "show_alert": params.boolean("show_alert")}
    if len(answer["text"]) > 200:
        raise bad("MESSAGE_TOO_LONG")
    world.answer_press(params.text("callback_query_id"), answer)
    return True


Method = Callable[[World, Params], Any]

METHODS: dict[str, Method] = {
    "sendmessage": send_message,
    "editmessagetext": edit_message_text,
    "editmessagereplymarkup": edit_message_reply_markup,
    "deletemessage": delete_message,
    "answercallbackquery": answer_callback_query,
}


def as_json(result: Any) -> str:
    """The body of a successful answer."""
    return json.dumps({"ok": True, "result": result})
