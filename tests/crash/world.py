"""The platforms, the model, and people who write in several chats: all that is not the bot.

Each question has a number and is one word, such as `q17tool`; what the model answers to it is words
that name it and the model call that made them (`a17c203n1`, `a17c203n2`, …), so that what is lost or
comes twice can be seen in a chat, in the stored history and in a later request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from tests.servers.anthropic import AnthropicServer
from tests.servers.llm import HttpReply, LlmRequest, Reply, Text, flat_text, tool
from tests.servers.slack import Conversation, SlackServer
from tests.servers.slack import Message as SlackMessage
from tests.servers.slack import User as SlackUser
from tests.servers.telegram import Chat as TelegramChat
from tests.servers.telegram import Message as TelegramMessage
from tests.servers.telegram import TelegramServer
from tests.servers.telegram import User as TelegramUser

Kind = Literal["short", "slow", "tool", "tools", "long"]
KINDS: tuple[Kind, ...] = ("short", "slow", "tool", "tools", "long")
QUESTION = re.compile(r"\bq(\d+)(short|slow|tools|tool|long)\b")
WORD = re.compile(r"\ba(\d+)c(\d+)n(\d+)\b")
STOP = "Stop"
STOP_WORD = "cancel"
BARE = "…"

WORDS = {"short": 12, "slow": 60, "tool": 12, "tools": 12, "long": 900}


@dataclass(frozen=True, slots=True)
class Shown:
    """One message of the bot as it stands now: `words` are (question, model call, number)."""

    id: str
    text: str
    stoppable: bool

    @property
    def words(self) -> list[tuple[int, int, int]]:
        """Those of answers."""
        return [(int(q), int(c), int(n)) for q, c, n in WORD.findall(self.text)]


class Place(Protocol):
    """A conversation with the bot."""

    @property
    def name(self) -> str:
        """Where it is, in words."""
        ...

    @property
    def size(self) -> int:
        """How many people write there."""
        ...

    def ask(self, person: int, text: str) -> Any:
        """A person writes to the bot; the message."""
        ...

    def say(self, person: int, text: str) -> None:
        """Commands and stop words."""
        ...

    def press_stop(self) -> bool:
        """Somebody presses the newest Stop button; whether there was one."""
        ...

    def again(self, message: Any) -> None:
        """The platform delivers a message once more."""
        ...

    def shown(self) -> list[Shown]:
        """What the bot has written, oldest first."""
        ...

    def marked(self, message: Any) -> bool:
        """Whether the bot's reaction is on a message."""
        ...

    def transcript(self) -> Iterator[str]:
        """All messages, for a person to read."""
        ...


@dataclass(slots=True)
class TelegramPlace:
    """A private chat or a group."""

    server: TelegramServer
    chat: TelegramChat
    people: Sequence[TelegramUser]

    @property
    def name(self) -> str:
        """Where it is."""
        return f"telegram {self.chat.kind} {self.chat.id}"

    @property
    def size(self) -> int:
        """See `Place`."""
        return len(self.people)

    def ask(self, person: int, text: str) -> TelegramMessage:
        """See `Place`; in a group the bot is mentioned."""
        private = self.chat.kind == "private"
        whole = text if private else f"@{self.server.bot.username} {text}"
        return self.chat.send(whole, sender=self.people[person])

    def say(self, person: int, text: str) -> None:
        """See `Place`."""
        self.chat.send(f"/{text}", sender=self.people[person])

    def press_stop(self) -> bool:
        """See `Place`."""
        for message in reversed(self.chat.bot_messages):
            if STOP in message.buttons:
                self.chat.press(message, STOP, user=self.people[0])
                return True
        return False

    def again(self, message: TelegramMessage) -> None:
        """See `Place`."""
        self.server.redeliver(message)

    def shown(self) -> list[Shown]:
        """See `Place`."""
        return [Shown(str(m.id), m.text, STOP in m.buttons) for m in self.chat.bot_messages]

    def marked(self, message: TelegramMessage) -> bool:
        """See `Place`."""
        return bool(message.reactions)

    def transcript(self) -> Iterator[str]:
        """See `Place`."""
        for message in self.chat.all_messages.values():
            gone = " (deleted)" if message.deleted else ""
            yield f"{message.sender_id}{gone} {message.id}: {_short(message.text)} {message.buttons}"
            for earlier in message.history[:-1]:
                yield f"    was {_short(earlier)}"


