"""What a person does that the app answers: slash commands and buttons, and the response_url.

From docs.slack.dev/interactivity and docs.slack.dev/reference/interaction-payloads.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.servers.slack_delivery import Delivery
from tests.servers.slack_params import flag
from tests.servers.slack_render import Button, Json, elements_of
from tests.servers.slack_state import Message, SlackError, User

if TYPE_CHECKING:
    from tests.servers.slack_chat import Conversation
    from tests.servers.slack_world import World

RESPONSE_URL_USES = 5
RESPONSE_URL_LIFE_S = 30 * 60.0
"""docs: a response_url can be used up to five times within thirty minutes."""

CHANNEL_NAMES = {"im": "directmessage", "group": "privategroup"}


@dataclass(eq=False)
class ResponseUrl:
    """Where the app may answer an act of `user`; `original` is the message of the button."""

    conversation: Conversation
    user: User
    original: Message | None
    at: float = field(default_factory=time.monotonic)
    uses: int = 0


def slash(
    conversation: Conversation,
    command: str,
    text: str,
    user: User,
    thread: Message | str | None = None,
) -> Delivery | None:
    """A slash command. None when Slack keeps it to itself (an unknown command, or in a thread):
    the person sees why."""
    world = conversation.world
    if thread is not None:
        say(conversation, user, f"{command} is not supported in threads. Sorry!")
        return None
    if command not in world.commands:
        say(conversation, user, f"{command} is not a valid command.")
        return None
    payload = {
        "token": "verification-token",
        "team_id": world.team_id,
        "team_domain": world.domain,
        "channel_id": conversation.id,
        "channel_name": CHANNEL_NAMES.get(conversation.kind, conversation.name),
        "user_id": user.id,
        "user_name": user.handle,
        "command": command,
        "text": text,
        "api_app_id": world.app_id,
        "is_enterprise_install": "false",
        "response_url": world.response_url(conversation, user, None),
        "trigger_id": world.trigger(user),
    }
    delivery = Delivery("slash_commands", payload, accepts_response=True)
    delivery.settled = lambda one: _command_settled(conversation, user, command, one)
    return world.deliver(delivery)


def _command_settled(
    conversation: Conversation, user: User, command: str, delivery: Delivery
) -> None:
    """Shows what the acknowledgement carried, or that there was none."""
    if delivery.given_up:
        say(conversation, user, f'{command} failed with the error "{delivery.failure}"')
        return
    answer = delivery.response
    if not answer:
        return
    try:
        answer_to(conversation, user, None, answer)
    except SlackError:
        say(conversation, user, f'{command} failed with the error "invalid_command_response"')


def press(
    conversation: Conversation, message: Message, button: str | Button, user: User
) -> Delivery:
    """A button is pressed; `button` is its text, its action_id, or the button itself.

    Raises `AssertionError` when the message does not show it.
    """
    world = conversation.world
    found = next((one for one in message.buttons if _is(one, button)), None)
    assert found is not None, f"no button {button!r} among {message.buttons}"
    ephemeral = message.ephemeral_to is not None
    container: Json = {
        "type": "message",
        "message_ts": message.ts,
        "channel_id": conversation.id,
        "is_ephemeral": ephemeral,
    }
    if message.thread_ts:
        container["thread_ts"] = message.thread_ts
    name = CHANNEL_NAMES.get(conversation.kind, conversation.name)
    payload = world.person(user) | {
        "type": "block_actions",
        "container": container,
        "trigger_id": world.trigger(user),
        "channel": {"id": conversation.id, "name": name},
        "state": {"values": {}},
        "response_url": world.response_url(conversation, user, message),
        "actions": [_action(message, found) | {"action_ts": world.ids.ts()}],
    }
    if not ephemeral:
        payload["message"] = message.json()
    return world.deliver(Delivery("interactive", payload, accepts_response=True))


def _is(one: Button, wanted: str | Button) -> bool:
    return wanted in (one, one.text, one.action_id)


def _action(message: Message, button: Button) -> Json:
    for block in message.blocks:
        for element in elements_of(block):
            if element.get("action_id") == button.action_id and (
                block["block_id"] == button.block_id
            ):
                kept = ("action_id", "text", "value", "style", "url", "type")
                action = {key: element[key] for key in kept if key in element}
                return action | {"block_id": block["block_id"]}
    raise AssertionError("the button is not in the blocks")


def say(conversation: Conversation, user: User, text: str) -> None:
    """Slack itself tells one person something."""
    world = conversation.world
    message = Message(conversation.id, world.ids.ts(), "USLACKBOT", text)
    message.ephemeral_to = user.id
    conversation.add(message)


def respond(world: World, token: str, params: Json) -> None:
    """A POST to a response_url. Raises `SlackError`."""
    target = world.response_urls.get(token)
    if target is None:
        raise SlackError("invalid_url", status=404)
    if target.uses >= RESPONSE_URL_USES:
        raise SlackError("used_url", status=404)
    if time.monotonic() - target.at > RESPONSE_URL_LIFE_S:
        raise SlackError("expired_url", status=404)
    target.uses += 1
    answer_to(target.conversation, target.user, target.original, params)


def answer_to(
    conversation: Conversation, user: User, original: Message | None, params: Json
) -> None:
    """An answer to a command or a press: a new message (seen by that person only unless
    `response_type` is `in_channel`), or the original replaced or deleted."""
    from tests.servers.slack_methods import Content, bot_message_of, check_thread, replace

    if flag(params, "delete_original") and original is not None:
        conversation.delete(original)
        return
    content = Content(conversation.world, params)
    replaces = flag(params, "replace_original") or (
        "replace_original" not in params and "response_type" not in params
    )
    if original is not None and replaces:
        replace(conversation, original, content)
        return
    message = bot_message_of(conversation.world, conversation, content.text)
    message.blocks = content.blocks
    message.thread_ts = check_thread(conversation, params.get("thread_ts"))
    if params.get("response_type") != "in_channel":
        message.ephemeral_to = user.id
    conversation.add(message)
