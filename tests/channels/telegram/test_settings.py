"""The section of the configuration: ids as text, secrets never repeated."""

from __future__ import annotations

import pytest
from pydantic import SecretStr, ValidationError

from channels.telegram.channel import TelegramChannel
from channels.telegram.settings import TelegramSettings

TOKEN = "123456:real-SECRET_1"


def test_ids_of_people_and_chats_are_text() -> None:
    settings = TelegramSettings.model_validate(
        {"token": TOKEN, "owners": ["17"], "allowed": ["18", "-100123"]}
    )
    assert settings.owners == ("17",)
    assert settings.allowed == ("18", "-100123")
    assert TOKEN not in repr(settings)


@pytest.mark.parametrize(
    "fault",
    [
        {"owners": ["-100123"]},  # a chat owns nothing
        {"owners": ["@ana"]},
        {"allowed": ["017"]},
        {"base_url": "localhost:8081"},
        {"proxy": "socks5://user:hunter2@host"},
        {"tokn": "x"},
        {"token": "Use this token: 123:ABC"},
        {"token": ""},
        {"token": "hunter2"},
    ],
)
def test_a_fault_is_told_without_repeating_a_secret(fault: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        TelegramSettings.model_validate({"token": TOKEN} | fault)
    assert "hunter2" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_a_menu_has_at_most_eight_entries() -> None:
    settings = TelegramSettings(token=SecretStr(TOKEN))
    with pytest.raises(ValueError, match="at most 8"):
        TelegramChannel(settings, menu=[(f"c{i}", "x") for i in range(9)])
