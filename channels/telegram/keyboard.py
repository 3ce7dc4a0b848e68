"""Buttons under a message, short ones beside each other. What a press brings back is `action:value`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from channels.base import Button, StopControl

_IN_A_ROW = 3
_ROW_CHARACTERS = 26  # of labels, that a narrow screen shows whole
MAX_CALLBACK_BYTES: Final = 64  # core.telegram.org/bots/api#inlinekeyboardbutton


def keyboard_of(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    """The keyboard, None without buttons. Raises `ValueError` for one that Telegram would refuse,
    or whose press would be read as another."""
    rows: list[list[Button]] = []
    for button in buttons:
        if rows and _fits(rows[-1], button):
            rows[-1].append(button)
        else:
            rows.append([button])
    return InlineKeyboardMarkup([[*map(_drawn, row)] for row in rows]) if rows else None


def stop_keyboard(stop: StopControl) -> InlineKeyboardMarkup:
    """The Stop button of a preview. Raises `ValueError` as above."""
    return InlineKeyboardMarkup([[_drawn(Button(stop.label, "stop", stop.request_id))]])


def press_of(data: str) -> tuple[str, str]:
    """Action and value of a button's data."""
    action, _, value = data.partition(":")
    return action, value


def _fits(row: Sequence[Button], button: Button) -> bool:
    labels = [*(one.label for one in row), button.label]
    return len(labels) <= _IN_A_ROW and sum(map(len, labels)) <= _ROW_CHARACTERS


def _drawn(button: Button) -> InlineKeyboardButton:
    data = f"{button.action}:{button.value}"
    if press_of(data) != (button.action, button.value):
        raise ValueError("the action of a button has no colon in it")
    if len(data.encode()) > MAX_CALLBACK_BYTES:
        raise ValueError(
            f"a button holds {MAX_CALLBACK_BYTES} bytes, its action and colon included"
        )
    return InlineKeyboardButton(button.label, callback_data=data)
