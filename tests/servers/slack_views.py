"""Modals and the Home tab: views.open, views.update, views.publish, and a form that is sent.

From docs.slack.dev/surfaces/modals and docs.slack.dev/reference/views.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.servers import slack_blocks
from tests.servers.slack_delivery import Delivery
from tests.servers.slack_params import as_json, refuse_arguments, want
from tests.servers.slack_render import Button, Json, buttons, elements_of, render
from tests.servers.slack_state import SlackError, User

if TYPE_CHECKING:
    from tests.servers.slack_world import World

TRIGGER_LIFE_S = 3.0
"""docs: a trigger_id expires three seconds after it was sent, and can be used once."""


@dataclass(eq=False)
class View:
    """A modal or a Home tab as it stands. `errors` are those under its inputs, by `block_id`."""

    id: str
    user: User
    body: Json
    hash: str
    open: bool = True
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its title; empty for a Home tab."""
        title: str = self.body.get("title", {}).get("text", "")
        return title

    @property
    def shown(self) -> str:
        """Its blocks as a person reads them."""
        return render(self.body["blocks"])

    @property
    def buttons(self) -> list[Button]:
        """Its buttons, in order."""
        return buttons(self.body["blocks"])

    def json(self, world: World, values: Json | None = None) -> Json:
        """The view object."""
        empty = {"private_metadata": "", "callback_id": "", "clear_on_close": False}
        return (
            empty
            | self.body
            | {
                "id": self.id,
                "team_id": world.team_id,
                "state": {"values": values or {}},
                "hash": self.hash,
                "root_view_id": self.id,
                "app_id": world.app_id,
                "bot_id": world.bot.bot_id,
            }
        )


@dataclass(eq=False)
class Trigger:
    """What lets the app open a modal for a person."""

    user: User
    at: float = field(default_factory=time.monotonic)
    used: bool = False


def checked(world: World, raw: Any, kinds: tuple[str, ...]) -> Json:
    """The view of a request. Raises `invalid_arguments` with JSON pointers."""
    view: Json = as_json(raw, None)
    if not isinstance(view, dict):
        refuse_arguments("missing required field: view")
    problems = []
    if view.get("type") not in kinds:
        problems.append("must be a valid enum value [json-pointer:/view/type]")
    if view.get("type") == "modal":
        problems += _title_problems(view)
    for name, most in (("callback_id", 255), ("private_metadata", 3000)):
        if len(view.get(name) or "") > most:
            problems.append(f"must be less than {most + 1} characters [json-pointer:/view/{name}]")
    if not isinstance(view.get("blocks"), list):
        problems.append("missing required field: blocks [json-pointer:/view]")
    if problems:
        refuse_arguments(*problems)
    try:
        slack_blocks.parse(view["blocks"], note=world.note_blocks, name="view/blocks", most=100)
    except SlackError as error:
        messages = error.body.get("response_metadata", {}).get("messages", [str(error)])
        refuse_arguments(*[message.removeprefix("[ERROR] ") for message in messages])
    _give_ids(world, view["blocks"])
    return view


def _title_problems(view: Json) -> list[str]:
    problems = []
    if not isinstance(view.get("title"), dict):
        problems.append("missing required field: title [json-pointer:/view]")
    for name in ("title", "submit", "close"):
        text = view.get(name)
        if isinstance(text, dict) and len(text.get("text", "")) > 24:
            problems.append(f"must be less than 25 characters [json-pointer:/view/{name}/text]")
    has_input = any(block.get("type") == "input" for block in view.get("blocks") or [])
    if has_input and not view.get("submit"):
        problems.append("missing required field: submit [json-pointer:/view]")
    return problems


def _give_ids(world: World, blocks: list[Json]) -> None:
    for block in blocks:
        block.setdefault("block_id", world.ids.next("blk"))
        for element in elements_of(block):
            if element.get("type") not in ("plain_text", "mrkdwn", "image"):
                element.setdefault("action_id", world.ids.next("act"))


def open_view(world: World, params: Json) -> Json:
    """views.open"""
    body = checked(world, params.get("view"), ("modal",))
    trigger = world.triggers.get(want(params, "trigger_id"))
    if trigger is None:
        raise SlackError("invalid_trigger_id")
    if trigger.used:
        raise SlackError("exchanged_trigger_id")
    if time.monotonic() - trigger.at > TRIGGER_LIFE_S:
        raise SlackError("expired_trigger_id")
    trigger.used = True
    view = View(world.ids.next("V"), trigger.user, body, world.ids.ts())
    world.views.append(view)
    return {"view": view.json(world)}


