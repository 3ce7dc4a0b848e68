"""What exists in a Slack workspace: people, messages, files, and waiting for a change of them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.servers.slack_render import Button, Json, buttons, render, unescaped

T = TypeVar("T")


class SlackError(Exception):
    """A refusal of the Web API: `{"ok": false, "error": code}` with further fields.

    `status` is the HTTP status (429 with `headers` for a rate limit, else 200).
    """

    def __init__(
        self, code: str, *, status: int = 200, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(code)
        self.status = status
        self.headers = headers or {}
        self.body: Json = {"ok": False, "error": code, **more}


class Changes:
    """Wakes those who wait for a state, at each change; nobody polls."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Event] = set()

    def notify(self) -> None:
        """Something is different now."""
        for event in self._waiters:
            event.set()

    async def wait_for(
        self, look: Callable[[], T | None], timeout: float, describe: Callable[[], str]
    ) -> T:
        """The first true value of `look()`; `AssertionError` with `describe()` at the timeout."""
        event = asyncio.Event()
        self._waiters.add(event)
        try:
            async with asyncio.timeout(timeout):
                while not (found := look()):
                    event.clear()
                    await event.wait()
            return found
        except TimeoutError:
            raise AssertionError(f"not seen within {timeout} s; now:\n{describe()}") from None
        finally:
            self._waiters.discard(event)


class Ids:
    """Ids in Slack's shapes, the same in each run; a `ts` is unique and rises."""

    def __init__(self) -> None:
        self._numbers: dict[str, itertools.count[int]] = {}
        self._last_us = 0

    def next(self, prefix: str) -> str:
        """`U0TEST0001`, `U0TEST0002`, …"""
        count = self._numbers.setdefault(prefix, itertools.count(1))
        return f"{prefix}0TEST{next(count):04d}"

    def ts(self) -> str:
        """Seconds and microseconds, as Slack writes them: `1732950000.123456`."""
        self._last_us = max(time.time_ns() // 1000, self._last_us + 1)
        return f"{self._last_us // 10**6}.{self._last_us % 10**6:06d}"


@dataclass(eq=False)
class User:
    """A member of the workspace. `tz` is an IANA name, `locale` BCP 47."""

    id: str
    name: str
    locale: str = "en-US"
    tz: str = "Europe/Amsterdam"
    is_bot: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_owner: bool = False
    is_admin: bool = False
    deleted: bool = False
    team_id: str = ""
    bot_id: str | None = None
    """Of a bot user: the `B…` id that its messages carry."""

    @property
    def mention(self) -> str:
        """How a text names this person."""
        return f"<@{self.id}>"

    @property
    def handle(self) -> str:
        """The user name."""
        return self.name.lower().replace(" ", ".")

    def json(self, *, include_locale: bool) -> Json:
        """The `user` of users.info."""
        body: Json = {
            "id": self.id,
            "team_id": self.team_id,
            "name": self.handle,
            "deleted": self.deleted,
            "real_name": self.name,
            "tz": self.tz,
            "tz_label": self.tz,
            "tz_offset": 0,
            "profile": {
                "real_name": self.name,
                "display_name": self.name,
                "real_name_normalized": self.name,
                "display_name_normalized": self.name,
                "team": self.team_id,
            },
            "is_admin": self.is_admin or self.is_owner,
            "is_owner": self.is_owner,
            "is_primary_owner": False,
            "is_restricted": self.is_restricted,
            "is_ultra_restricted": self.is_ultra_restricted,
            "is_bot": self.is_bot,
            "is_app_user": False,
            "updated": 1700000000,
        }
        if include_locale:
            body["locale"] = self.locale
        if self.bot_id:
            body["profile"]["bot_id"] = self.bot_id
        return body


@dataclass(eq=False)
class File:
    """An uploaded file. `shares` are the messages (`ts`) that show it, by conversation."""

    id: str
    name: str
    content: bytes
    mimetype: str
    url: str
    user: str
    title: str = ""
    shares: dict[str, list[str]] = field(default_factory=dict)
    expected: int | None = None
    """Of an upload that is not complete: the announced size."""

    def json(self) -> Json:
        """The file object of a message and of files.info."""
        suffix = self.name.rpartition(".")[2] if "." in self.name else "text"
        return {
            "id": self.id,
            "created": 1700000000,
            "timestamp": 1700000000,
            "name": self.name,
            "title": self.title or self.name,
            "mimetype": self.mimetype,
            "filetype": suffix,
            "pretty_type": suffix.upper(),
            "user": self.user,
            "mode": "hosted",
            "size": len(self.content),
            "is_external": False,
            "is_public": False,
            "url_private": self.url,
            "url_private_download": "/download/".join(self.url.rsplit("/", 1)),
            "file_access": "visible",
        }


@dataclass(eq=False)
class Message:
    """A message as it stands now.

    `ts` names it; `thread_ts` is that of the thread's first message. `history` holds what was
    shown before each edit, oldest first, and the present state last. `reactions` maps a name to
    the ids of those who reacted. `ephemeral_to` is the only person who sees it.
    """

    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Json] = field(default_factory=list)
    thread_ts: str | None = None
    bot_id: str | None = None
    app_id: str | None = None
    subtype: str | None = None
    files: list[File] = field(default_factory=list)
    client_msg_id: str | None = None
    reactions: dict[str, list[str]] = field(default_factory=dict)
    edited: Json | None = None
    deleted: bool = False
    ephemeral_to: str | None = None
    reply_users: list[str] = field(default_factory=list)
    latest_reply: str | None = None
    history: list[str] = field(default_factory=list)
    extra: Json = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    """The deliveries that its arrival caused."""

    @property
    def shown(self) -> str:
        """What a person reads: the blocks as text if there are any, else the text."""
        return render(self.blocks) if self.blocks else unescaped(self.text)

    @property
    def buttons(self) -> list[Button]:
        """The buttons, in order."""
        return buttons(self.blocks)

    @property
    def reply_count(self) -> int:
        """Replies in its thread."""
        return len(self.reply_users)

    def json(self) -> Json:
        """The message object, as in conversations.history."""
        body: Json = {"type": "message", "user": self.user, "text": self.text, "ts": self.ts}
        optional = {
            "subtype": self.subtype,
            "client_msg_id": self.client_msg_id,
            "blocks": self.blocks or None,
            "thread_ts": self.thread_ts or (self.ts if self.reply_users else None),
            "bot_id": self.bot_id,
            "app_id": self.app_id,
            "edited": self.edited,
            "files": [file.json() for file in self.files] or None,
            "reactions": [
                {"name": name, "users": list(users), "count": len(users)}
                for name, users in self.reactions.items()
            ]
            or None,
        }
        body |= {key: value for key, value in optional.items() if value is not None}
        if self.reply_users:
            users = list(dict.fromkeys(self.reply_users))
            body |= {
                "reply_count": self.reply_count,
                "reply_users": users,
                "reply_users_count": len(users),
                "latest_reply": self.latest_reply,
            }
        return body | self.extra

    def __repr__(self) -> str:
        return f"<{self.ts} {self.user}: {self.shown!r}>"
