"""Buttons under a message, one a row. What a press brings back is `action:value`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from channels.base import Button, StopControl

MAX_CALLBACK_BYTES: Final = 64  # core.telegram.org/bots/api#inlinekeyboardbutton


def keyboard_of(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    """The keyboard, None without buttons. Raises `ValueError` for one that Telegram would refuse,
    or whose press would be read as another."""
    return InlineKeyboardMarkup([[_drawn(button)] for button in buttons]) if buttons else None


def stop_keyboard(stop: StopControl) -> InlineKeyboardMarkup:
    """The Stop button of a preview. Raises `ValueError` as above."""
    return InlineKeyboardMarkup([[_drawn(Button(stop.label, "stop", stop.request_id))]])


def press_of(data: str) -> tuple[str, str]:
    """Action and value of a button's data."""
    action, _, value = data.partition(":")
    return action, value


def _drawn(button: Button) -> InlineKeyboardButton:
    data = f"{button.action}:{button.value}"
    if press_of(data) != (button.action, button.value):
        raise ValueError("the action of a button has no colon in it")
    if len(data.encode()) > MAX_CALLBACK_BYTES:
        raise ValueError(
            f"a button holds {MAX_CALLBACK_BYTES} bytes, its action and colon included"
        )
    return InlineKeyboardButton(button.label, callback_data=data)
