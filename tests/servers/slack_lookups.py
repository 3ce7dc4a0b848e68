"""The Web API's methods that only read, from docs.slack.dev/reference/methods."""

from __future__ import annotations

from tests.servers.slack_chat import Conversation
from tests.servers.slack_params import flag, page, want
from tests.servers.slack_render import Json
from tests.servers.slack_state import SlackError
from tests.servers.slack_world import World

SCOPE_OF_KIND = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}


def auth_test(world: World, params: Json) -> Json:
    return {
        "url": f"https://{world.domain}.slack.com/",
        "team": world.team_name,
        "user": world.bot.handle,
        "team_id": world.team_id,
        "user_id": world.bot.id,
        "bot_id": world.bot.bot_id,
        "is_enterprise_install": False,
    }


def open_connection(world: World, params: Json) -> Json:
    return {"url": world.socket.open_ticket(world.origin)}


def readable(world: World, params: Json, right: str) -> Conversation:
    """The conversation, if the app has the scope for its kind and, for `history`, is a member."""
    conversation = world.conversation(want(params, "channel"))
    world.need_scope(f"{SCOPE_OF_KIND[conversation.kind]}:{right}")
    if right == "history" and not conversation.has_bot:
        raise SlackError("not_in_channel")
    return conversation


def history(world: World, params: Json) -> Json:
    """Newest first; replies are not in it."""
    conversation = readable(world, params, "history")
    oldest, latest = _bounds(params)
    inside = [
        one.json()
        for one in reversed(conversation.messages)
        if one.thread_ts in (None, one.ts) and _within(one.ts, oldest, latest, params)
    ]
    items, more = page(inside, params)
    return {
        "messages": items,
        "has_more": bool(more),
        "pin_count": 0,
        "response_metadata": {"next_cursor": more},
    }


def replies(world: World, params: Json) -> Json:
    """The thread's first message, then its replies, oldest first."""
    conversation = readable(world, params, "history")
    root = conversation.find(want(params, "ts"))
    if root is None:
        raise SlackError("thread_not_found")
    if root.thread_ts not in (None, root.ts):
        return {"messages": [root.json()], "has_more": False}
    oldest, latest = _bounds(params)
    inside = [
        one.json()
        for one in [root, *conversation.thread(root)]
        if one is root or _within(one.ts, oldest, latest, params)
    ]
    items, more = page(inside, params)
    return {
        "messages": items,
        "has_more": bool(more),
        "response_metadata": {"next_cursor": more},
    }


def _bounds(params: Json) -> tuple[float, float]:
    try:
        return float(params.get("oldest") or 0), float(params.get("latest") or "inf")
    except ValueError:
        raise SlackError("invalid_ts_oldest") from None


def _within(ts: str, oldest: float, latest: float, params: Json) -> bool:
    at = float(ts)
    if flag(params, "inclusive"):
        return oldest <= at <= latest
    return oldest < at < latest


def info(world: World, params: Json) -> Json:
    conversation = readable(world, params, "read")
    return {"channel": conversation.json(members=flag(params, "include_num_members"))}


def members(world: World, params: Json) -> Json:
    conversation = readable(world, params, "read")
    items, more = page([one.id for one in conversation.members], params)
    return {"members": items, "response_metadata": {"next_cursor": more}}


def open_conversation(world: World, params: Json) -> Json:
    if params.get("channel"):
        return {"channel": {"id": world.conversation(str(params["channel"])).id}}
    ids = [one for one in str(params.get("users") or "").split(",") if one]
    if not ids:
        raise SlackError("users_list_not_supplied")
    users = [world.users.get(one) for one in ids]
    known = [one for one in users if one is not None and one is not world.bot]
    if len(known) != len(users):
        raise SlackError("user_not_found")
    if len(known) == 1:
        conversation = world.dm(known[0])
    else:
        world.need_scope("mpim:write")
        conversation = world.group_dm(known)
    full = flag(params, "return_im")
    return {"channel": conversation.json() if full else {"id": conversation.id}}


def user_info(world: World, params: Json) -> Json:
    user = world.users.get(want(params, "user"))
    if user is None:
        raise SlackError("user_not_found")
    return {"user": user.json(include_locale=flag(params, "include_locale"))}


def group_members(world: World, params: Json) -> Json:
    """usergroups.users.list"""
    members = world.user_groups.get(want(params, "usergroup"))
    if members is None:
        raise SlackError("no_such_subteam")
    return {"users": [one.id for one in members]}


def bot_info(world: World, params: Json) -> Json:
    wanted = params.get("bot") or world.bot.bot_id
    for user in world.users.values():
        if user.bot_id == wanted:
            return {
                "bot": {
                    "id": user.bot_id,
                    "deleted": user.deleted,
                    "name": user.name,
                    "updated": 1700000000,
                    "app_id": world.app_id if user is world.bot else "A0OTHER001",
                    "user_id": user.id,
                    "icons": {},
                }
            }
    raise SlackError("bot_not_found")


def team_info(world: World, params: Json) -> Json:
    team = {"id": world.team_id, "name": world.team_name, "domain": world.domain}
    return {"team": team | {"email_domain": "", "icon": {"image_default": True}}}