@dataclass(slots=True)
class SlackPlace:
    """A direct message, or a thread of a channel that begins with its first question."""

    server: SlackServer
    conversation: Conversation
    people: Sequence[SlackUser]
    threaded: bool = False
    root: SlackMessage | None = None

    @property
    def name(self) -> str:
        """Where it is."""
        return f"slack {self.conversation.kind} {self.conversation.id}"

    @property
    def size(self) -> int:
        """See `Place`."""
        return len(self.people)

    def ask(self, person: int, text: str) -> SlackMessage:
        """See `Place`."""
        whole = f"<@BOT> {text}" if self.threaded else text
        message = self.conversation.send(whole, self.people[person], thread=self.root)
        if self.threaded and self.root is None:
            self.root = message
        return message

    def say(self, person: int, text: str) -> None:
        """See `Place`; a slash command would be lost while nobody is connected."""
        if self.root is not None or not self.threaded:
            self.conversation.send(text, self.people[person], thread=self.root)

    def press_stop(self) -> bool:
        """See `Place`."""
        for message in reversed(self.conversation.from_bot):
            for button in message.buttons:
                if button.text == STOP:
                    self.conversation.press(message, button, self.people[0])
                    return True
        return False

    def again(self, message: SlackMessage) -> None:
        """See `Place`."""
        if self.server.socket.connections:
            for delivery in message.events:
                self.server.socket.repeat(delivery, same_envelope=False, attempt=1)

    def shown(self) -> list[Shown]:
        """See `Place`."""
        return [
            Shown(m.ts, m.shown, STOP in [button.text for button in m.buttons])
            for m in self.conversation.from_bot
        ]

    def marked(self, message: SlackMessage) -> bool:
        """See `Place`."""
        return any(self.server.bot.id in who for who in message.reactions.values())

    def transcript(self) -> Iterator[str]:
        """See `Place`."""
        for message in self.conversation.log:
            gone = " (deleted)" if message.deleted else ""
            buttons = [button.text for button in message.buttons]
            yield f"{message.user}{gone} {message.ts}: {_short(message.shown)} {buttons}"
            for earlier in message.history[:-1]:
                yield f"    was {_short(earlier)}"


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:100]}…{text[-50:]} ({len(text)})"


