"""The configuration without a file: keys and tokens from the environment, errors that name them."""

from __future__ import annotations

import pytest

from bridge.config import Config, ConfigError, from_environment
from bridge.configuration.known_models import DEFAULTS, KNOWN, model_settings

TOKEN = "123456:AAbbccddeeffgghhiijjkkllmmnnooppqq"
BOT, APP = "xoxb-1234567890-abc", "xapp-1-1234567890-abc"
ZONE = {"TZ": "Asia/Shanghai"}


def faults(**environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        from_environment(ZONE | environ)
    return str(caught.value)


def test_without_a_key_the_embedded_model_answers_in_the_terminal() -> None:
    config = from_environment(ZONE)
    assert config.local_model
    assert config.channels.telegram is None
    assert config.channels.slack is None
    assert config.log.level == "WARNING"  # it shares the terminal with the conversation
    assert str(config.zone) == "Asia/Shanghai"


def test_who_has_written_no_file_reads_the_names_of_variables() -> None:
    config = from_environment(ZONE | {"TELEGRAM_BOT_TOKEN": TOKEN, "ANTHROPIC_API_KEY": "a-key"})
    said = "channels.telegram.token: refused; providers.anthropic.api_key too; models.default stays"
    named = "TELEGRAM_BOT_TOKEN: refused; ANTHROPIC_API_KEY too; models.default stays"
    assert config.as_given(said) == named
    assert config.model_copy(update={"language": "en"}).as_given(said) == named
    assert Config().as_given(said) == said, "a file has keys"


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_a_key_alone_is_enough(kind: str) -> None:
    config = from_environment(ZONE | {f"{kind.upper()}_API_KEY": " a-key\n"})
    model = config.models[config.model]
    assert config.providers[model.provider].kind == kind
    assert config.providers[model.provider].api_key.get_secret_value() == "a-key"
    assert model.id == DEFAULTS[kind]
    assert model.price is not None
    assert not config.local_model


def test_with_both_keys_anthropic_answers_and_the_other_is_not_used() -> None:
    config = from_environment(ZONE | {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b"})
    assert set(config.providers) == {"anthropic"}


def test_the_model_and_the_address_can_be_chosen() -> None:
    config = from_environment(
        ZONE | {"OPENAI_BASE_URL": "http://127.0.0.1:11434/v1", "GALATA_MODEL": "qwen3"}
    )
    assert config.providers["openai"].base_url == "http://127.0.0.1:11434/v1"
    assert config.providers["openai"].api_key is None
    assert config.models["default"].id == "qwen3"
    assert config.models["default"].price is None


def test_tokens_switch_channels_on() -> None:
    config = from_environment(
        ZONE
        | {
            "TELEGRAM_BOT_TOKEN": TOKEN,
            "TELEGRAM_BASE_URL": "http://127.0.0.1:1",
            "SLACK_BOT_TOKEN": BOT,
            "SLACK_APP_TOKEN": APP,
            "SLACK_BASE_URL": "http://127.0.0.1:2/api/",
        }
    )
    assert config.channels.telegram.base_url == "http://127.0.0.1:1"
    assert config.channels.slack.base_url == "http://127.0.0.1:2/api/"
    assert config.log.level == "INFO"
    assert {TOKEN, BOT, APP} <= config.secrets()


def test_an_address_alone_switches_nothing_on() -> None:
    config = from_environment(ZONE | {"TELEGRAM_BASE_URL": "http://127.0.0.1:1"})
    assert config.channels.telegram is None


@pytest.mark.parametrize(
    ("given", "missing"),
    [("SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"), ("SLACK_APP_TOKEN", "SLACK_BOT_TOKEN")],
)
def test_one_slack_token_without_the_other_names_the_missing_one(given: str, missing: str) -> None:
    value = {"SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": APP}[given]
    text = faults(**{given: value})
    assert text == f"environment: {missing}: is not set, but {given} is: Slack needs both"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TELEGRAM_BOT_TOKEN", "not-a-token"),
        ("TELEGRAM_BASE_URL", "not-an-address"),
        ("OPENAI_BASE_URL", "not-an-address"),
        ("OPENAI_API_KEY", "sk-abc def"),
        ("ANTHROPIC_API_KEY", "sk-ant-abc\nsk-ant-def"),
        ("ANTHROPIC_API_KEY", "“sk-ant-abc”"),
        ("SLACK_BOT_TOKEN", "xoxp-not-a-bot"),
    ],
)
def test_a_fault_names_the_variable_and_repeats_no_value(variable: str, value: str) -> None:
    environ = {"TELEGRAM_BOT_TOKEN": TOKEN, "SLACK_BOT_TOKEN": BOT, "SLACK_APP_TOKEN": APP}
    text = faults(**(environ | {variable: value}))
    assert text.startswith(f"environment: {variable}: ")
    assert value not in text


def test_an_unknown_zone_is_an_error_not_utc() -> None:
    assert "did you mean Europe/Berlin?" in faults(TZ="Europe/Berln")


def test_empty_variables_are_not_set() -> None:
    assert from_environment(
        ZONE | {"ANTHROPIC_API_KEY": "  ", "TELEGRAM_BOT_TOKEN": ""}
    ).local_model


def test_every_known_model_has_a_dated_price_and_a_window() -> None:
    for model_id, (kind, *_) in KNOWN.items():
        model = model_settings(kind, "p", model_id)
        assert model.price is not None
        assert model.price.input < model.price.output
        assert model.price.as_of.year >= 2026
        assert model.context_tokens >= 100_000
        assert model_settings(kind, "p", "something-else").price is None
