"""The section `channels.slack`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from channels.slack.settings import SlackSettings

SOCKET = {"bot_token": "xoxb-1-a", "app_token": "xapp-1-b"}
HTTP = {"bot_token": "xoxb-1-a", "signing_secret": "s3cret", "http_port": 3000}


@pytest.mark.parametrize("values", [SOCKET, HTTP])
def test_there_is_one_way_in(values: dict[str, Any]) -> None:
    assert SlackSettings.model_validate(values).bot_token.get_secret_value() == "xoxb-1-a"


@pytest.mark.parametrize(
    "values",
    [
        {"bot_token": "xoxb-1-a"},
        SOCKET | HTTP,
        {"bot_token": "xoxb-1-a", "signing_secret": "s3cret"},
        {"bot_token": "xoxb-1-a", "http_port": 3000},
        SOCKET | {"signing_secret": "s3cret"},
        SOCKET | {"http_port": 3000},
        SOCKET | {"bot_token": "xoxp-1-a"},
        SOCKET | {"bot_token": "xoxb-1\nX-Header: 1"},
        SOCKET | {"app_token": "xoxb-1-a"},
        SOCKET | {"owners": ["C123"]},
        SOCKET | {"owners": ["123456"]},
        SOCKET | {"allowed": ["general"]},
        SOCKET | {"base_url": "slack.com"},
        SOCKET | {"proxy": "socks5://127.0.0.1"},
        SOCKET | {"unknown": "1"},
        HTTP | {"http_port": 70000},
    ],
)
def test_a_wrong_value_is_refused_without_repeating_it(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        SlackSettings.model_validate(values)
    said = str(refused.value)
    for secret in ("xoxb-1", "xapp-1", "xoxp-1", "s3cret", "socks5"):
        assert secret not in said


def test_people_and_channels_are_named_by_their_ids() -> None:
    settings = SlackSettings.model_validate(
        SOCKET | {"owners": ["U1", "W2"], "allowed": ["C3", "G4", "U5"]}
    )
    assert settings.owners == ("U1", "W2")
    assert settings.allowed == ("C3", "G4", "U5")


def test_secrets_are_not_shown() -> None:
    settings = SlackSettings.model_validate(SOCKET | {"proxy": "http://u:pass@h:1"})
    assert not [s for s in ("xoxb-1", "xapp-1", "pass") if s in repr(settings)]


def test_every_key_says_what_it_is_and_its_default() -> None:
    for name, field in SlackSettings.model_fields.items():
        assert field.description, name
        assert field.is_required() == ("required" in field.description), name
