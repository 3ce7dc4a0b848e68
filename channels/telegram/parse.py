"""Updates to `InboundMessage`: pure, and the only reader of Telegram's shapes. Strings are whole.

What is no message for the bot gives None: service messages (but those of a group that gets another
id), posts of channels, other bots, unknown kinds. Forwards, messages via an inline bot and automatic
channel posts carry no command, and in a group they are never addressed to the bot: whoever passed
them on did not write them. An edit is not carried out; one that makes a command is told so, all
others are nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from telegram import (
    CallbackQuery,
    Chat,
    ChatMember,
    ChatMemberUpdated,
    Message,
    MessageEntity,
    Update,
    User,
)

from channels.base import Address, Attachment, Command, InboundMessage, Press, Sender
from channels.chunking import units
from channels.telegram.keyboard import press_of
from channels.telegram.media import attachments_of, unreadable_kind
from channels.telegram.moves import moved

CHANNEL = "telegram"

# Clients cut a text at 4096 units: at the end of a line when there is one in the last few hundred
# characters, else at a space; what is white at the cut is lost.
_LONG_TEXT_UNITS = 4000
_MOST_UNITS = 4096
_LOOKED_BACK = 300
_CONTINUATION_S = 2.0
_ALBUM_S = 1.0  # between two messages of one album, which nobody tells the number of
_QUOTE_CHARACTERS = 1000
_GENERAL_TOPIC = 1  # sending to it by number is refused
_GROUPS = (Chat.GROUP, Chat.SUPERGROUP)

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class BotIdentity:
    """Who the bot is; `username` without the `@`. `sees_all_group_messages`: BotFather's privacy
    mode is off, so that mentions in groups arrive."""

    id: int
    username: str
    sees_all_group_messages: bool


def parse(update: Update, bot: BotIdentity, *, received_at: datetime) -> InboundMessage | None:
    """What a person sent or did, None if that is nothing for us. `received_at` is the time of a
    press, which Telegram does not tell."""
    if update.message is not None:
        return _message(update.message, bot)
    if update.edited_message is not None:
        return _edited(update.edited_message, bot)
    if update.callback_query is not None:
        return _press(update.callback_query, bot, received_at)
    if update.my_chat_member is not None:
        return _membership(update.my_chat_member, bot)
    return None


def _message(message: Message, bot: BotIdentity) -> InboundMessage | None:
    if message.migrate_to_chat_id or message.migrate_from_chat_id:
        return _moved(message, bot)
    sender = _sender(message)
    content = message.text or message.caption
    attachments, unreadable = attachments_of(message), unreadable_kind(message)
    if sender is None or message.chat.type == Chat.CHANNEL:
        return None
    if not (content or attachments or unreadable):
        return None
    text = content or ""
    entities = message.entities or message.caption_entities
    own_words, replied = not _is_passed_on(message), _reply(message)
    private = message.chat.type == Chat.PRIVATE
    name, args, for_us = _command(text, entities, bot)
    command = Command(name, args) if name and for_us and own_words else None
    mentions = _mentions(text, entities, bot)
    to_us = command is not None or bool(mentions) or _replied_to(message, bot)
    addressed = private or (own_words and for_us and to_us)
    if addressed and (command is None or command.name == "ask"):
        attachments += _attachments_asked_about(message, command, bot)
    return InboundMessage(
        address=_address(message.chat, _thread(message), bot),
        event=f"m:{message.message_id}",
        message_id=str(message.message_id),
        sender=sender,
        sent_at=message.date,
        text=_without(text, mentions),
        attachments=attachments,
        addressed=addressed,
        own_words=own_words,
        command=command,
        reply_to_id=None if replied is None else str(replied.message_id),
        reply_to_person=None if replied is None else _sender(replied),
        quote=_quote(message),
        unreadable=unreadable,
        album=message.media_group_id,
        more_expected_s=_more_expected_s(message),
        seam=_seam(message.text or ""),
    )


def _more_expected_s(message: Message) -> float:
    if message.media_group_id is not None:
        return _ALBUM_S
    return _CONTINUATION_S if units(message.text or "") >= _LONG_TEXT_UNITS else 0.0


def _seam(text: str) -> str:
    """What the client has lost where it cut a long text: nothing, when it is full, and so was cut
    within a word."""
    if not _LONG_TEXT_UNITS <= units(text) < _MOST_UNITS or text[-1].isspace():
        return ""
    return "\n" if "\n" in text[-_LOOKED_BACK:] else " "


def _edited(message: Message, bot: BotIdentity) -> InboundMessage | None:
    """A message that was edited into a command. Without a date nobody has edited it: such updates
    come when something else about it changes (core.telegram.org/bots/api#update)."""
    new, edited_at = _message(message, bot), message.edit_date
    if new is None or new.command is None or edited_at is None:
        return None
    event = f"e:{message.message_id}:{int(edited_at.timestamp())}"
    return replace(
        new, event=event, sent_at=edited_at, attachments=(), command=None, edited_command=True
    )


def _press(query: CallbackQuery, bot: BotIdentity, at: datetime) -> InboundMessage | None:
    message = query.message
    if message is None or query.data is None:
        return None
    thread = _thread(message) if isinstance(message, Message) else None
    action, value = press_of(query.data)
    return InboundMessage(
        address=_address(message.chat, thread, bot),
        event=f"p:{query.id}",
        message_id=str(message.message_id),
        sender=_person(query.from_user),
        sent_at=at,
        press=Press(query.id, action, value, str(message.message_id)),
    )


def _moved(message: Message, bot: BotIdentity) -> InboundMessage:
    """A group became a supergroup: told in both chats."""
    here = message.chat.id
    old = message.migrate_from_chat_id or here
    new = message.migrate_to_chat_id or here
    return moved(str(bot.id), str(old), str(new), message.date)


def _membership(change: ChatMemberUpdated, bot: BotIdentity) -> InboundMessage | None:
    """The bot was added, removed, blocked or let in again. Privacy mode is on, and it is no
    administrator: it sees no mentions."""
    new = change.new_chat_member
    here, before = _is_in(new), _is_in(change.old_chat_member)
    if change.chat.type == Chat.CHANNEL or here == before:
        return None
    sees_all = bot.sees_all_group_messages or new.status == ChatMember.ADMINISTRATOR
    deaf = here and change.chat.type in _GROUPS and not sees_all
    return InboundMessage(
        address=_address(change.chat, None, bot),
        event=f"joined:{int(change.date.timestamp())}" if here else "left",
        message_id="",
        sender=_person(change.from_user),
        sent_at=change.date,
        addressed=deaf,
        joined_deaf=deaf,
        joined=here,
        left=not here,
    )


def _is_in(member: ChatMember) -> bool:
    if member.status == ChatMember.RESTRICTED:
        return bool(getattr(member, "is_member", False))
    return member.status in (ChatMember.MEMBER, ChatMember.ADMINISTRATOR, ChatMember.OWNER)


def _address(chat: Chat, thread: str | None, bot: BotIdentity) -> Address:
    return Address(CHANNEL, str(bot.id), str(chat.id), thread, chat.type == Chat.PRIVATE)


def _thread(message: Message) -> str | None:
    """The topic. Replies elsewhere carry a thread id too, which cannot be sent to."""
    thread = message.message_thread_id
    if not message.is_topic_message or thread in (None, _GENERAL_TOPIC):
        return None
    return str(thread)


def _sender(message: Message) -> Sender | None:
    """Who wrote: anonymous admins and channels by the id of the chat that they write as, since they
    share one user. Other bots give None."""
    if message.sender_chat is not None:
        chat = message.sender_chat
        return Sender(str(chat.id), chat.title or chat.username or "?")
    if message.from_user is None or message.from_user.is_bot:
        return None
    return _person(message.from_user)


def _person(user: User) -> Sender:
    return Sender(str(user.id), user.full_name, user.language_code)


def _is_passed_on(message: Message) -> bool:
    """Whether someone else's words are in it: a forward, an inline bot's text, a channel's post."""
    return (
        message.forward_origin is not None
        or message.via_bot is not None
        or bool(message.is_automatic_forward)
    )


def _command(
    text: str, entities: Iterable[MessageEntity], bot: BotIdentity
) -> tuple[str | None, str, bool]:
    """Name and arguments of a command at the very beginning, and whether it is not for another
    bot (true also without any command)."""
    for entity in entities:
        if entity.type == MessageEntity.BOT_COMMAND and entity.offset == 0:
            _, end = _range(text, entity)
            name, at, target = text[1:end].partition("@")
            for_us = not at or target.casefold() == bot.username.casefold()
            mentions = [(a - end, b - end) for a, b in _mentions(text, entities, bot)]
            return name.lower(), _without(text[end:], mentions).strip(), for_us
    return None, "", True


def _mentions(text: str, entities: Iterable[MessageEntity], bot: BotIdentity) -> list[Range]:
    """Where the bot is mentioned: by entities, never by a search in the text."""
    found: list[Range] = []
    for entity in entities:
        start, end = _range(text, entity)
        if entity.type == MessageEntity.MENTION:
            if text[start:end].casefold() == f"@{bot.username}".casefold():
                found.append((start, end))
        elif entity.user is not None and entity.user.id == bot.id:  # a text_mention
            found.append((start, end))
    return sorted(found)


def _range(text: str, entity: MessageEntity) -> Range:
    """The characters of an entity, whose offsets count UTF-16 units."""
    raw = text.encode("utf-16-le")
    start = len(raw[: 2 * entity.offset].decode("utf-16-le", "ignore"))
    return start, len(raw[: 2 * (entity.offset + entity.length)].decode("utf-16-le", "ignore"))


def _without(text: str, mentions: Iterable[Range]) -> str:
    """The text without the bot's name, and without what set it off; else as it is."""
    mentions = tuple(mentions)
    if not mentions:
        return text
    done, kept = 0, ""
    for start, end in mentions:
        kept += text[done:start]
        done = end
        if not kept.strip():
            done += len(text[done:]) - len(text[done:].lstrip(" ,:"))
        elif kept[-1].isspace() and text[done : done + 1].isspace():
            done += 1
    return (kept + text[done:]).strip()


def _replied_to(message: Message, bot: BotIdentity) -> bool:
    replied = _reply(message)
    return replied is not None and replied.from_user is not None and replied.from_user.id == bot.id


def _reply(message: Message) -> Message | None:
    """The message that was answered; not the one that opened the topic, which stands there in
    every message of the topic."""
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created is not None:
        return None
    return replied


def _quote(message: Message) -> str | None:
    if message.quote is not None:
        return message.quote.text[:_QUOTE_CHARACTERS]
    replied = _reply(message)
    text = None if replied is None else replied.text or replied.caption
    return text[:_QUOTE_CHARACTERS] if text else None


def _attachments_asked_about(
    message: Message, command: Command | None, bot: BotIdentity
) -> tuple[Attachment, ...]:
    """Files of the message that was answered: with /ask, and in a group, where the bot has not
    seen it yet."""
    replied = _reply(message)
    if replied is None or (command is None and message.chat.type == Chat.PRIVATE):
        return ()
    return () if _replied_to(message, bot) else attachments_of(replied)
