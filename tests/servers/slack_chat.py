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
        self.creator: User | None = None
        self.is_ext_shared = False
        """Whether another organisation takes part (Slack Connect)."""
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

    async def wait_for_text(self, text: str, timeout: float = 20) -> Message:
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
        home = {"team": who.team_id}
        if who.team_id != self.world.team_id:
            home |= {"user_team": who.team_id, "source_team": who.team_id}
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
            extra={**home, **extra},
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
        root = self._root_of(message)
        if root is not None:
            root.reply_users.remove(message.user)
        message.deleted = True
        about = {"deleted_ts": message.ts, "previous_message": message.json()}
        self._tell("message_deleted", message, about)
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
        if self._heard(event):
            self.world.deliver(self.world.event(event))

    def leave(self, user: User) -> None:
        """A member goes; the app is told `channel_left` or `group_left` when it is the bot itself."""
        self.members.remove(user)
        if user is self.world.bot:
            kind = "group_left" if self.kind == "group" else "channel_left"
            event = {"type": kind, "channel": self.id, "actor_id": user.id}
            self.world.deliver(self.world.event(event | {"event_ts": self.world.ids.ts()}))
        self.world.changed()

    def json(self, *, members: bool = False) -> Json:
        """The channel object."""
        body: Json = {
            "id": self.id,
            "created": 1700000000,
            "is_archived": self.is_archived,
            "is_im": self.kind == "im",
            "is_org_shared": False,
            "is_shared": self.is_ext_shared,
            "is_ext_shared": self.is_ext_shared,
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
            "creator": self.creator.id if self.creator is not None else "U0FOUNDER1",
            "topic": {"value": "", "creator": "", "last_set": 0},
            "purpose": {"value": "", "creator": "", "last_set": 0},
        }
        return body | ({"num_members": len(self.members)} if members else {})

    # ---- shared with the Web API --------------------------------------------------------------

    @property
    def has_bot(self) -> bool:
        """Whether the bot is a member."""
        return self.world.bot in self.members

    def add(self, message: Message, *, deliver: bool = True) -> None:
        """Puts a message here and tells the app, as far as the bot is a member."""
        message.history.append(message.shown)
        self.log.append(message)
        for file in message.files:
            file.shares.setdefault(self.id, []).append(message.ts)
        if message.ephemeral_to is None:
            root = self._root_of(message)
            events = [*self._arrival(message, root), *self._counted(message, root)]
            message.events = [self.world.event(one) for one in events if self._heard(one)]
        if deliver:
            for delivery in message.events:
                self.world.deliver(delivery)
        self.world.changed()

    def changed(self, message: Message, before: Json) -> None:
        """Records a new state of a message and sends `message_changed`."""
        message.history.append(message.shown)
        about = {"message": message.json(), "previous_message": before}
        self._tell("message_changed", message, about)
        self.world.changed()

    def _root_of(self, message: Message) -> Message | None:
        """The first message of the thread in which this one is a reply, if it stands here."""
        root = self.find(message.thread_ts) if message.thread_ts else None
        return None if root is message else root

    def _arrival(self, message: Message, root: Message | None) -> list[Json]:
        """`message`, and `app_mention` too when the bot is named outside of a direct message."""
        event = message.json() | {
            "channel": self.id,
            "event_ts": message.ts,
            "channel_type": self.kind,
        }
        if root is not None:
            event["parent_user_id"] = root.user
        if self.world.bot.mention not in message.text or self.kind == "im":
            return [event]
        if message.user == self.world.bot.id:
            return [event]
        mention = {key: event[key] for key in event if key not in ("channel_type", "subtype")}
        return [event, mention | {"type": "app_mention"}]

    def _counted(self, message: Message, root: Message | None) -> list[Json]:
        """A reply changes the thread's first message; Slack says so with `message_changed`."""
        if root is None:
            return []
        before = root.json()
        root.reply_users.append(message.user)
        root.latest_reply = message.ts
        root.thread_ts = root.ts
        about = {"message": root.json(), "previous_message": before}
        return [self._hidden("message_changed", about)]

    def _tell(self, subtype: str, message: Message, about: Json) -> None:
        event = self._hidden(subtype, about)
        if message.ephemeral_to is None and self._heard(event):
            self.world.deliver(self.world.event(event))

    def _hidden(self, subtype: str, about: Json) -> Json:
        """An event about another message; it has a `ts` of its own."""
        ts = self.world.ids.ts()
        return {
            "type": "message",
            "subtype": subtype,
            "hidden": True,
            "channel": self.id,
            "channel_type": self.kind,
            "ts": ts,
            "event_ts": ts,
            **about,
        }

    def _heard(self, event: Json) -> bool:
        return self.has_bot and self.world.subscribed(event)

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
