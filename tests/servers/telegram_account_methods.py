"""The bot's methods about itself and about chats: who, what, where; and signs of life."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

from tests.servers import telegram_methods as messages
from tests.servers.telegram_acts import Chat
from tests.servers.telegram_methods import bad
from tests.servers.telegram_params import Params
from tests.servers.telegram_places import member_json, permissions_json
from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import ApiError
from tests.servers.telegram_world import World

# core.telegram.org/bots/api#sendchataction
ACTIONS = frozenset(
    (
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    )
)
# core.telegram.org/bots/api#reactiontypeemoji
_EMOJI = (
    "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 "
    "😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 🤓 "
    "👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 "
    "😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡 "
)
REACTIONS = frozenset(_EMOJI.split())
_VARIATION = "\ufe0f"  # clients send some of them with it


def get_me(world: World, params: Params) -> Json:
    return world.bot.json() | {
        "can_join_groups": True,
        "can_read_all_group_messages": not world.privacy_mode,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": world.topics_enabled,
    }


def send_chat_action(world: World, params: Params) -> bool:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    action = params.text("action")
    if action not in ACTIONS:
        raise bad("wrong parameter action in request")
    chat.actions.append((time.monotonic(), action, params.integer("message_thread_id") or None))
    world.changed()
    return True


def set_message_reaction(world: World, params: Params) -> bool:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    message = chat.find(params.integer("message_id"))
    if message is None:
        raise bad("message to react not found")
    emoji = [str(r.get("emoji", "")) for r in params.parsed("reaction", "reaction") or []]
    # Without a Premium account a user, and so a bot, sets at most one.
    if len(emoji) > 1 or any(e.replace(_VARIATION, "") not in REACTIONS for e in emoji):
        raise bad("REACTION_INVALID")
    message.reactions = emoji
    world.changed()
    return True


def get_file(world: World, params: Params) -> Json:
    return world.files.to_download(params.text("file_id"))


# ---- webhook ------------------------------------------------------------------------------------


def set_webhook(world: World, params: Params) -> bool:
    url = params.text("url")
    if url and not url.startswith("https://"):
        raise bad("bad webhook: An HTTPS URL must be provided for webhook")
    world.updates.allow(params.parsed("allowed_updates", "allowed updates"))
    if params.boolean("drop_pending_updates"):
        world.updates.clear()
    if url:
        world.updates.interrupt(ApiError(409, "Conflict: terminated by setWebhook request"))
    world.webhook = {"url": url}
    return True


def delete_webhook(world: World, params: Params) -> bool:
    if params.boolean("drop_pending_updates"):
        world.updates.clear()
    world.webhook = {"url": ""}
    return True


def get_webhook_info(world: World, params: Params) -> Json:
    info = world.webhook | {
        "has_custom_certificate": False,
        "pending_update_count": world.updates.pending,
    }
    allowed = world.updates.allowed
    return info if allowed is None else info | {"allowed_updates": allowed}


def log_out(world: World, params: Params) -> bool:
    world.logged_out = True
    return True


def close(world: World, params: Params) -> bool:
    """The real one refuses in the first 10 minutes after the start; tests live shorter."""
    return True


# ---- commands -----------------------------------------------------------------------------------


def set_my_commands(world: World, params: Params) -> bool:
    commands = params.parsed("commands", "commands")
    if not isinstance(commands, list):
        raise bad("can't parse commands JSON object")
    if len(commands) > 100:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    if not re.fullmatch(r"(?:[a-z]{2})?", params.text("language_code")):
        raise bad("invalid language code specified")
    for command in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", command.get("command", "").removeprefix("/")):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= len(command.get("description", "")) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    world.commands[_commands_key(params)] = commands
    world.changed()
    return True


def get_my_commands(world: World, params: Params) -> list[Json]:
    return world.commands.get(_commands_key(params), [])


def delete_my_commands(world: World, params: Params) -> bool:
    world.commands.pop(_commands_key(params), None)
    return True


def _commands_key(params: Params) -> str:
    scope = params.parsed("scope", "BotCommandScope") or {"type": "default"}
    return json.dumps([scope, params.text("language_code")], sort_keys=True)


# ---- chats --------------------------------------------------------------------------------------


def get_chat(world: World, params: Params) -> Json:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    data = chat.json() | {
        "accent_color_id": 0,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(
            (
                "unlimited_gifts",
                "limited_gifts",
                "unique_gifts",
                "premium_subscription",
                "gifts_from_channels",
            ),
            False,
        ),
    }
    if chat.linked is not None:
        data["linked_chat_id"] = chat.linked.id
    if chat.members_hidden:
        data["has_hidden_members"] = True
    if chat.kind in ("group", "supergroup"):
        data["permissions"] = permissions_json(allowed=True)
    return data


def get_chat_member(world: World, params: Params) -> Json:
    """Only guaranteed to work for others if the bot is an administrator in the chat."""
    chat = world.chat_for_bot(params.values.get("chat_id"))
    user = world.users.get(params.integer("user_id"))
    if user is None:
        raise bad("invalid user_id specified")
    if user.id == world.bot.id:
        return member_json(user, chat.bot_status)
    if chat.members_hidden and chat.bot_status != "administrator":
        raise bad("member list is inaccessible")
    status = chat.admins.get(user.id, "member" if user.id in chat.members else "left")
    return member_json(user, status, chat.lacking.get(user.id, ()))


def get_chat_administrators(world: World, params: Params) -> list[Json]:
    chat = world.chat_for_bot(params.values.get("chat_id"))
    if chat.kind == "private":
        raise bad("there are no administrators in the private chat")
    found = [
        member_json(chat.members[id_], status, chat.lacking.get(id_, ()))
        for id_, status in chat.admins.items()
        if id_ in chat.members
    ]
    if chat.bot_status == "administrator":
        found.append(member_json(world.bot, "administrator"))
    return found


def leave_chat(world: World, params: Params) -> bool:
    chat: Chat = world.chat_for_bot(params.values.get("chat_id"))
    if chat.kind == "private":
        raise bad("chat member status can't be changed in private chats")
    chat.bot_leaves()
    return True


Method = Callable[[World, Params], Any]

# Method names are case-insensitive: core.telegram.org/bots/api#making-requests
METHODS: dict[str, Method] = {
    "getme": get_me,
    "sendmessage": messages.send_message,
    "sendphoto": messages.send_photo,
    "senddocument": messages.send_document,
    "sendmessagedraft": messages.send_message_draft,
    "editmessagetext": messages.edit_message_text,
    "editmessagecaption": messages.edit_message_caption,
    "editmessagereplymarkup": messages.edit_message_reply_markup,
    "deletemessage": messages.delete_message,
    "answercallbackquery": messages.answer_callback_query,
    "sendchataction": send_chat_action,
    "setmessagereaction": set_message_reaction,
    "getfile": get_file,
    "setwebhook": set_webhook,
    "deletewebhook": delete_webhook,
    "getwebhookinfo": get_webhook_info,
    "logout": log_out,
    "close": close,
    "setmycommands": set_my_commands,
    "getmycommands": get_my_commands,
    "deletemycommands": delete_my_commands,
    "getchat": get_chat,
    "getchatmember": get_chat_member,
    "getchatadministrators": get_chat_administrators,
    "leavechat": leave_chat,
}
# What flood control counts.
MESSAGE_METHODS = frozenset(
    ("sendmessage", "sendphoto", "senddocument", "editmessagetext", "editmessagecaption")
)
