"""Every method of the Web API that this server knows, with the scopes of which one is needed."""

from __future__ import annotations

from collections.abc import Callable

from tests.servers import slack_files, slack_lookups, slack_methods, slack_views
from tests.servers.slack_render import Json
from tests.servers.slack_world import World

Method = Callable[[World, Json], Json]

_HISTORY = ("channels:history", "groups:history", "im:history", "mpim:history")
_READ = ("channels:read", "groups:read", "im:read", "mpim:read")
_OPEN = ("im:write", "mpim:write")

METHODS: dict[str, tuple[Method, tuple[str, ...]]] = {
    "apps.connections.open": (slack_lookups.open_connection, ("connections:write",)),
    "auth.test": (slack_lookups.auth_test, ()),
    "bots.info": (slack_lookups.bot_info, ("users:read",)),
    "chat.delete": (slack_methods.delete, ("chat:write",)),
    "chat.postEphemeral": (slack_methods.post_ephemeral, ("chat:write",)),
    "chat.postMessage": (slack_methods.post_message, ("chat:write",)),
    "chat.update": (slack_methods.update, ("chat:write",)),
    "conversations.history": (slack_lookups.history, _HISTORY),
    "conversations.info": (slack_lookups.info, _READ),
    "conversations.leave": (slack_methods.leave, ("channels:manage", "groups:write")),
    "conversations.members": (slack_lookups.members, _READ),
    "conversations.open": (slack_lookups.open_conversation, _OPEN),
    "conversations.replies": (slack_lookups.replies, _HISTORY),
    "files.completeUploadExternal": (slack_files.complete_upload, ("files:write",)),
    "files.getUploadURLExternal": (slack_files.get_upload_url, ("files:write",)),
    "files.info": (slack_files.file_info, ("files:read",)),
    "reactions.add": (slack_methods.add_reaction, ("reactions:write",)),
    "reactions.remove": (slack_methods.remove_reaction, ("reactions:write",)),
    "team.info": (slack_lookups.team_info, ("team:read",)),
    "usergroups.users.list": (slack_lookups.group_members, ("usergroups:read",)),
    "users.info": (slack_lookups.user_info, ("users:read",)),
    "views.open": (slack_views.open_view, ()),
    "views.publish": (slack_views.publish_view, ()),
    "views.update": (slack_views.update_view, ()),
}
