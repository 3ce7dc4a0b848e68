"""The Web API's methods on messages and reactions, from docs.slack.dev/reference/methods."""

from __future__ import annotations

import re
from typing import Any

from tests.servers import slack_blocks
from tests.servers.slack_chat import Conversation
from tests.servers.slack_params import want
from tests.servers.slack_render import Json, elements_of, escaped
from tests.servers.slack_state import Message, SlackError
from tests.servers.slack_world import World

UPDATE_LIMIT_BYTES = 4_000
"""chat.update: the docs say 4,000 characters; measured on the real one it is UTF-8 bytes
(openclaw/openclaw#115027), counted after `&`, `<` and `>` are escaped (GitLab's report)."""

POST_LIMIT = 40_000
MARKDOWN_TEXT_LIMIT = 12_000


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
        raw = params.get("blocks")
        markdown = params.get("markdown_text")
        self.has_blocks = raw is not None
        self.has_text = params.get("text") is not None
        self.text = str(params.get("text") or "")
        if markdown is not None and (self.text or raw):
            raise SlackError("markdown_text_conflict")
        self.blocks = slack_blocks.parse(raw, note=world.note_blocks) if raw else []
        if markdown is not None:
            self._take_markdown(str(markdown))
        else:
            self._check_text(world, params, update)
        give_ids(world, self.blocks)

    def _check_text(self, world: World, params: Json, update: bool) -> None:
        if not self.text.strip():
            if not self.blocks and not params.get("attachments"):
                raise SlackError("no_text")
            world.violations.append("top-level text is missing beside blocks")
        stored = escaped(self.text)
        if update and len(stored.encode()) > UPDATE_LIMIT_BYTES:
            raise SlackError("msg_too_long")
        if len(self.text) > POST_LIMIT:
            raise SlackError("msg_too_long")
        self.text = stored

    def _take_markdown(self, markdown: str) -> None:
        if not markdown.strip():
            raise SlackError("no_text")
        if len(markdown) > MARKDOWN_TEXT_LIMIT:
            raise SlackError("msg_too_long")
        self.text = escaped(markdown)
        self.has_text = self.has_blocks = True
        self.blocks = [{"type": "markdown", "text": markdown}]


def give_ids(world: World, blocks: list[Json]) -> None:
    """Slack makes up the ids that the app leaves out."""
    for block in blocks:
        block.setdefault("block_id", world.ids.next("blk"))
        for element in elements_of(block):
            if element.get("type") == "button":
                element.setdefault("action_id", world.ids.next("act"))


def check_thread(conversation: Conversation, thread_ts: Any) -> str | None:
    """The `ts` of the thread's first message. A reply's `ts` leads to its thread."""
    if thread_ts in (None, ""):
        return None
    if not re.fullmatch(r"\d{10}\.\d{6}", str(thread_ts)):
        message = f"[ERROR] {thread_ts} is not a valid thread_ts"
        raise SlackError("invalid_thread_ts", response_metadata={"messages": [message]})
    root = conversation.find(str(thread_ts))
    if root is None:
        raise SlackError("thread_not_found")
    return root.thread_ts or root.ts


def bot_message_of(world: World, conversation: Conversation, text: str) -> Message:
    """A message of the bot, not yet in its conversation."""
    return Message(
        conversation.id,
        world.ids.ts(),
        world.bot.id,
        text,
        bot_id=world.bot.bot_id,
        app_id=world.app_id,
        extra={"team": world.team_id},
    )


def _message_of(world: World, conversation: Conversation, params: Json) -> Message:
    thread_ts = check_thread(conversation, params.get("thread_ts"))
    content = Content(world, params)
    message = bot_message_of(world, conversation, content.text)
    message.blocks, message.thread_ts = content.blocks, thread_ts
    return message


def post_message(world: World, params: Json) -> Json:
    conversation = writable(world, want(params, "channel"))
    message = _message_of(world, conversation, params)
    conversation.add(message)
    return {"channel": conversation.id, "ts": message.ts, "message": message.json()}


def post_ephemeral(world: World, params: Json) -> Json:
    conversation = writable(world, want(params, "channel"))
    user = world.users.get(want(params, "user"))
    if user is None or user not in conversation.members:
        raise SlackError("user_not_in_channel")
    message = _message_of(world, conversation, params)
    message.ephemeral_to = user.id
    conversation.add(message)
    return {"message_ts": message.ts}


def _own(world: World, params: Json, refusal: str) -> tuple[Conversation, Message]:
    """The bot's own message that a request names; `refusal` if it is another's."""
    conversation = world.conversation(want(params, "channel"))
    message = conversation.find(want(params, "ts"))
    if message is None:
        raise SlackError("message_not_found")
    if message.user != world.bot.id:
        raise SlackError(refusal)
    return conversation, message


def replace(conversation: Conversation, message: Message, content: Content) -> None:
    """A new state of a message. Blocks stay only when neither text nor blocks are given; the
    `edited` flag is not set when there are blocks (both as the docs of chat.update say)."""
    before = message.json()
    if content.has_text:
        message.text = content.text
    if content.has_blocks or content.has_text:
        message.blocks = content.blocks
    if not content.blocks:
        message.edited = {"user": message.user, "ts": conversation.world.ids.ts()}
    conversation.changed(message, before)


def update(world: World, params: Json) -> Json:
    conversation, message = _own(world, params, "cant_update_message")
    replace(conversation, message, Content(world, params, update=True))
    return {
        "channel": conversation.id,
        "ts": message.ts,
        "text": message.text,
        "message": message.json(),
    }


def delete(world: World, params: Json) -> Json:
    conversation, message = _own(world, params, "cant_delete_message")
    conversation.delete(message)
    return {"channel": conversation.id, "ts": message.ts}


def _reacted(world: World, params: Json) -> tuple[Message, str]:
    """The message and the reaction of a request."""
    conversation = world.conversation(want(params, "channel"))
    name = want(params, "name").strip(":")
    if not re.fullmatch(r"[a-z0-9_+'-]+(::skin-tone-[2-6])?", name):
        raise SlackError("invalid_name")
    message = conversation.find(want(params, "timestamp"))
    if message is None:
        raise SlackError("message_not_found")
    if not conversation.has_bot:
        raise SlackError("not_in_channel")
    return message, name


def add_reaction(world: World, params: Json) -> Json:
    message, name = _reacted(world, params)
    users = message.reactions.setdefault(name, [])
    if world.bot.id in users:
        raise SlackError("already_reacted")
    users.append(world.bot.id)
    return {}


def remove_reaction(world: World, params: Json) -> Json:
    message, name = _reacted(world, params)
    users = message.reactions.get(name, [])
    if world.bot.id not in users:
        raise SlackError("no_reaction")
    users.remove(world.bot.id)
    if not users:
        del message.reactions[name]
    return {}


def leave(world: World, params: Json) -> Json:
    """docs: whoever is not in there is told so by a field of its own, without an error code."""
    conversation = world.conversation(want(params, "channel"))
    if conversation.kind in ("im", "mpim"):
        raise SlackError("method_not_supported_for_channel_type")
    world.need_scope("channels:manage" if conversation.kind == "channel" else "groups:write")
    if not conversation.has_bot:
        refusal = SlackError("")
        refusal.body = {"ok": False, "not_in_channel": True}
        raise refusal
    conversation.leave(world.bot)
    return {}
