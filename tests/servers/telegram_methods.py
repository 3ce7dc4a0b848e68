"""The bot's methods that put messages into chats and change them."""

from __future__ import annotations

import time
from typing import Any

from tests.servers.telegram_chat import ChatState
from tests.servers.telegram_media import PHOTO_LIMIT, UPLOAD_LIMIT, is_image
from tests.servers.telegram_params import Params, Upload
from tests.servers.telegram_people import Message
from tests.servers.telegram_text import MAX_CAPTION, MAX_TEXT, Json, TextRefused, checked
from tests.servers.telegram_updates import ApiError
from tests.servers.telegram_world import World

NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
MAX_CALLBACK_DATA = 64  # bytes, core.telegram.org/bots/api#inlinekeyboardbutton
MAX_CALLBACK_ANSWER = 200  # characters, core.telegram.org/bots/api#answercallbackquery


def bad(description: str) -> ApiError:
    """400 with Telegram's prefix."""
    return ApiError(400, f"Bad Request: {description}")


def send_message(world: World, params: Params) -> Json:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    return _post(world, chat, params, _text(params))


def send_document(world: World, params: Params) -> Json:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    upload = _upload(params, "document", UPLOAD_LIMIT)
    if isinstance(upload, str):
        document = world.files.get(upload).json()
    else:
        document = world.files.document(upload.name, upload.content, upload.mime_type)
    return _post(world, chat, params, {"document": document} | _caption(params))


def send_photo(world: World, params: Params) -> Json:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    upload = _upload(params, "photo", PHOTO_LIMIT)
    content = world.files.get(upload).content if isinstance(upload, str) else upload.content
    if not is_image(content):
        raise bad("IMAGE_PROCESS_FAILED")
    photo = world.files.photo(content, 1280, 960)
    return _post(world, chat, params, {"photo": photo} | _caption(params))


def send_message_draft(world: World, params: Params) -> bool:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    if chat.kind != "private":
        raise bad("TEXTDRAFT_PEER_INVALID")
    if not params.integer("draft_id"):
        raise bad("invalid draft_id specified")
    text = _text(params) if params.text("text") else {"text": ""}
    thread = _topic(chat, params)
    draft: Json = {"draft_id": params.integer("draft_id"), "at": time.monotonic()}
    chat.drafts.append(draft | {"message_thread_id": thread} | text)
    world.changed()
    return True


def edit_message_text(world: World, params: Params) -> Json:
    message = _to_edit(world, params)
    content = _text(params)
    if "text" not in message.data:
        raise bad("there is no text in the message to edit")
    return _edit(message, content | {"reply_markup": _keyboard(params)})


def edit_message_caption(world: World, params: Params) -> Json:
    message = _to_edit(world, params)
    if "text" in message.data:
        raise bad("there is no caption in the message to edit")
    content = {"caption": None, "caption_entities": None} | _caption(params)
    return _edit(message, content | {"reply_markup": _keyboard(params)})


def edit_message_reply_markup(world: World, params: Params) -> Json:
    return _edit(_to_edit(world, params), {"reply_markup": _keyboard(params)})


def delete_message(world: World, params: Params) -> bool:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    message = chat.find(params.integer("message_id"))
    if message is None:
        raise bad("message to delete not found")
    if not message.by_bot and chat.kind != "private" and chat.bot_status != "administrator":
        raise bad("message can't be deleted")
    message.deleted = True
    world.changed()
    return True


def answer_callback_query(world: World, params: Params) -> bool:
    text = params.text("text")
    answer: Json = {"text": text, "show_alert": params.boolean("show_alert")}
    if len(text) > MAX_CALLBACK_ANSWER:
        raise bad("MESSAGE_TOO_LONG")
    world.answer_press(params.text("callback_query_id"), answer)
    return True


# ---- content ------------------------------------------------------------------------------------


def _text(params: Params) -> Json:
    """`text` and `entities` as stored. Raises `ApiError`."""
    if not params.text("text"):
        raise bad("message text is empty")
    return _formatted(params, "text", "entities", MAX_TEXT, "message is too long")


def _caption(params: Params) -> Json:
    """`caption` and `caption_entities` as stored, nothing for no caption. Raises `ApiError`."""
    if not params.text("caption"):
        return {}
    too_long = "message caption is too long"
    return _formatted(params, "caption", "caption_entities", MAX_CAPTION, too_long)


