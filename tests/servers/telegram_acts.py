"""What the members of a chat do: write, press, edit, send files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tests.servers.telegram_chat import ChatState
from tests.servers.telegram_people import (
    ANONYMOUS_ADMIN,
    CHANNEL_BOT,
    TELEGRAM,
    Message,
    Press,
    User,
)
from tests.servers.telegram_places import ChatPlaces
from tests.servers.telegram_text import MAX_TEXT, Json, as_typed, found, split_units, units


class Chat(ChatPlaces):
    """Private chat, basic group, supergroup (forum or not) or channel.

    Acts are plain methods: each changes the chat, queues what the real server would send to the
    bot, and wakes everyone who waits. Without `sender` the first member acts. `extra` are further
    fields of the Message (`via_bot`, `forward_origin`, …); users and chats in it become JSON.
    """

    def send(
        self,
        text: str,
        *,
        sender: User | None = None,
        reply_to: Message | int | None = None,
        quote: str | None = None,
        topic: int | None = None,
        entities: Sequence[Json] | None = None,
        **extra: Any,
    ) -> Message:
        """Sends text; `code`, **bold** and fences become entities unless `entities` are given.

        Mentions, commands and links are always found. Raises `ValueError` for more than 4096
        units: a client cuts such a text, see `paste`.
        """
        if entities is None:
            text, entities = as_typed(text)
        if not 0 < units(text) <= MAX_TEXT:
            raise ValueError(f"a client does not send {units(text)} units as one message")
        content = {"text": text, "entities": list(entities) or None}
        return self.send_any(
            content, sender=sender, reply_to=reply_to, quote=quote, topic=topic, **extra
        )

    def paste(self, text: str, **options: Any) -> list[Message]:
        """A long text, cut by the client into messages of 4096 units. Options as for `send`."""
        return [self.send(part, entities=found(part), **options) for part in split_units(text)]

    def send_any(
        self,
        content: Json,
        *,
        sender: User | None = None,
        reply_to: Message | int | None = None,
        quote: str | None = None,
        topic: int | None = None,
        **extra: Any,
    ) -> Message:
        """A message of any content, delivered to the bot if it may see it."""
        fields = {k: _plain(v) for k, v in (content | extra).items() if v is not None}
        replied = self.find(reply_to) if isinstance(reply_to, int) else reply_to
        if quote is not None and replied is not None:
            position = units(replied.text[: replied.text.index(quote)])
            fields["quote"] = {"text": quote, "position": position, "is_manual": True}
        author = None if self.kind == "channel" else sender or self.someone()
        if self.kind == "private":
            self.started = True
        if author is None:
            fields["sender_chat"] = self.json()
        message = self.add(fields, author, replied, topic)
        self.deliver("channel_post" if self.kind == "channel" else "message", message)
        if self.kind == "channel" and self.linked is not None:
            self.linked.receive_forward(message, TELEGRAM)
        return message

    # ---- files --------------------------------------------------------------------------------

    def send_photo(
        self,
        content: bytes | None = None,
        *,
        caption: str = "",
        width: int = 1280,
        height: int = 960,
        **options: Any,
    ) -> Message:
        """A photo in its several sizes; without `content` real grey JPEGs."""
        photo = self.world.files.photo(content, width, height)
        return self.send_any({"photo": photo} | _caption(caption), **options)

    def send_document(
        self,
        name: str,
        content: bytes = b"",
        *,
        mime_type: str = "application/octet-stream",
        caption: str = "",
        size: int | None = None,
        **options: Any,
    ) -> Message:
        """A file; `size` in bytes states another size than `content` has (over 20 MB, say)."""
        document = self.world.files.document(name, content, mime_type, size)
        return self.send_any({"document": document} | _caption(caption), **options)

    def send_voice(self, content: bytes = b"OggS", *, seconds: int = 3, **options: Any) -> Message:
        """A voice message."""
        return self.send_any({"voice": self.world.files.voice(content, seconds)}, **options)

    def send_sticker(self, emoji: str = "👍", **options: Any) -> Message:
        """A sticker."""
        return self.send_any({"sticker": self.world.files.sticker(emoji)}, **options)

    def send_album(self, captions: Sequence[str], **options: Any) -> list[Message]:
        """An album of photos, one for each caption (may be empty), each its own update."""
        album = str(self.world.next_album_id())
        return [
            self.send_photo(caption=caption, media_group_id=album, **options)
            for caption in captions
        ]

    # ---- special authors and origins ----------------------------------------------------------

    def send_anonymously(self, text: str, **options: Any) -> Message:
        """An anonymous admin writes: `from` is GroupAnonymousBot, `sender_chat` the group."""
        return self.send(text, sender=ANONYMOUS_ADMIN, sender_chat=self, **options)

    def send_as_channel(self, text: str, channel: ChatState, **options: Any) -> Message:
        """A member writes in the name of a channel."""
        return self.send(text, sender=CHANNEL_BOT, sender_chat=channel, **options)

    def forward(self, text: str, origin: User | ChatState | str, **options: Any) -> Message:
        """Forwards a text of a user, of a channel, or of someone hidden (their name)."""
        date = int(time.time())
        if isinstance(origin, User):
            source: Json = {"type": "user", "sender_user": origin.json(), "date": date}
        elif isinstance(origin, str):
            source = {"type": "hidden_user", "sender_user_name": origin, "date": date}
        else:
            chat = origin.json()
            source = {"type": "channel", "chat": chat, "message_id": 1, "date": date}
        return self.send(text, forward_origin=source, **options)

    # ---- on messages that exist ---------------------------------------------------------------

    def edit(self, message: Message, text: str, *, entities: Sequence[Json] | None = None) -> None:
        """The author edits a text or caption."""
        if entities is None:
            text, entities = as_typed(text)
        media = "text" not in message.data
        names = ("caption", "caption_entities") if media else ("text", "entities")
        message.change(**{names[0]: text, names[1]: list(entities) or None})
        self.deliver("edited_channel_post" if self.kind == "channel" else "edited_message", message)

    def delete(self, message: Message) -> None:
        """A member deletes a message; bots are not told."""
        message.deleted = True
        self.world.changed()

    def react(self, message: Message, *emoji: str, user: User | None = None) -> None:
        """A member's reactions become these: a message_reaction update, if the bot asked for it.

        In groups only administrators among bots are told.
        """
        who = user or self.someone()
        old = message.member_reactions.get(who.id, ())
        message.member_reactions[who.id] = emoji
        if self.kind == "private" or self.bot_status == "administrator":
            update = {
                "chat": self.json(),
                "message_id": message.id,
                "user": who.json(),
                "date": int(time.time()),
                "old_reaction": [{"type": "emoji", "emoji": e} for e in old],
                "new_reaction": [{"type": "emoji", "emoji": e} for e in emoji],
            }
            self.world.updates.push("message_reaction", update)
        self.world.changed()

    def press(self, message: Message, label: str, *, user: User | None = None) -> Press:
        """Presses the button with this label; `Press.answer` is what came back."""
        button = next((b for b in message.keyboard if b["text"] == label), None)
        assert button is not None, f"no button {label!r} on {message}"
        return self.press_data(message, button["callback_data"], user=user)

    def press_data(self, message: Message, data: str, *, user: User | None = None) -> Press:
        """A press with any callback data, for buttons that are gone or never were there."""
        return self.world.press(message, user or self.someone(), data)


def _caption(text: str) -> Json:
    plain, entities = as_typed(text)
    return {"caption": plain or None, "caption_entities": entities or None}


def _plain(value: Any) -> Any:
    return value.json() if isinstance(value, User | ChatState | Message) else value