def update_view(world: World, params: Json) -> Json:
    """views.update"""
    body = checked(world, params.get("view"), ("modal",))
    wanted = params.get("view_id") or params.get("external_id")
    found = [
        one
        for one in world.views
        if wanted and one.open and wanted in (one.id, one.body.get("external_id"))
    ]
    if not found:
        raise SlackError("not_found")
    if params.get("hash") not in (None, found[0].hash):
        raise SlackError("hash_conflict")
    found[0].body, found[0].hash = body, world.ids.ts()
    return {"view": found[0].json(world)}


def publish_view(world: World, params: Json) -> Json:
    """views.publish"""
    body = checked(world, params.get("view"), ("home",))
    user = world.users.get(want(params, "user_id"))
    if user is None:
        refuse_arguments("invalid `user_id`")
    view = View(world.ids.next("V"), user, body, world.ids.ts())
    world.homes[user.id] = view
    return {"view": view.json(world)}


def submit(world: World, view: View, values: dict[str, str]) -> Delivery:
    """A person fills the inputs (`block_id` to text) and sends the form.

    Without an answer of the app it closes; `response_action` keeps it open with errors, or changes
    it. Raises `AssertionError` for an input that is not there, or a view that is closed.
    """
    assert view.open, "the view is closed"
    inputs = {block["block_id"]: block for block in view.body["blocks"] if block["type"] == "input"}
    unknown = set(values) - set(inputs)
    assert not unknown, f"no such inputs: {unknown}"
    state = {
        block_id: {block["element"]["action_id"]: _filled(block, values.get(block_id))}
        for block_id, block in inputs.items()
    }
    payload = world.person(view.user) | {
        "type": "view_submission",
        "trigger_id": world.trigger(view.user),
        "view": view.json(world, state),
        "response_urls": [],
    }
    delivery = Delivery("interactive", payload, accepts_response=True)
    delivery.settled = lambda one: _settle(world, view, one)
    return world.deliver(delivery)


def _filled(block: Json, text: str | None) -> Json:
    """What the state says of one input. Raises `AssertionError` for a choice that is not offered, or
    an empty input that is not optional."""
    element = block["element"]
    if element["type"] == "static_select":
        chosen = element.get("initial_option")
        if text is not None:
            offered = {option["value"]: option for option in element["options"]}
            assert text in offered, f"{text!r} is not offered, but {[*offered]}"
            chosen = offered[text]
        assert chosen or block.get("optional"), "an input is empty"
        return {"type": "static_select", "selected_option": chosen}
    value = element.get("initial_value") if text is None else text or None
    assert value or block.get("optional"), "an input is empty"
    return {"type": element["type"], "value": value}


def press_inside(world: World, view: View, button: str) -> Delivery:
    """A button of an open modal is pressed, by its text."""
    assert view.open, "the view is closed"
    found = next(
        element
        for block in view.body["blocks"]
        if block["type"] == "actions"
        for element in block["elements"]
        if element["text"]["text"] == button
    )
    action = {key: found[key] for key in ("action_id", "text", "value", "type") if key in found}
    payload = world.person(view.user) | {
        "type": "block_actions",
        "container": {"type": "view", "view_id": view.id},
        "trigger_id": world.trigger(view.user),
        "view": view.json(world),
        "actions": [action | {"block_id": "blk", "action_ts": world.ids.ts()}],
    }
    return world.deliver(Delivery("interactive", payload, accepts_response=True))


def _settle(world: World, view: View, delivery: Delivery) -> None:
    """What the acknowledgement does to the form."""
    if delivery.given_up:
        view.errors = {"": "We had some trouble connecting. Try again?"}
        return
    answer = delivery.response or {}
    action = answer.get("response_action")
    if action == "errors":
        inputs = {block["block_id"] for block in view.body["blocks"] if block["type"] == "input"}
        known = bool(answer["errors"]) and set(answer["errors"]) <= inputs
        view.errors = dict(answer["errors"]) if known else {"": "We had some trouble connecting."}
    elif action == "update":
        view.body = checked(world, answer["view"], ("modal",))
    elif action == "push":
        body = checked(world, answer["view"], ("modal",))
        world.views.append(View(world.ids.next("V"), view.user, body, world.ids.ts()))
    elif action == "clear":
        for one in world.views:
            one.open = one.open and one.user is not view.user
    else:
        view.open = False
    world.changed()
