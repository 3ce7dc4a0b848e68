"""Forms as Slack's modals: made, read from what is sent, and with faults at their fields. Pure.

Limits: docs.slack.dev/reference/views and …/block-kit/block-elements; the state of a modal knows each
field as `values[block_id][action_id]`, and gives null for an empty one. A text has no `max_length`:
that takes 3,000 at most, while without one longer texts are taken (slackapi/node-slack-sdk#940), and
longer initial values too (IBM/slack-wrench#105).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from channels.base import Address
from channels.inputs import Form, FormField, Submission
from channels.slack.buttons import button_blocks

MODAL_TEXT: Final = 24  # characters of a title or a button of the modal
_LABEL, _HINT, _PLACE, _SECTION = 2_000, 2_000, 75, 3_000
_INPUT = "input"  # the action id within each field's block
_NOTHING: Final = "-"  # a choice has no empty value

Block = dict[str, Any]


def view_of(form: Form, to: Address) -> Block:
    """The modal of a form, which remembers where it was opened."""
    blocks: list[Block] = []
    if form.intro:
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": _short(form.intro)}})
    blocks += button_blocks(form.buttons)
    blocks += map(_field, form.fields)
    return {
        "type": "modal",
        "callback_id": form.action,
        "private_metadata": json.dumps([to.chat, to.thread, to.private, form.value]),
        "title": _plain(form.title[:MODAL_TEXT]),
        "submit": _plain(form.send[:MODAL_TEXT]),
        "close": _plain(form.close[:MODAL_TEXT]),
        "blocks": blocks,
    }


def place_of(view: Mapping[str, Any], channel: str, account: str) -> Address:
    """Where the modal was opened. Raises `ValueError`, `TypeError`: it is none of ours."""
    chat, thread, private, _ = json.loads(view["private_metadata"])
    return Address(channel, account, str(chat), thread, bool(private))


def submission_of(view: Mapping[str, Any]) -> Submission:
    """What was filled in. Raises as `place_of`."""
    values: Mapping[str, Mapping[str, Any]] = view["state"]["values"]
    texts = {name: _text(state[_INPUT]) for name, state in values.items()}
    return Submission(str(view["callback_id"]), str(json.loads(view["private_metadata"])[3]), texts)


def refusal(faults: Mapping[str, str]) -> dict[str, Any]:
    """The acknowledgement that shows the form again, with what is wrong."""
    return {"response_action": "errors", "errors": dict(faults)}


def _text(state: Mapping[str, Any]) -> str:
    if state.get("type") == "static_select":
        chosen: Mapping[str, Any] = state.get("selected_option") or {}
        value = str(chosen.get("value", ""))
        return "" if value == _NOTHING else value
    return str(state.get("value") or "")


def _field(one: FormField) -> Block:
    block: Block = {
        "type": "input",
        "block_id": one.name,
        "optional": True,
        "label": _plain(one.label[:_LABEL]),
        "element": _select(one) if one.choices else _line(one),
    }
    return block | ({"hint": _plain(one.hint[:_HINT])} if one.hint else {})


def _line(one: FormField) -> Block:
    element: Block = {"type": "plain_text_input", "action_id": _INPUT, "multiline": one.lines}
    return element | ({"initial_value": one.value} if one.value else {})


def _select(one: FormField) -> Block:
    options = [_option(value, label) for value, label in one.choices]
    element: Block = {"type": "static_select", "action_id": _INPUT, "options": options}
    chosen = [o for (value, _), o in zip(one.choices, options, strict=True) if value == one.value]
    return element | ({"initial_option": chosen[0]} if chosen else {})


def _option(value: str, label: str) -> Block:
    return {"text": _plain(label[:_PLACE]), "value": value or _NOTHING}


def _short(text: str) -> str:
    """As much of it as a section holds; that more is missing shows."""
    return text if len(text) <= _SECTION else f"{text[: _SECTION - 2]} …"


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text}
