"""The workspace behind the HTTP server: people, conversations, files, and events about them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar
from urllib.parse import quote

from tests.servers import slack_blocks, slack_views
from tests.servers.slack_chat import Conversation
from tests.servers.slack_delivery import Delivery
from tests.servers.slack_http import HttpEvents
from tests.servers.slack_interact import ResponseUrl
from tests.servers.slack_render import Json
from tests.servers.slack_socket import SocketMode
from tests.servers.slack_state import Changes, File, Ids, Message, SlackError, User
from tests.servers.slack_views import Trigger, View

T = TypeVar("T")

ALL_EVENTS = frozenset(
    {
        "message.im",
        "message.channels",
        "message.groups",
        "message.mpim",
        "app_mention",
        "member_joined_channel",
    }
)
"""The event subscriptions of the app, as a manifest names them."""

ALL_SCOPES = (
    "app_mentions:read",
    "channels:history",
    "channels:manage",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "groups:write",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "reactions:read",
    "reactions:write",
    "team:read",
    "usergroups:read",
    "users:read",
)


class World:
    """State without HTTP.

    May be changed at any time: `scopes` (of the bot token), `app_scopes` (of the app token),
    `subscriptions` (events), `commands` (slash commands that the app has). `violations` collects
    what slack_sdk's own validation says against blocks, and blocks without a top-level text.
    """

    def __init__(self, *, team_id: str, team_name: str, bot_name: str, secret: str) -> None:
        self.team_id = team_id
        self.team_name = team_name
        self.domain = team_name.lower()
        self.app_id = "A0TEST0001"
        self.ids = Ids()
        self.users: dict[str, User] = {}
        self.conversations: dict[str, Conversation] = {}
        self.files: dict[str, File] = {}
        self.scopes: list[str] = list(ALL_SCOPES)
        self.app_scopes: list[str] = ["connections:write"]
        self.subscriptions: set[str] = set(ALL_EVENTS)
        self.commands: set[str] = {"/galata"}
        self.violations: list[str] = []
        self.views: list[View] = []
        self.user_groups: dict[str, list[User]] = {}
        self.homes: dict[str, View] = {}
        self.triggers: dict[str, Trigger] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.deliveries: list[Delivery] = []
        """All that the app has to acknowledge, oldest first, whichever way it is sent."""
        self.origin = ""
        self._changes = Changes()
        self.bot = self.user(bot_name, is_bot=True)
        self.socket = SocketMode(self.app_id, self.changed)
        self.http = HttpEvents(secret, self.changed)

    # ---- waking -------------------------------------------------------------------------------

    def changed(self) -> None:
        """Wakes all who wait."""
        self._changes.notify()

    async def wait_for(self, look: Callable[[], T | None], timeout: float = 20) -> T:
        """The first true value of `look()`, tried again after each change.

        Raises `AssertionError` with the state of all conversations after `timeout` seconds.
        """
        return await self._changes.wait_for(look, timeout, self.describe)

    def describe(self) -> str:
        """What the conversations show, for the message of a failed wait."""
        lines = [f"{one.id} {one.name}: {one.log}" for one in self.conversations.values()]
        waiting = [one for one in self.deliveries if not one.done]
        connections = len(self.socket.connections)
        return "\n".join([*lines, f"connections: {connections}, not acknowledged: {waiting}"])

    # ---- making -------------------------------------------------------------------------------

    def user(
        self,
        name: str,
        *,
        locale: str = "en-US",
        tz: str = "Europe/Amsterdam",
        is_bot: bool = False,
        is_restricted: bool = False,
        is_ultra_restricted: bool = False,
        is_owner: bool = False,
        is_admin: bool = False,
        team_id: str | None = None,
    ) -> User:
        """A new member, or another app's bot; a foreign `team_id` makes it a guest via Connect."""
        user = User(
            self.ids.next("U"),
            name,
            locale,
            tz,
            is_bot,
            is_restricted,
            is_ultra_restricted,
            is_owner=is_owner,
            is_admin=is_admin,
            team_id=team_id or self.team_id,
            bot_id=self.ids.next("B") if is_bot else None,
        )
        self.users[user.id] = user
        return user

    def dm(self, user: User) -> Conversation:
        """The direct message of a person with the bot; the same one each time."""
        for one in self.conversations.values():
            if one.kind == "im" and user in one.members:
                return one
        return self._add("D", "im", user.id, [user, self.bot])

    def channel(
        self,
        name: str,
        *,
        members: Iterable[User] = (),
        private: bool = False,
        bot: bool = True,
    ) -> Conversation:
        """A new channel; the bot is a member unless `bot` is false."""
        who = [*members, self.bot] if bot else [*members]
        return self._add("C", "group" if private else "channel", name, who)

    def group_dm(self, members: Iterable[User]) -> Conversation:
        """A direct message of several people with the bot."""
        who = [*members, self.bot]
        name = "mpdm-" + "--".join(one.handle for one in who) + "-1"
        return self._add("G", "mpim", name, who)

    def file(
        self, name: str, content: bytes, mimetype: str = "text/plain", user: User | None = None
    ) -> File:
        """A file, to be sent with a message. The server must have started."""
        id = self.ids.next("F")
        url = f"{self.origin}/files-pri/{self.team_id}-{id}/{quote(name, safe='')}"
        self.files[id] = File(id, name, content, mimetype, url, (user or self.bot).id)
        return self.files[id]

    def modal(self, user: User) -> View:
        """The topmost open form of a person. Raises `AssertionError` if there is none."""
        found = [one for one in self.views if one.user is user and one.open]
        assert found, "no form is open"
        return found[-1]

    def submit(self, view: View, values: dict[str, str] | None = None) -> Delivery:
        """A person fills the inputs (`block_id` to text) and sends the form."""
        return slack_views.submit(self, view, values or {})

    def press_inside(self, view: View, button: str) -> Delivery:
        """A button of an open modal is pressed, by its text."""
        return slack_views.press_inside(self, view, button)

    def _add(self, prefix: str, kind: str, name: str, members: list[User]) -> Conversation:
        conversation = Conversation(self, self.ids.next(prefix), kind, name, members)
        self.conversations[conversation.id] = conversation
        return conversation

    # ---- events -------------------------------------------------------------------------------

    def event(self, event: Json) -> Delivery:
        """An event in its outer form, not yet delivered."""
        payload = {
            "token": "verification-token",
            "team_id": self.team_id,
            "context_team_id": self.team_id,
            "context_enterprise_id": None,
            "api_app_id": self.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": self.ids.next("Ev"),
            "event_time": int(time.time()),
            "authorizations": [
                {
                    "enterprise_id": None,
                    "team_id": self.team_id,
                    "user_id": self.bot.id,
                    "is_bot": True,
                    "is_enterprise_install": False,
                }
            ],
            "is_ext_shared_channel": False,
            "event_context": f"4-{self.ids.next('ctx')}",
        }
        return Delivery("events_api", payload)

    def deliver(self, delivery: Delivery) -> Delivery:
        """Sends to the request URL if there is one (`server.http.url`), else over Socket Mode."""
        self.deliveries.append(delivery)
        if self.http.url is not None:
            self.http.deliver(delivery)
        else:
            self.socket.deliver(delivery)
        return delivery

    def repeat(self, delivery: Delivery, *, attempt: int = 0) -> None:
        """Sends it once more although it may be acknowledged, as Slack was seen to: the same
        envelope id and event id, `attempt` as its retry number."""
        if self.http.url is not None:
            self.http.repeat(delivery, attempt=attempt)
        else:
            self.socket.repeat(delivery, attempt=attempt)

    def subscribed(self, event: Json) -> bool:
        """Whether the app hears of this kind of event."""
        kind = event["type"]
        if kind == "message":
            where = event["channel_type"]
            kind = f"message.{where}" + ("s" if where in ("channel", "group") else "")
        return kind in self.subscriptions or kind not in ALL_EVENTS

    def person(self, user: User) -> Json:
        """The fields of an interaction's payload that say who did it."""
        return {
            "team": {"id": self.team_id, "domain": self.domain},
            "user": {
                "id": user.id,
                "username": user.handle,
                "name": user.handle,
                "team_id": user.team_id,
            },
            "api_app_id": self.app_id,
            "token": "verification-token",
            "enterprise": None,
            "is_enterprise_install": False,
        }

    def trigger(self, user: User) -> str:
        """A trigger_id, with which the app may open a form for this person."""
        id = f"{self.ids.next('trg')}.1.aa"
        self.triggers[id] = Trigger(user)
        return id

    def response_url(self, conversation: Conversation, user: User, original: Message | None) -> str:
        """A response_url for something that this person did."""
        token = self.ids.next("hook")
        self.response_urls[token] = ResponseUrl(conversation, user, original)
        return f"{self.origin}/hooks/{token}"

    # ---- checks -------------------------------------------------------------------------------

    def note_blocks(self, blocks: list[Json]) -> None:
        """Records what slack_sdk says against blocks that came in."""
        self.violations += slack_blocks.violations_of_sdk(blocks)

    def need_scope(self, *scopes: str) -> None:
        """Raises `missing_scope` unless the bot token has one of them."""
        if scopes and not set(scopes) & set(self.scopes):
            raise SlackError(
                "missing_scope", needed=",".join(scopes), provided=",".join(self.scopes)
            )

    # ---- looking up ---------------------------------------------------------------------------

    def conversation(self, id_or_name: str, *, allow_user: bool = False) -> Conversation:
        """The conversation of a request. Raises `channel_not_found`."""
        if allow_user and id_or_name in self.users:
            return self.dm(self.users[id_or_name])
        found = self.conversations.get(id_or_name)
        if found is None and allow_user:
            bare = id_or_name.removeprefix("#")
            public = (one for one in self.conversations.values() if one.kind == "channel")
            found = next((one for one in public if one.name == bare), None)
        if found is None or (found.kind != "channel" and not found.has_bot):
            raise SlackError("channel_not_found")
        return found
