"""A chat as its members see it, and what they do in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tests.servers.telegram_people import (
    ANONYMOUS_ADMIN,
    CHANNEL_BOT,
    GENERAL_TOPIC,
    TELEGRAM,
    Message,
    Press,
    User,
)
from tests.servers.telegram_text import MAX_TEXT, Json, as_typed, found, split_units, units

if TYPE_CHECKING:
    from tests.servers.telegram_world import World


class Chat:
    """Private chat, basic group, supergroup (forum or not) or channel.

    Members' acts are plain methods: each changes the chat, queues what the real server would send
    to the bot, and wakes everyone who waits.
    """

    def __init__(
        self,
        world: World,
        kind: str,
        chat_id: int,
        *,
        title: str = "",
        members: Iterable[User] = (),
        forum: bool = False,
    ) -> None:
        self.world = world
        self.kind = kind
        self.id = chat_id
        self.title = title
        self.forum = forum
        self.members: dict[int, User] = {user.id: user for user in members}
        self.admins: dict[int, str] = {}
        self.topics: dict[int, str] = {}
        self.closed_topics: set[int] = set()
        self.linked: Chat | None = None
        self.migrated_to: int | None = None
        self.bot_status = "member"
        self.started = kind == "private"
        self.muted = False
        self.actions: list[tuple[float, str, int | None]] = []
        self.drafts: list[Json] = []
        self.all_messages: dict[int, Message] = {}
        self._last_id = 0

    # ---- what is seen -------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """Visible messages, oldest first."""
        return [message for message in self.all_messages.values() if not message.deleted]

    @property
    def bot_messages(self) -> list[Message]:
        """Visible messages of the bot under test."""
        return [message for message in self.messages if message.by_bot]

    @property
    def texts(self) -> list[str]:
        """Texts of the bot's visible messages."""
        return [message.text for message in self.bot_messages]

    @property
    def last(self) -> Message | None:
        """The bot's newest visible message."""
        return self.bot_messages[-1] if self.bot_messages else None

    async def wait_for_text(
        self, text: str | Callable[[str], bool], timeout: float = 5.0
    ) -> Message:
        """The bot's newest visible message that contains `text` (or for which it is true)."""
        matches = (lambda seen: text in seen) if isinstance(text, str) else text

        def look() -> Message | None:
            return next((m for m in reversed(self.bot_messages) if matches(m.text)), None)

        message = await self.world.wait_for(look, timeout)
        assert message is not None
        return message

    async def wait_for_button(self, label: str, timeout: float = 5.0) -> Message:
        """The bot's newest visible message with a button of this label."""

        def look() -> Message | None:
            return next((m for m in reversed(self.bot_messages) if label in m.buttons), None)

        message = await self.world.wait_for(look, timeout)
        assert message is not None
        return message

    # ---- what members do ----------------------------------------------------------------------

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
        """A member sends text; `code`, **bold** and fences become entities unless they are given.

        `extra` are further fields of the Message (`via_bot`, `forward_origin`, …). Raises
        `ValueError` for more than 4096 units: a client cuts such a text, see `paste`.
        """
        if entities is None:
            text, entities = as_typed(text)
        if not 0 < units(text) <= MAX_TEXT:
            raise ValueError(f"a client does not send {units(text)} units as one message")
        content: Json = {"text": text} | ({"entities": list(entities)} if entities else {})
        return self.send_any(
            content, sender=sender, reply_to=reply_to, quote=quote, topic=topic, **extra
        )

    def paste(self, text: str, *, sender: User | None = None, **extra: Any) -> list[Message]:
        """A long text, cut by the client into messages of 4096 units."""
        return [
            self.send(part, sender=sender, entities=found(part), **extra)
            for part in split_units(text)
        ]

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
        """A member's message of any content, delivered to the bot if it may see it."""
        message = self._member_message(content, sender, reply_to, quote, topic, extra)
        self.deliver("channel_post" if self.kind == "channel" else "message", message)
        if self.kind == "channel" and self.linked is not None:
            self.linked._forward_automatically(message)
        return message

    def _member_message(
        self,
        content: Json,
        sender: User | None,
        reply_to: Message | int | None,
        quote: str | None,
        topic: int | None,
        extra: Json,
    ) -> Message:
        fields = dict(content) | {k: v for k, v in extra.items() if v is not None}
        replied = self.find(reply_to) if isinstance(reply_to, int) else reply_to
        if quote is not None and replied is not None:
            position = units(replied.text[: replied.text.index(quote)])
            fields["quote"] = {"text": quote, "position": position, "is_manual": True}
        author = None if self.kind == "channel" else sender or self.someone()
        return self.add(fields, author, replied, topic)

    def someone(self) -> User:
        """The first member who is a person."""
        return next(user for user in self.members.values() if not user.is_bot)

    def edit(self, message: Message, text: str, *, entities: Sequence[Json] | None = None) -> None:
        """The author edits a message."""
        if entities is None:
            text, entities = as_typed(text)
        names = (
            ("caption", "caption_entities")
            if "caption" in message.data
            else (
                "text",
                "entities",
            )
        )
        message.change(**{names[0]: text, names[1]: list(entities) or None})
        kind = "edited_channel_post" if self.kind == "channel" else "edited_message"
        self.deliver(kind, message)

    def press(self, message: Message, label: str, *, user: User | None = None) -> Press:
        """A member presses the button with this label; `Press.answer` shows what came back."""
        button = next(b for b in message.keyboard if b["text"] == label)
        return self.press_data(message, button["callback_data"], user=user)

    def press_data(self, message: Message, data: str, *, user: User | None = None) -> Press:
        """A press with any callback data, for buttons that are gone or were never there."""
        return self.world.press(message, user or self.someone(), data)

    # ---- the inner side: used by the methods of the bot ----------------------------------------

    def find(self, message_id: int) -> Message | None:
        """A visible message by id."""
        message = self.all_messages.get(message_id)
        return None if message is None or message.deleted else message

    def json(self) -> Json:
        """The Bot API's Chat as it stands in messages."""
        data: Json = {"id": self.id, "type": self.kind}
        if self.kind == "private":
            person = self.someone()
            data["first_name"] = person.first_name
            if person.username:
                data["username"] = person.username
        else:
            data["title"] = self.title
            if self.forum:
                data["is_forum"] = True
        return data

    def next_id(self) -> int:
        """Supergroups and channels count by themselves, the others share the account's count."""
        if self.kind in ("private", "group"):
            return self.world.next_account_message_id()
        self._last_id += 1
        return self._last_id

    def add(
        self, fields: Json, author: User | None, replied: Message | None, topic: int | None
    ) -> Message:
        """Puts a message into the chat."""
        data: Json = {"message_id": self.next_id(), "date": int(time.time()), "chat": self.json()}
        if author is not None:
            data["from"] = author.json()
        data |= self._thread_fields(replied, topic)
        if replied is not None:
            data["reply_to_message"] = replied.as_replied()
        message = Message(self, data | fields)
        self.all_messages[message.id] = message
        self.world.changed()
        return message

    def _thread_fields(self, replied: Message | None, topic: int | None) -> Json:
        """Topics mark their messages; a reply elsewhere only carries its thread's root."""
        if topic is None and replied is not None and replied.data.get("is_topic_message"):
            topic = replied.thread
        if topic is not None and topic != GENERAL_TOPIC:
            return {"message_thread_id": topic, "is_topic_message": True}
        if replied is not None and self.kind == "supergroup":
            return {"message_thread_id": replied.thread or replied.id}
        return {}

    def deliver(self, kind: str, message: Message) -> None:
        """Queues the update if the bot is there and privacy mode lets it through."""
        if self.bot_status in ("left", "kicked") or not self._bot_sees(message):
            return
        self.world.updates.push(kind, message.json())

    def _bot_sees(self, message: Message) -> bool:
        """core.telegram.org/bots/features#privacy-mode."""
        if self.kind not in ("group", "supergroup") or not self.world.privacy_mode:
            return True
        if self.bot_status == "administrator":
            return True
        data = message.data
        if not message.text and not any(k in data for k in _MEDIA):
            return True  # service messages
        replied = data.get("reply_to_message", {})
        if replied.get("from", {}).get("id") == self.world.bot.id:
            return True
        if data.get("via_bot", {}).get("id") == self.world.bot.id:
            return True
        return any(
            self._is_for_bot(covered)
            for kind, covered in message.formatted
            if kind == "bot_command"
        )

    def _is_for_bot(self, command: str) -> bool:
        _, at, name = command.partition("@")
        return not at or name.lower() == (self.world.bot.username or "").lower()

    def _forward_automatically(self, post: Message) -> Message:
        """The copy of a channel's post that appears in its discussion group."""
        origin = {
            "type": "channel",
            "date": post.data["date"],
            "chat": post.chat.json(),
            "message_id": post.id,
        }
        skipped = ("message_id", "date", "chat", "from", "reply_to_message", "sender_chat")
        fields = {k: v for k, v in post.data.items() if k not in skipped}
        fields |= {
            "sender_chat": post.chat.json(),
            "is_automatic_forward": True,
            "forward_origin": origin,
        }
        message = self.add(fields, TELEGRAM, None, None)
        self.deliver("message", message)
        return message

    def send_anonymously(self, text: str, **extra: Any) -> Message:
        """An anonymous admin writes: the author is the group itself."""
        return self.send(text, sender=ANONYMOUS_ADMIN, sender_chat=self.json(), **extra)

    def send_as_channel(self, text: str, channel: Chat, **extra: Any) -> Message:
        """A member writes in the name of a channel."""
        return self.send(text, sender=CHANNEL_BOT, sender_chat=channel.json(), **extra)


_MEDIA = ("photo", "document", "voice", "video", "audio", "sticker", "animation", "location")
