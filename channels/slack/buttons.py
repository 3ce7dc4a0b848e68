"""Buttons under messages: made, read from a press, and taken away.

Limits: docs.slack.dev/reference/block-kit/blocks/actions-block and …/block-elements/button-element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from channels.base import Button, StopControl
from channels.messages import STOP_ACTION

_IN_A_BLOCK = 25
_LABEL_CHARACTERS = 75
_NO_LABEL = "…"  # Slack takes no empty one

Block = dict[str, Any]

_NUMBER = re.compile(r"#\d+\Z")


def stop_block(stop: StopControl) -> Block:
    """The block of a Stop button."""
    return _block([_button(stop.label, STOP_ACTION, stop.request_id)])


def button_blocks(buttons: Sequence[Button]) -> tuple[Block, ...]:
    """The blocks of a reply's buttons. Each action gets a number, since Slack refuses an action id
    that comes twice in a block."""
    made = [_button(b.label, f"{b.action}#{n}", b.value) for n, b in enumerate(buttons)]
    groups = (made[at : at + _IN_A_BLOCK] for at in range(0, len(made), _IN_A_BLOCK))
    return tuple(_block(group) for group in groups)


def action_of(action_id: str) -> str:
    """The action that a button was made with."""
    return _NUMBER.sub("", action_id)


def without_buttons(blocks: Iterable[Block]) -> list[Block]:
    """The other blocks."""
    return [block for block in blocks if block.get("type") != "actions"]


def labels(buttons: Sequence[Button]) -> str:
    """The buttons as words, for a message of nothing else."""
    return " · ".join(button.label for button in buttons)


def _block(elements: Sequence[Block]) -> Block:
    return {"type": "actions", "elements": list(elements)}


def _button(label: str, action_id: str, value: str) -> Block:
    shown = label[:_LABEL_CHARACTERS] or _NO_LABEL
    return {
        "type": "button",
        "action_id": action_id,
        "text": {"type": "plain_text", "text": shown},
        "value": value,
    }