def _formatted(params: Params, name: str, entities_name: str, limit: int, too_long: str) -> Json:
    if params.text("parse_mode"):
        raise bad("can't parse entities: this server takes entities only, no parse_mode")
    given = params.parsed(entities_name, "entities") or []
    if not isinstance(given, list):
        raise bad("can't parse entities JSON object")
    empty = "text must be non-empty" if name == "text" else None
    try:
        text, entities = checked(
            params.text(name), given, limit=limit, too_long=too_long, empty=empty
        )
    except TextRefused as refusal:
        raise bad(str(refusal)) from None
    return {name: text, entities_name: entities or None}


def _upload(params: Params, name: str, limit: int) -> Upload | str:
    """An uploaded file, or the id of a known one. Raises `ApiError`."""
    given = params.text(name)
    upload = params.files.get(given.removeprefix("attach://") if given else name)
    if upload is not None:
        if len(upload.content) > limit:
            raise ApiError(413, "Request Entity Too Large")
        if not upload.content:
            raise bad("file must be non-empty")
        return upload
    if not given:
        raise bad(f"there is no {name} in the request")
    return given


def _keyboard(params: Params) -> Json | None:
    """A checked inline keyboard, None if there is none. Raises `ApiError`."""
    markup = params.parsed("reply_markup", "reply keyboard markup")
    if not markup:
        return None
    if not isinstance(markup, dict):
        raise bad("object expected as reply markup")
    rows = [row for row in markup.get("inline_keyboard", []) if row]
    for button in (button for row in rows for button in row):
        _check_button(button)
    return {"inline_keyboard": rows} if rows else None


def _check_button(button: Json) -> None:
    broken = "can't parse inline keyboard button: "
    if "text" not in button:
        raise bad(broken + 'Can\'t find field "text"')
    if len(button) < 2:
        raise bad(broken + "Text buttons are unallowed in the inline keyboard")
    data = button.get("callback_data")
    if data is not None and not 1 <= len(str(data).encode()) <= MAX_CALLBACK_DATA:
        raise bad("BUTTON_DATA_INVALID")


# ---- place --------------------------------------------------------------------------------------


def _post(world: World, chat: ChatState, params: Params, content: Json) -> Json:
    """Puts a checked content into the chat as the bot's message; the Bot API's Message."""
    if chat.bot_status == "restricted":
        raise bad("not enough rights to send text messages to the chat")
    topic = _topic(chat, params)
    replied = _replied(chat, params)
    content = content | {"reply_markup": _keyboard(params)}
    fields = {key: value for key, value in content.items() if value is not None}
    if chat.kind == "channel":
        return chat.add(fields | {"sender_chat": chat.json()}, None, replied, topic).json()
    return chat.add(fields, world.bot, replied, topic).json()


def _topic(chat: ChatState, params: Params) -> int | None:
    """The topic that `message_thread_id` names. General has no id that could be sent."""
    topic = params.integer("message_thread_id")
    if not topic:
        return None
    if topic not in chat.topics:
        raise bad("message thread not found")
    if topic in chat.closed_topics and chat.bot_status != "administrator":
        raise bad("TOPIC_CLOSED")
    return topic


def _replied(chat: ChatState, params: Params) -> Message | None:
    given: Any = params.parsed("reply_parameters", "reply parameters") or {}
    message_id = int(given.get("message_id") or params.integer("reply_to_message_id"))
    if not message_id:
        return None
    message = chat.find(message_id)
    optional = given.get("allow_sending_without_reply")
    if message is None and not optional and not params.boolean("allow_sending_without_reply"):
        raise bad("message to be replied not found")
    if message is not None and given.get("quote", "") not in message.text:
        raise bad("QUOTE_TEXT_INVALID")
    return message


def _to_edit(world: World, params: Params) -> Message:
    """The bot's own visible message. Raises `ApiError`."""
    chat = world.chat_for_bot(params.values.get("chat_id"))
    if not params.integer("message_id"):
        raise bad("message identifier is not specified")
    message = chat.find(params.integer("message_id"))
    if message is None:
        raise bad("message to edit not found")
    if not message.editable or not (message.by_bot or chat.kind == "channel"):
        raise bad("message can't be edited")
    return message


def _edit(message: Message, fields: Json) -> Json:
    if all(message.data.get(key) == value for key, value in fields.items()):
        raise bad(NOT_MODIFIED)
    message.change(**fields)
    return message.json()
