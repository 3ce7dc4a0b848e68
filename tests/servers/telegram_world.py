"""Everything that exists on the platform: users, chats, files, presses, the bot's settings."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from tests.servers.telegram_acts import Chat
from tests.servers.telegram_media import FileStore
from tests.servers.telegram_people import Message, Press, User
from tests.servers.telegram_text import Json
from tests.servers.telegram_updates import ApiError, Changes, UpdateQueue

T = TypeVar("T")


class World:
    """State without HTTP. Ids rise and are the same in each run."""

    def __init__(
        self, bot: User, *, privacy_mode: bool = True, topics_enabled: bool = False
    ) -> None:
        self.bot = bot
        self.privacy_mode = privacy_mode
        self.topics_enabled = topics_enabled
        self._changes = Changes()
        self.updates = UpdateQueue(self.changed, first_id=1001)
        self.users: dict[int, User] = {bot.id: bot}
        self.chats: dict[int, Chat] = {}
        self.presses: dict[str, Press] = {}
        self.commands: dict[str, list[Json]] = {}
        self.webhook: Json = {"url": ""}
        self.files = FileStore()
        self.logged_out = False
        self._ids = itertools.count(101)
        self._press_ids = itertools.count(4_000_000_001)
        self._message_ids = itertools.count(1)
        self._album_ids = itertools.count(13_000_000_000_000_001)

    # ---- waking -------------------------------------------------------------------------------

    def changed(self) -> None:
        """Wakes all who wait."""
        self._changes.notify()

    async def wait_for(self, look: Callable[[], T], timeout: float = 20) -> T:
        """The first true value of `look()`, tried again after each change.

        Raises `AssertionError` with the state of all chats after `timeout` seconds.
        """
        return await self._changes.wait_for(look, timeout, self.describe)

    def describe(self) -> str:
        """What the chats show, for the message of a failed wait."""
        lines = [f"{chat.id} {chat.kind}: {chat.messages}" for chat in self.chats.values()]
        return "\n".join([*lines, f"unconfirmed updates: {self.updates.pending}"])

    # ---- making -------------------------------------------------------------------------------

    def user(
        self,
        name: str,
        *,
        id: int | None = None,
        username: str | None = None,
        language_code: str | None = None,
        is_bot: bool = False,
        **extra: Any,
    ) -> User:
        """A new person (or other bot); `extra` are further fields of User."""
        user = User(id or next(self._ids), name, username, is_bot, language_code, extra)
        self.users[user.id] = user
        return user

    def private(self, user: User, *, started: bool = True) -> Chat:
        """The private chat of a person with the bot; the same one each time."""
        chat = self.chats.get(user.id)
        if chat is None:
            chat = self._add(Chat(self, "private", user.id, members=[user]))
            chat.started = started
        return chat

    def group(
        self,
        title: str,
        *,
        members: Iterable[User],
        forum: bool = False,
        basic: bool = False,
        id: int | None = None,
        bot_status: str = "member",
    ) -> Chat:
        """A supergroup, or a basic group. The bot is in it unless `bot_status` is "left"."""
        number = next(self._ids)
        kind = "group" if basic else "supergroup"
        chat_id = id or (-number if basic else -1_000_000_000_000 - number)
        chat = self._add(Chat(self, kind, chat_id, title=title, members=members, forum=forum))
        chat.bot_status = bot_status
        return chat

    def channel(self, title: str, *, discussion: Chat | None = None) -> Chat:
        """A channel with the bot as administrator; its posts are forwarded to `discussion`."""
        chat = self._add(Chat(self, "channel", -1_000_000_000_000 - next(self._ids), title=title))
        chat.bot_status = "administrator"
        chat.linked = discussion
        if discussion is not None:
            discussion.linked = chat
        return chat

    def _add(self, chat: Chat) -> Chat:
        self.chats[chat.id] = chat
        return chat

    def next_account_message_id(self) -> int:
        """Private chats and basic groups share one count."""
        return next(self._message_ids)

    def next_album_id(self) -> int:
        """A new `media_group_id`."""
        return next(self._album_ids)

    # ---- presses ------------------------------------------------------------------------------

    def press(self, message: Message, user: User, data: str) -> Press:
        """A press on a button: the bot gets a callback_query."""
        press = Press(str(next(self._press_ids)), message, user)
        self.presses[press.id] = press
        query = {
            "id": press.id,
            "from": user.json(),
            "message": _inaccessible(message) if message.deleted else message.json(),
            "chat_instance": str(message.chat.id),
            "data": data,
        }
        self.updates.push("callback_query", query)
        self.changed()
        return press

    def answer_press(self, query_id: str, answer: Json) -> None:
        """Raises `ApiError` for an unknown, expired or already answered press."""
        press = self.presses.get(query_id)
        if press is None or press.answered or press.expired:
            raise ApiError(
                400,
                "Bad Request: query is too old and response timeout expired or query ID is invalid",
            )
        press.answer = answer
        press.answered_at = time.monotonic()
        self.changed()

    # ---- for the methods ----------------------------------------------------------------------

    def chat_for_bot(self, chat_id: Any) -> Chat:
        """The chat that the bot names. Raises `ApiError` if the bot has no access."""
        chat = self._by_id(chat_id)
        if chat is None:
            raise ApiError(400, "Bad Request: chat not found")
        if chat.migrated_to is not None:
            raise ApiError(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                {"migrate_to_chat_id": chat.migrated_to},
            )
        if chat.kind == "private":
            if not chat.started:
                raise ApiError(403, "Forbidden: bot can't initiate conversation with a user")
            if chat.bot_status == "kicked":
                raise ApiError(403, "Forbidden: bot was blocked by the user")
        elif chat.bot_status == "kicked":
            raise ApiError(403, f"Forbidden: bot was kicked from the {chat.kind} chat")
        elif chat.bot_status == "left":
            raise ApiError(403, f"Forbidden: bot is not a member of the {chat.kind} chat")
        return chat

    def _by_id(self, chat_id: Any) -> Chat | None:
        if chat_id in (None, ""):
            raise ApiError(400, "Bad Request: chat_id is empty")
        try:
            return self.chats.get(int(chat_id))
        except ValueError:
            return None


def _inaccessible(message: Message) -> Json:
    """A message that the bot can no longer reach: date is 0."""
    return {"chat": message.chat.json(), "message_id": message.id, "date": 0}