@dataclass(slots=True)
class Model:
    """What the model says, and what it was told twice."""

    calls: int = 0
    twice: list[str] = field(default_factory=list)
    trouble: list[HttpReply | Literal["cut", "reset"]] = field(default_factory=list)
    cut_off: set[int] = field(default_factory=set)
    """Calls whose answer broke off: what was shown of it stays, with a note that it is tried again."""

    answered: list[tuple[LlmRequest, int]] = field(default_factory=list)

    def under_way(self) -> set[int]:
        """Calls whose answer is not all said."""
        return {call for request, call in self.answered if not request.finished}

    def answer(self, request: LlmRequest) -> Reply | HttpReply:
        """The default answer of the server: tools first, then words."""
        self._look(request)
        if self.trouble and isinstance(self.trouble[0], HttpReply):
            trouble = self.trouble.pop(0)
            assert isinstance(trouble, HttpReply)
            return trouble
        self.calls += 1
        self.answered.append((request, self.calls))
        found, rounds = _newest_question(request)
        kinds = {kind for _, kind in found}
        most = 2 if "tools" in kinds else 1 if "tool" in kinds else 0
        if rounds < most:
            return self._call_tools(found, rounds)
        pieces = tuple(f"{word} " for q, kind in found for word in self._words(q, kind))
        size = max(1, len(pieces) // 12)
        chunks = tuple("".join(pieces[i : i + size]) for i in range(0, len(pieces), size))
        reply = Reply(Text(chunks or ("Nothing to do.",)))
        reply.slowly(0.05 if "slow" in kinds else 0.015)
        if self.trouble:
            reply.cut_after(len(chunks) // 2, reset=self.trouble.pop(0) == "reset")
            self.cut_off.add(self.calls)
        return reply

    def _call_tools(self, found: Sequence[tuple[int, str]], rounds: int) -> Reply:
        keys = [f"q{q}.{rounds}" for q, kind in found if kind in ("tool", "tools")]
        if rounds == 0:
            keys += [f"q{q}.{rounds}b" for q, kind in found if kind == "tools"]
        return Reply("One moment.", *(tool("pay", {"key": key}) for key in keys)).slowly(0.01)

    def _words(self, question: int, kind: str) -> list[str]:
        return [f"a{question}c{self.calls}n{n}" for n in range(1, WORDS[kind] + 1)]

    def _look(self, request: LlmRequest) -> None:
        """No question and no word of an answer stands twice in a request."""
        texts = {"user": "", "assistant": ""}
        for message in request.messages:
            texts[message["role"]] += flat_text(message.get("content")) + "\n"
        questions = Counter(QUESTION.findall(texts["user"]))
        words = Counter(WORD.findall(texts["assistant"]))
        for what in (questions, words):
            twice = [one for one, count in what.items() if count > 1]
            if twice:
                self.twice.append(f"{twice[:5]} twice in request {request.id}")


def _newest_question(request: LlmRequest) -> tuple[list[tuple[int, str]], int]:
    """The questions of the turn that is being answered, and how many rounds of tools it has had."""
    rounds = 0
    for message in reversed(request.messages):
        content: Any = message.get("content")
        if message["role"] == "assistant" and not isinstance(content, str):
            rounds += any(block["type"] == "tool_use" for block in content)
        if message["role"] == "user":
            said = flat_text(content)
            found = [(int(q), kind) for q, kind in QUESTION.findall(said)]
            if found or STOP_WORD in said:  # which came when there was nothing to stop
                return found, rounds
    return [], 0


class World:
    """All servers and chats. `private`: how many private chats on each platform; `database`: the file
    of the bot."""

    def __init__(self, private: int, database: Path) -> None:
        self.database = database
        self.telegram = TelegramServer(privacy_mode=False)
        self.slack = SlackServer()
        self.slack.socket.ack_timeout_s = 1.0
        self.llm = AnthropicServer()
        self.model = Model()
        self.llm.default = self.model.answer
        self.under_way: set[object] = set()  # troubles
        self._private = private
        self.places: list[Place] = []

    async def start(self) -> None:
        """Open the servers and make the chats."""
        await self.telegram.start()
        await self.slack.start()
        await self.llm.start()
        numbers = range(self._private)
        t = self.t_people = [self.telegram.user(f"T{n}", language_code="en") for n in numbers]
        s = self.s_people = [self.slack.user(f"S{n}", locale="en-US") for n in numbers]
        group = self.telegram.group("Team", members=t[:3])
        room = self.slack.channel("team", members=s[:3])
        self.places = [
            *(TelegramPlace(self.telegram, self.telegram.private(p), [p]) for p in t),
            TelegramPlace(self.telegram, group, t[:3]),
            *(SlackPlace(self.slack, self.slack.dm(p), [p]) for p in s),
            SlackPlace(self.slack, room, s[:3], threaded=True),
        ]

    async def stop(self) -> None:
        """Close the servers."""
        await self.telegram.stop()
        await self.slack.stop()
        await self.llm.aclose()

    def config(self) -> dict[str, Any]:
        """The bot's configuration."""
        return {
            "timezone": "Europe/Berlin",
            "model": "main",
            "providers": {
                "p": {
                    "kind": "anthropic",
                    "api_key": self.llm.api_key,
                    "base_url": self.llm.base_url,
                }
            },
            "models": {"main": {"provider": "p", "id": "test-model", "context_tokens": "100000"}},
            "limits": {"queue_length": "1000"},
            "channels": {
                "telegram": {
                    "token": self.telegram.token,
                    "base_url": self.telegram.base_url.removesuffix("/bot"),
                    "owners": [str(person.id) for person in self.t_people],
                },
                "slack": {
                    "bot_token": self.slack.bot_token,
                    "app_token": self.slack.app_token,
                    "base_url": self.slack.base_url,
                    "owners": [person.id for person in self.s_people],
                },
            },
        }
