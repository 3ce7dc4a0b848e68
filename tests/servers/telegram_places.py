"""What happens to a chat itself: the bot's membership, topics, the move to a supergroup."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tests.servers.telegram_chat import ChatState
from tests.servers.telegram_people import Message, User

if TYPE_CHECKING:
    from tests.servers.telegram_acts import Chat

_ADMIN_RIGHTS = (
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_pin_messages",
    "can_manage_topics",
)
_PERMISSIONS = (
    "can_send_messages",
    "can_send_audios",
    "can_send_documents",
    "can_send_photos",
    "can_send_videos",
    "can_send_video_notes",
    "can_send_voice_notes",
    "can_send_polls",
    "can_send_other_messages",
    "can_add_web_page_previews",
    "can_change_info",
    "can_invite_users",
    "can_pin_messages",
    "can_manage_topics",
    "can_edit_tag",
)


class ChatPlaces(ChatState):
    """Acts that change who is in a chat and what it is."""

    # ---- the bot comes and goes ---------------------------------------------------------------

    def add_bot(self, by: User | None = None) -> None:
        """A member adds the bot: my_chat_member, then the service message."""
        self._set_bot_status("member", by or self.someone())
        bot = self.world.bot.json()
        self.service(by or self.someone(), new_chat_members=[bot])

    def remove_bot(self, by: User | None = None) -> None:
        """A member removes the bot, which may not come back by itself (kicked)."""
        self._set_bot_status("kicked", by or self.someone())

    def promote_bot(self, by: User | None = None) -> None:
        """The bot becomes an administrator: it sees everything."""
        self._set_bot_status("administrator", by or self.someone())

    def restrict_bot(self, by: User | None = None) -> None:
        """The bot stays but may not write."""
        self._set_bot_status("restricted", by or self.someone())

    def block(self) -> None:
        """The person of a private chat blocks the bot."""
        self._set_bot_status("kicked", self.someone())

    def unblock(self) -> None:
        """The person takes the block back."""
        self._set_bot_status("member", self.someone())

    def bot_leaves(self) -> None:
        """leaveChat."""
        self._set_bot_status("left", self.world.bot)

    def _set_bot_status(self, status: str, by: User) -> None:
        old, self.bot_status = self.bot_status, status
        bot = self.world.bot
        update = {
            "chat": self.json(),
            "from": by.json(),
            "date": int(time.time()),
            "old_chat_member": member_json(bot, old),
            "new_chat_member": member_json(bot, status),
        }
        self.world.updates.push("my_chat_member", update)
        self.world.changed()

    # ---- people -------------------------------------------------------------------------------

    def join(self, user: User, by: User | None = None) -> None:
        """Someone joins or is added by `by`."""
        self.members[user.id] = user
        self.service(by or user, new_chat_members=[user.json()])

    def leave(self, user: User) -> None:
        """Someone leaves."""
        self.members.pop(user.id)
        self.service(user, left_chat_member=user.json())

    def make_admin(
        self, user: User, status: str = "administrator", *, without: Collection[str] = ()
    ) -> None:
        """`user` becomes administrator, but for the rights `without`, or creator; "member" takes it
        back."""
        self.lacking[user.id] = frozenset(without)
        if status == "member":
            self.admins.pop(user.id, None)
        else:
            self.admins[user.id] = status
        self.world.changed()

    # ---- topics -------------------------------------------------------------------------------

    def open_topic(self, name: str, creator: User | None = None) -> int:
        """Opens a forum topic (in a private chat too); its `message_thread_id`."""
        fields = {"forum_topic_created": {"name": name, "icon_color": 7322096}}
        message = self.add(fields, creator or self.someone(), None, None)
        message.data |= {"message_thread_id": message.id, "is_topic_message": True}
        self.topics[message.id] = message
        self.deliver("message", message)
        return message.id

    def close_topic(self, topic: int) -> None:
        """Only administrators write there from now on."""
        self.closed_topics.add(topic)

    def delete_topic(self, topic: int) -> None:
        """The topic and its messages are gone."""
        del self.topics[topic]
        for message in self.messages:
            if message.thread == topic and message.data.get("is_topic_message"):
                message.deleted = True
        self.world.changed()

    # ---- migration ----------------------------------------------------------------------------

    def migrate(self, *, announce: bool = True) -> Chat:
        """A basic group becomes a supergroup: the new chat, with both service messages.

        `announce=False` holds the service messages back, see `announce_migration`: they can
        arrive after the first message in the new chat.
        """
        members = [*self.members.values()]
        new = self.world.group(self.title, members=members)
        new.admins = dict(self.admins)
        new.lacking = dict(self.lacking)
        new.bot_status = self.bot_status
        self.migrated_to = new.id
        if announce:
            self.announce_migration()
        self.world.changed()
        return new

    def announce_migration(self) -> None:
        """The service messages of a migration: one in the old chat, one in the new."""
        assert self.migrated_to is not None
        new = self.world.chats[self.migrated_to]
        self._migration_message(self, migrate_to_chat_id=new.id)
        self._migration_message(new, migrate_from_chat_id=self.id)

    def _migration_message(self, chat: ChatState, **fields: Any) -> Message:
        return chat.service(self.someone(), sender_chat=chat.json(), **fields)


def member_json(user: User, status: str, lacking: Collection[str] = ()) -> dict[str, Any]:
    """The Bot API's ChatMember; `lacking`: rights that an administrator does not have."""
    data: dict[str, Any] = {"user": user.json(), "status": status}
    if status == "creator":
        data["is_anonymous"] = False
    elif status == "administrator":
        data |= {right: right not in lacking for right in _ADMIN_RIGHTS}
        data |= {"can_be_edited": False, "is_anonymous": False}
    elif status == "restricted":
        data |= permissions_json(allowed=False) | {"is_member": True, "until_date": 0}
    elif status == "kicked":
        data["until_date"] = 0
    return data


def permissions_json(*, allowed: bool) -> dict[str, bool]:
    """The Bot API's ChatPermissions, all alike."""
    return dict.fromkeys(_PERMISSIONS, allowed)
