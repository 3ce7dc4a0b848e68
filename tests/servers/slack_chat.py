"""A conversation: what people do in it, and what they see."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.servers import slack_interact
from tests.servers.slack_delivery import Delivery
from tests.servers.slack_render import Button, Json, rich_text, typed
from tests.servers.slack_state import File, Message, User

if TYPE_CHECKING:
    from tests.servers.slack_world import World


class Conversation:
    """A direct message (`im`, `mpim`) or a channel (`channel` public, `group` private)."""

    def __init__(
        self, world: World, id: str, kind: str, name: str, members: Iterable[User] = ()
    ) -> None:
        self.world = world
        self.id = id
        self.kind = kind
        self.name = name
        self.members: list[User] = list(members)
        self.is_archived = False
        self.log: list[Message] = []
        """Every message that ever was, oldest first, deleted and ephemeral ones too."""

    # ---- what people see ----------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """What stands in the conversation now, threads included, oldest first."""
        return [one for one in self.log if not one.deleted and one.ephemeral_to is None]

    @property
    def from_bot(self) -> list[Message]:
        """The messages of the bot under test."""
        return [one for one in self.messages if one.user == self.world.bot.id]

    def thread(self, of: Message | str) -> list[Message]:
        """The replies in a thread, without its first message."""
        ts = of if isinstance(of, str) else of.ts
        return [one for one in self.messages if one.thread_ts == ts and one.ts != ts]

    def ephemerals(self, user: User) -> list[Message]:
        """What only this person sees, oldest first."""
        return [one for one in self.log if one.ephemeral_to == user.id and not one.deleted]

    def find(self, ts: str) -> Message | None:
        """The message with this `ts`, if it stands here."""
        return next((one for one in self.messages if one.ts == ts), None)

    async def wait_for_text(self, text: str, timeout: float = 5.0) -> Message:
        """The first message of the bot that shows `text`."""
        return await self.world.wait_for(
            lambda: next((one for one in self.from_bot if text in one.shown), None), timeout
        )

    # ---- what people do -----------------------------------------------------------------------

    def send(
        self,
        text: str,
        sender: User | None = None,
        *,
        thread: Message | str | None = None,
        files: Iterable[File] = (),
        subtype: str | None = None,
        deliver: bool = True,
        **extra: Any,
    ) -> Message:
        """Somebody writes `text` as typed; `<@BOT>` in it stands for the bot, `<@U…>` for others.

        `sender` is the only other member by default; `extra` are further fields of the message.
        The events are in `message.events`; without `deliver` they wait for `server.deliver`.
        """
        who = sender or self._only_person()
        attached = list(files)
        message = Message(
            self.id,
            self.world.ids.ts(),
            who.id,
            self._typed(text),
            thread_ts=_ts(thread),
            bot_id=who.bot_id,
            subtype=subtype or ("file_share" if attached else None),
            files=attached,
            client_msg_id=None if who.is_bot else str(uuid.uuid4()),
            extra={"team": self.world.team_id, **extra},
        )
        if not who.is_bot and text:
            message.blocks = [rich_text(message.text, self.world.ids.next("blk"))]
        self.add(message, deliver=deliver)
        return message

    def edit(self, message: Message, text: str, editor: User | None = None) -> None:
        """Somebody changes what they wrote: `message_changed` with `edited`."""
        before = message.json()
        message.text = self._typed(text)
        message.blocks = [rich_text(message.text, self.world.ids.next("blk"))]
        message.edited = {"user": editor.id if editor else message.user, "ts": self.world.ids.ts()}
        self.changed(message, before)

    def delete(self, message: Message) -> None:
        """The message goes: `message_deleted`."""
        message.deleted = True
        about = {"deleted_ts": message.ts, "previous_message": message.json()}
        self._emit_hidden("message_deleted", message, about)
        self.world.changed()

    def unfurl(self, message: Message, title: str = "Example") -> None:
        """Slack adds a link's preview: `message_changed` with the same text and no `edited`."""
        before = message.json()
        message.extra["attachments"] = [
            {"id": 1, "title": title, "from_url": "https://example.org"}
        ]
        self.changed(message, before)

    def react(self, message: Message, name: str, user: User | None = None) -> None:
        """Somebody reacts."""
        message.reactions.setdefault(name, []).append((user or self._only_person()).id)
        self.world.changed()

    def slash(
        self,
        command: str,
        text: str = "",
        user: User | None = None,
        *,
        thread: Message | str | None = None,
    ) -> Delivery | None:
        """A slash command of the app (`server.commands`). None when Slack keeps it to itself, as
        it does with unknown ones and in threads: the person sees why."""
        return slack_interact.slash(self, command, text, user or self._only_person(), thread)

    def press(self, message: Message, button: str | Button, user: User | None = None) -> Delivery:
        """A button is pressed; `button` is its text, its action_id, or the button itself.

        Raises `AssertionError` when the message does not show it.
        """
        return slack_interact.press(self, message, button, user or self._only_person())

    def join(self, user: User, inviter: User | None = None) -> None:
        """`member_joined_channel`, for the bot too."""
        if user not in self.members:
            self.members.append(user)
        event = {
            "type": "member_joined_channel",
            "user": user.id,
            "channel": self.id,
            "channel_type": "G" if self.kind == "group" else "C",
            "team": self.world.team_id,
            "event_ts": self.world.ids.ts(),
        }
        if inviter is not None:
            event["inviter"] = inviter.id
        if self.has_bot:
            self.world.emit(event)

    def json(self, *, members: bool = False) -> Json:
        """The channel object."""
        body: Json = {
            "id": self.id,
            "created": 1700000000,
            "is_archived": self.is_archived,
            "is_im": self.kind == "im",
            "is_org_shared": False,
            "context_team_id": self.world.team_id,
        }
        if self.kind == "im":
            return body | {"user": self._only_person().id, "is_user_deleted": False}
        body |= {
            "name": self.name,
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "group",
            "is_mpim": self.kind == "mpim",
            "is_private": self.kind != "channel",
            "is_member": self.has_bot,
            "topic": {"value": "", "creator": "", "last_set": 0},
            "purpose": {"value": "", "creator": "", "last_set": 0},
        }
        return body | ({"num_members": len(self.members)} if members else {})

    # ---- shared with the Web API --------------------------------------------------------------

    @property
    def has_bot(self) -> bool:
        """Whether the bot is a member."""
        return self.world.bot in self.members

    def add(self, message: Message, *, deliver: bool = True) -> list[Delivery]:
        """Puts a message here and tells the app, as far as it is a member."""
        message.history.append(message.shown)
        self.log.append(message)
        for file in message.files:
            file.shares.setdefault(self.id, []).append(message.ts)
        if message.ephemeral_to is None and self.has_bot:
            message.events = self._events_of(message)
            if deliver:
                for delivery in message.events:
                    self.world.deliver(delivery)
            self._count_reply(message)
        self.world.changed()
        return message.events

    def changed(self, message: Message, before: Json) -> None:
        """Records a new state of a message and sends `message_changed`."""
        message.history.append(message.shown)
        about = {"message": message.json(), "previous_message": before}
        self._emit_hidden("message_changed", message, about)
        self.world.changed()

    def _events_of(self, message: Message) -> list[Delivery]:
        event = message.json() | {
            "channel": self.id,
            "event_ts": message.ts,
            "channel_type": self.kind,
        }
        parent = self.find(message.thread_ts) if message.thread_ts else None
        if parent is not None:
            event["parent_user_id"] = parent.user
        deliveries = [self.world.event(event)]
        mentioned = self.world.bot.mention in message.text
        if mentioned and self.kind != "im" and message.user != self.world.bot.id:
            mention = {key: event[key] for key in event if key not in ("channel_type", "subtype")}
            deliveries.append(self.world.event(mention | {"type": "app_mention"}))
        return [one for one in deliveries if self.world.subscribed(one.event)]

    def _count_reply(self, message: Message) -> None:
        """A reply changes the thread's first message; Slack says so with `message_changed`."""
        parent = self.find(message.thread_ts) if message.thread_ts else None
        if parent is None or parent is message:
            return
        before = parent.json()
        parent.reply_users.append(message.user)
        parent.latest_reply = message.ts
        parent.thread_ts = parent.ts
        about = {"message": parent.json(), "previous_message": before}
        self._emit_hidden("message_changed", parent, about)

    def _emit_hidden(self, subtype: str, message: Message, about: Json) -> None:
        """An event about a message that everybody sees."""
        if not self.has_bot or message.ephemeral_to is not None:
            return
        ts = self.world.ids.ts()
        self.world.emit(
            {
                "type": "message",
                "subtype": subtype,
                "hidden": True,
                "channel": self.id,
                "channel_type": self.kind,
                "ts": ts,
                "event_ts": ts,
                **about,
            }
        )

    def _typed(self, text: str) -> str:
        return typed(text.replace("<@BOT>", self.world.bot.mention))

    def _only_person(self) -> User:
        people = [one for one in self.members if one is not self.world.bot]
        if len(people) != 1:
            raise ValueError("several people could have done this: name the sender")
        return people[0]


def _ts(thread: Message | str | None) -> str | None:
    if thread is None or isinstance(thread, str):
        return thread
    return thread.thread_ts or thread.ts
