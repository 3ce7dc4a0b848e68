"""The Web API's methods on messages and reactions, from docs.slack.dev/reference/methods."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from typing import Any

from tests.servers import slack_blocks
from tests.servers.slack_chat import Conversation
from tests.servers.slack_state import Json, Message, SlackError
from tests.servers.slack_world import World

UPDATE_LIMIT_BYTES = 4_000
"""chat.update: the docs say 4,000 characters; measured by others it is UTF-8 bytes of the text
after `&`, `<` and `>` are escaped (openclaw PR#115027)."""
POST_LIMIT = 40_000
MARKDOWN_TEXT_LIMIT = 12_000


def want(params: Json, name: str) -> str:
    """A required parameter. Raises `invalid_arguments` as Slack words it."""
    value = params.get(name)
    if value in (None, ""):
        raise SlackError(
            "invalid_arguments",
            response_metadata={"messages": [f"[ERROR] missing required field: {name}"]},
        )
    return str(value)


def flag(params: Json, name: str) -> bool:
    """A boolean parameter; `1` and `true` are true."""
    return str(params.get(name, "")).lower() in ("1", "true")


def writable(world: World, channel: str, *, allow_user: bool = True) -> Conversation:
    """The conversation, if the bot may write in it."""
    conversation = world.conversation(channel, allow_user=allow_user)
    if conversation.is_archived:
        raise SlackError("is_archived")
    if not conversation.has_bot:
        raise SlackError("not_in_channel")
    return conversation


class Content:
    """Text and blocks of a request, checked. Raises `SlackError`."""

    def __init__(self, world: World, params: Json, *, update: bool = False) -> None:
        raw_blocks = params.get("blocks")
        self.has_blocks = raw_blocks is not None
        self.has_text = params.get("text") is not None
        self.text = str(params.get("text") or "")
        markdown = params.get("markdown_text")
        if markdown is not None and (self.text or raw_blocks):
            raise SlackError("markdown_text_conflict")
        self.blocks = slack_blocks.parse(raw_blocks) if raw_blocks else []
        world.note_blocks(self.blocks)
        if markdown is not None:
            self._take_markdown(str(markdown))
        elif not self.text.strip() and not self.blocks and not params.get("attachments"):
            raise SlackError("no_text")
        size = len(html.escape(self.text, quote=False).encode()) if update else len(self.text)
        if size > (UPDATE_LIMIT_BYTES if update else POST_LIMIT) and markdown is None:
            raise SlackError("msg_too_long")
        self._give_block_ids(world)

    def _take_markdown(self, markdown: str) -> None:
        if not markdown.strip():
            raise SlackError("no_text")
        if len(markdown) > MARKDOWN_TEXT_LIMIT:
            raise SlackError("msg_too_long")
        self.text = markdown
        self.has_text = self.has_blocks = True
        self.blocks = [{"type": "markdown", "text": markdown}]

    def _give_block_ids(self, world: World) -> None:
        for block in self.blocks:
            block.setdefault("block_id", world.ids.next("blk"))
            for element in block.get("elements", []):
                if element.get("type") == "button":
                    element.setdefault("action_id", world.ids.next("act"))


def bot_message(
    world: World, conversation: Conversation, params: Json, content: Content
) -> Message:
    """A message of the bot, not yet in its conversation. Raises for a thread that is not there."""
    thread_ts = params.get("thread_ts") or None
    if thread_ts is not None:
        parent = conversation.find(str(thread_ts))
        if parent is None:
            raise SlackError("thread_not_found")
        if parent.thread_ts not in (None, parent.ts):
            thread_ts = parent.thread_ts
    return Message(
        conversation.id,
        world.ids.ts(),
        world.bot.id,
        content.text,
        content.blocks,
        thread_ts=thread_ts,
        bot_id=world.bot.bot_id,
        app_id=world.app_id,
        extra={"team": world.team_id},
    )


def post_message(world: World, params: Json) -> Json:
    conversation = writable(world, want(params, "channel"))
    message = bot_message(world, conversation, params, Content(world, params))
    conversation.add(message)
    return {"channel": conversation.id, "ts": message.ts, "message": message.json()}


def post_ephemeral(world: World, params: Json) -> Json:
    conversation = writable(world, want(params, "channel"))
    user = world.users.get(want(params, "user"))
    if user is None or user not in conversation.members:
        raise SlackError("user_not_in_channel")
    message = bot_message(world, conversation, params, Content(world, params))
    message.ephemeral_to = user.id
    conversation.add(message)
    return {"message_ts": message.ts}


def own_message(world: World, params: Json, refusal: str) -> tuple[Conversation, Message]:
    """The bot's own message that a request names; `refusal` if it is another's."""
    conversation = world.conversation(want(params, "channel"))
    message = conversation.find(want(params, "ts"))
    if message is None:
        raise SlackError("message_not_found")
    if message.user != world.bot.id:
        raise SlackError(refusal)
    return conversation, message


def update(world: World, params: Json) -> Json:
    conversation, message = own_message(world, params, "cant_update_message")
    content = Content(world, params, update=True)
    before = message.json()
    message.text = content.text if content.has_text else message.text
    if content.has_blocks or content.has_text:
        message.blocks = content.blocks
    if not content.blocks:
        message.edited = {"user": world.bot.id, "ts": world.ids.ts()}
    conversation.changed(message, before)
    return {
        "channel": conversation.id,
        "ts": message.ts,
        "text": message.text,
        "message": message.json(),
    }


def delete(world: World, params: Json) -> Json:
    conversation, message = own_message(world, params, "cant_delete_message")
    conversation.delete(message)
    return {"channel": conversation.id, "ts": message.ts}


def reacted(world: World, params: Json) -> tuple[Message, str]:
    """The message and the reaction of a request."""
    conversation = world.conversation(want(params, "channel"))
    message = conversation.find(want(params, "timestamp"))
    if message is None:
        raise SlackError("message_not_found")
    name = want(params, "name").strip(":")
    if not name.replace("_", "").replace("-", "").replace("+", "").isalnum():
        raise SlackError("invalid_name")
    if not conversation.has_bot:
        raise SlackError("not_in_channel")
    return message, name


def add_reaction(world: World, params: Json) -> Json:
    message, name = reacted(world, params)
    users = message.reactions.setdefault(name, [])
    if world.bot.id in users:
        raise SlackError("already_reacted")
    users.append(world.bot.id)
    return {}


def remove_reaction(world: World, params: Json) -> Json:
    message, name = reacted(world, params)
    users = message.reactions.get(name, [])
    if world.bot.id not in users:
        raise SlackError("no_reaction")
    users.remove(world.bot.id)
    if not users:
        del message.reactions[name]
    return {}


def as_json(value: Any, otherwise: Any) -> Any:
    """A parameter that may be JSON in a string."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            raise SlackError("invalid_arguments") from None
    return otherwise if value is None else value


Method = Callable[[World, Json], Json]

MESSAGE_METHODS: dict[str, tuple[Method, tuple[str, ...]]] = {
    "chat.postMessage": (post_message, ("chat:write",)),
    "chat.postEphemeral": (post_ephemeral, ("chat:write",)),
    "chat.update": (update, ("chat:write",)),
    "chat.delete": (delete, ("chat:write",)),
    "reactions.add": (add_reaction, ("reactions:write",)),
    "reactions.remove": (remove_reaction, ("reactions:write",)),
}
"""Each method with the scopes of which one is needed."""
