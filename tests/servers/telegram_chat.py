"""A chat's state: messages, members, topics, and what of it the bot is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from tests.servers.telegram_people import GENERAL_TOPIC, Message, User
from tests.servers.telegram_text import Json

if TYPE_CHECKING:
    from tests.servers.telegram_world import World

# A group message with none of these and no text is a service message.
_CONTENT = frozenset(
    ("text", "photo", "document", "voice", "video", "audio", "sticker", "animation", "location")
)


class ChatState:
    """What a chat is and shows; `Chat` adds what its members do."""

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
        """private, group, supergroup or channel"""
        self.id = chat_id
        self.title = title
        self.forum = forum
        self.members: dict[int, User] = {user.id: user for user in members}
        self.admins: dict[int, str] = {}
        """user id -> administrator or creator"""
        self.lacking: dict[int, frozenset[str]] = {}
        """user id -> rights that this administrator does not have"""
        self.topics: dict[int, Message] = {}
        """thread id -> the service message that opened the topic"""
        self.closed_topics: set[int] = set()
        self.linked: ChatState | None = None
        """channel <-> its discussion group"""
        self.migrated_to: int | None = None
        self.bot_status = "member"
        """member, administrator, restricted, left or kicked (in a private chat: blocked)"""
        self.members_hidden = False
        """whether only administrators are told about single members"""
        self.started = True
        """whether the person of a private chat has written to the bot"""
        self.actions: list[tuple[float, str, int | None]] = []
        """chat actions of the bot: (time.monotonic(), action, thread)"""
        self.drafts: list[Json] = []
        """drafts of the bot as sent: draft_id, text, entities, message_thread_id, at"""
        self.all_messages: dict[int, Message] = {}
        """by id, deleted ones included"""
        self._last_id = 1  # the message that says that the group was made

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
        """Texts of the bot's visible messages, oldest first."""
        return [message.text for message in self.bot_messages]

    @property
    def last(self) -> Message | None:
        """The bot's newest visible message."""
        return self.bot_messages[-1] if self.bot_messages else None

    async def wait_for_message(
        self, fits: Callable[[Message], bool] = lambda message: True, timeout: float = 20
    ) -> Message:
        """The bot's newest visible message for which `fits` is true."""

        def look() -> Message | None:
            return next((m for m in reversed(self.bot_messages) if fits(m)), None)

        message = await self.world.wait_for(look, timeout)
        assert message is not None
        return message

    async def wait_for_text(
        self, text: str | Callable[[str], bool], timeout: float = 20
    ) -> Message:
        """The bot's newest visible message that contains `text` (or for which it is true)."""
        if isinstance(text, str):
            return await self.wait_for_message(lambda m: text in m.text, timeout)
        return await self.wait_for_message(lambda m: text(m.text), timeout)

    async def wait_for_button(self, label: str, timeout: float = 20) -> Message:
        """The bot's newest visible message with a button of this label."""
        return await self.wait_for_message(lambda m: label in m.buttons, timeout)

    async def wait_for_count(self, count: int, timeout: float = 20) -> list[Message]:
        """The bot's visible messages as soon as there are at least `count`."""
        await self.world.wait_for(lambda: len(self.bot_messages) >= count, timeout)
        return self.bot_messages

    # ---- for acts and methods -----------------------------------------------------------------

    def find(self, message_id: int) -> Message | None:
        """A visible message by id."""
        message = self.all_messages.get(message_id)
        return None if message is None or message.deleted else message

    def someone(self) -> User:
        """The first member who is a person."""
        return next(user for user in self.members.values() if not user.is_bot)

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

    def add(
        self, fields: Json, author: User | None, replied: Message | None, topic: int | None
    ) -> Message:
        """Puts a message into the chat. `fields` win over what is worked out here."""
        data: Json = {"message_id": self._next_id(), "date": int(time.time()), "chat": self.json()}
        if author is not None:
            data["from"] = author.json()
        data |= self._thread_fields(replied, topic)
        if replied is not None:
            data["reply_to_message"] = replied.as_replied()
        message = Message(self, data | fields)
        self.all_messages[message.id] = message
        self.world.changed()
        return message

    def _next_id(self) -> int:
        """Supergroups and channels count by themselves, the others share the account's count."""
        if self.kind in ("private", "group"):
            return self.world.next_account_message_id()
        self._last_id += 1
        return self._last_id

    def _thread_fields(self, replied: Message | None, topic: int | None) -> Json:
        """Messages of a topic are marked, and answer the message that opened it.

        A reply elsewhere in a supergroup, General included, carries its thread's root as
        `message_thread_id` without `is_topic_message`: an id that cannot be sent to.
        """
        if topic is None and replied is not None and replied.data.get("is_topic_message"):
            topic = replied.thread
        if topic is not None and (topic in self.topics or topic != GENERAL_TOPIC):
            fields: Json = {"message_thread_id": topic, "is_topic_message": True}
            if topic in self.topics:
                fields["reply_to_message"] = self.topics[topic].as_replied()
            return fields
        if replied is not None and self.kind == "supergroup":
            return {"message_thread_id": replied.thread or replied.id}
        return {}

    def deliver(self, kind: str, message: Message) -> None:
        """Queues the update if the bot is there and privacy mode lets it through."""
        if self.bot_status not in ("left", "kicked") and self._bot_sees(message):
            self.world.updates.push(kind, message.json())

    def _bot_sees(self, message: Message) -> bool:
        """core.telegram.org/bots/features#privacy-mode."""
        in_group = self.kind in ("group", "supergroup")
        if not in_group or not self.world.privacy_mode or self.bot_status == "administrator":
            return True
        data = message.data
        if not _CONTENT & data.keys():
            return True  # a service message
        if data.get("via_bot", {}).get("id") == self.world.bot.id:
            return True
        replied = data.get("reply_to_message", {})
        if message.reply_to and replied.get("from", {}).get("id") == self.world.bot.id:
            return True
        return any(
            kind == "bot_command" and self._is_for_bot(text) for kind, text in message.formatted
        )

    def _is_for_bot(self, command: str) -> bool:
        _, at, name = command.partition("@")
        return not at or name.lower() == (self.world.bot.username or "").lower()

    def service(self, author: User, **fields: Any) -> Message:
        """A service message, delivered."""
        message = self.add(fields, author, None, None)
        self.deliver("message", message)
        return message

    def receive_forward(self, post: Message, author: User) -> Message:
        """The copy of a linked channel's post in this discussion group."""
        skipped = ("message_id", "date", "chat", "from", "reply_to_message", "sender_chat")
        fields = {k: v for k, v in post.data.items() if k not in skipped}
        fields |= {
            "sender_chat": post.chat.json(),
            "is_automatic_forward": True,
            "forward_origin": {
                "type": "channel",
                "date": post.data["date"],
                "chat": post.chat.json(),
                "message_id": post.id,
            },
        }
        message = self.add(fields, author, None, None)
        self.deliver("message", message)
        return message
