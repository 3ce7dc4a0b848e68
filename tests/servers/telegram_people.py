"""Users and messages: what the platform knows about them and what a test reads off them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.servers.telegram_text import Json, piece

if TYPE_CHECKING:
    from tests.servers.telegram_chat import ChatState

# Telegram's fixed service accounts.
ANONYMOUS_ADMIN_ID = 1087968824  # @GroupAnonymousBot
CHANNEL_BOT_ID = 136817688  # @Channel_Bot, "from" of a message sent as a channel
TELEGRAM_ID = 777000  # "from" of automatic forwards
GENERAL_TOPIC = 1


@dataclass(frozen=True)
class User:
    """A person or bot; `extra` are further fields of the Bot API's User."""

    id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False
    language_code: str | None = None
    extra: Json = field(default_factory=dict, hash=False)

    def json(self) -> Json:
        """The Bot API's User."""
        data: Json = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name}
        if self.username:
            data["username"] = self.username
        if self.language_code:
            data["language_code"] = self.language_code
        return data | self.extra


ANONYMOUS_ADMIN = User(ANONYMOUS_ADMIN_ID, "Group", "GroupAnonymousBot", is_bot=True)
CHANNEL_BOT = User(CHANNEL_BOT_ID, "Channel", "Channel_Bot", is_bot=True)
TELEGRAM = User(TELEGRAM_ID, "Telegram")


@dataclass(eq=False)
class Message:
    """A message of a chat as it looks now. `data` is the Bot API's Message."""

    chat: ChatState
    data: Json
    sent_at: float = field(default_factory=time.monotonic)
    edits: list[Json] = field(default_factory=list)
    """Earlier versions of `data`, oldest first."""
    deleted: bool = False
    reactions: list[str] = field(default_factory=list)
    """Emoji that the bot has set now."""
    member_reactions: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Emoji by the id of the member who set them."""
    editable: bool = True
    """False: the bot can no longer edit it."""

    @property
    def id(self) -> int:
        """`message_id`, unique in its chat."""
        return int(self.data["message_id"])

    @property
    def text(self) -> str:
        """Text or caption; empty if there is neither."""
        return str(self.data.get("text", self.data.get("caption", "")))

    @property
    def entities(self) -> list[Json]:
        """Entities of the text or caption."""
        return list(self.data.get("entities") or self.data.get("caption_entities") or [])

    @property
    def formatted(self) -> list[tuple[str, str]]:
        """(type, covered text) of each entity."""
        return [(entity["type"], piece(self.text, entity)) for entity in self.entities]

    @property
    def sender_id(self) -> int | None:
        """Numeric id of `from`, None for a channel post."""
        return self.data["from"]["id"] if "from" in self.data else None

    @property
    def by_bot(self) -> bool:
        """Whether the bot under test sent it."""
        return self.sender_id == self.chat.world.bot.id

    @property
    def buttons(self) -> list[str]:
        """Labels of the inline keyboard, row by row, in reading order."""
        return [button["text"] for button in self.keyboard]

    @property
    def keyboard(self) -> list[Json]:
        """The inline keyboard's buttons in reading order."""
        rows = self.data.get("reply_markup", {}).get("inline_keyboard", [])
        return [button for row in rows for button in row]

    @property
    def reply_to(self) -> int | None:
        """Id of the message that this one answers; the one that opened a topic is none."""
        replied = self.data.get("reply_to_message")
        if replied is None or "forum_topic_created" in replied:
            return None
        return int(replied["message_id"])

    @property
    def thread(self) -> int | None:
        """`message_thread_id`."""
        return self.data.get("message_thread_id")

    @property
    def history(self) -> list[str]:
        """Every text that this message has shown, oldest first, the present one last."""
        texts = [str(v.get("text", v.get("caption", ""))) for v in [*self.edits, self.data]]
        return [text for i, text in enumerate(texts) if i == 0 or text != texts[i - 1]]

    def json(self) -> Json:
        """The Bot API's Message."""
        return dict(self.data)

    def as_replied(self) -> Json:
        """As it appears in another message's `reply_to_message`."""
        return {k: v for k, v in self.data.items() if k not in ("reply_to_message", "quote")}

    def change(self, **fields: Any) -> None:
        """Puts an edited version in place; None removes a field."""
        self.edits.append(self.data)
        merged = self.data | fields
        if fields.keys() != {"reply_markup"}:  # a change of buttons alone is not shown as an edit
            merged["edit_date"] = int(time.time())
        self.data = {k: v for k, v in merged.items() if v is not None}
        self.chat.world.changed()

    def __repr__(self) -> str:
        """For failed waits."""
        who = "bot" if self.by_bot else self.sender_id
        return f"<{self.id} {who}: {self.text[:200]!r} {self.buttons or ''}>"


@dataclass
class Press:
    """A pressed button; `answer` is what the person saw pop up."""

    id: str
    message: Message
    user: User
    pressed_at: float = field(default_factory=time.monotonic)
    answer: Json | None = None
    answered_at: float | None = None
    expired: bool = False
    """True: too late to answer."""

    @property
    def answered(self) -> bool:
        """Whether answerCallbackQuery came."""
        return self.answer is not None

    @property
    def answer_text(self) -> str:
        """Text of the pop-up, empty for a silent answer."""
        return str((self.answer or {}).get("text", ""))
