"""What setup writes is what was answered: in a first configuration, and in one that was there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.settings import PriceSettings
from bridge.cli import setup
from bridge.cli.options import CommandFailed
from bridge.cli.setup_answers import Answers, Endpoint
from bridge.cli.setup_changes import Written, again, first, free_name
from bridge.cli.setup_earlier import Earlier, read_earlier
from bridge.cli.setup_files import env_text, write_private
from bridge.config import Config, ConfigError, load
from bridge.configuration.known_models import DEFAULTS, model_settings

TELEGRAM = Endpoint("telegram", "telegram", {"token": "123456:ABC"}, None)
SLACK = Endpoint("slack", "slack", {"bot_token": "xoxb-1", "app_token": "xapp-1"}, None)
OPENAI = Endpoint("openai", "openai", {"api_key": "a-key"}, None)
FREE = PriceSettings(input=0, output=0, as_of=date(2026, 12, 1))
MINE = """\
# mine
model: here # the one
providers:
    here: {kind: openai, api_key: "${MY_KEY}", base_url: http://127.0.0.1:1, total_s: 60}
    other:
        kind: openai
        api_key: ${OPENAI_API_KEY}
models:
    here: {provider: here, id: 'a:b', tools: no} # no tools
    fallback: {provider: here, id: c}
channels:
    telegram:
        token: 123456:ABC
        owners: [7]
"""


class Folder:
    """A configuration with its `.env`."""

    def __init__(self, path: Path, config: str = "", env: str = "") -> None:
        self.file, self.env = path / "config.yaml", path / ".env"
        write_private({self.file: config.encode(), self.env: env.encode()})

    def write(self, written: Written) -> Config:
        env = env_text(self.env.read_text(), written.secrets)
        write_private({self.env: env.encode(), self.file: written.config.encode()})
        return load(self.file, {})

    def earlier(self, environ: Mapping[str, str] | None = None) -> Earlier:
        return read_earlier(self.file, self.file.read_bytes(), environ or {})

    def again(self, channels: tuple[Endpoint, ...] = (), **changes: object) -> Config:
        """Answer as before but for these."""
        earlier = self.earlier()
        kept = replace(earlier.answers(), channels=channels)
        return self.write(again(earlier, replace(kept, **changes)))


@pytest.fixture
def mine(tmp_path: Path) -> Folder:
    return Folder(tmp_path, MINE, "MY_KEY=k\nOPENAI_API_KEY=o\n")


@settings(max_examples=30, deadline=None)
@given(
    base_url=st.none() | st.sampled_from(["http://a/${B}", 'http://a/"#:{}', "https://a:1/v1"]),
    limit=st.floats(0, 1_000_000),
    channel=st.sampled_from([TELEGRAM, SLACK]),
    kind=st.sampled_from(["anthropic", "openai"]),
    known=st.booleans(),
    zone=st.sampled_from(["America/Argentina/Buenos_Aires", None]),
)
def test_a_first_file_says_what_was_answered_in_15_lines(
    tmp_path_factory,
    base_url: str | None,
    limit: float,
    channel: Endpoint,
    kind: str,
    known: bool,
    zone: str | None,
) -> None:
    model = model_settings(kind, kind, DEFAULTS[kind] if known else "my model: #1")
    model = model if known else model.model_copy(update={"price": FREE})
    answers = Answers(
        channels=(replace(channel, base_url=base_url.split("$")[0] if base_url else None),),
        provider=Endpoint(kind, kind, {"api_key": "a-key"}, base_url),
        model=model,
        timezone=zone,
        limit_usd=limit,
    )
    written = first(answers)
    assert ("timezone:" in written.config) == (zone is not None)
    assert len(written.config.splitlines()) <= 15
    folder = Folder(tmp_path_factory.mktemp("written"))
    config = folder.write(written)
    assert config.models == {"default": model}
    assert config.providers[kind].base_url == base_url
    assert config.installation.cost_per_month_usd == limit
    assert config.secrets() == {"a-key", *channel.secrets.values()}
    assert folder.again(answers.channels) == config
    assert folder.file.read_text() == written.config


@pytest.mark.parametrize("system", ["Europe/Berlin", None])
def test_no_zone_is_written_that_nobody_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, system: str | None
) -> None:
    """Where Slack's two tokens take the place of the question."""
    model = OPENAI, model_settings("openai", "openai", DEFAULTS["openai"])
    monkeypatch.setattr(setup, "ask_channel", lambda *_: SLACK)
    monkeypatch.setattr(setup, "ask_first_model", lambda _: model)
    monkeypatch.setattr(setup, "_ask_limit", lambda _: 5.0)
    monkeypatch.setattr(setup, "system_zone", lambda _: system)
    assert setup.first_answers("slack", {}).timezone == system


def test_the_same_answers_leave_every_byte(mine: Folder) -> None:
    mine.again((TELEGRAM,))
    assert mine.file.read_text() == MINE
    assert mine.env.read_text() == "MY_KEY=k\nOPENAI_API_KEY=o\n"


def test_only_what_differs_is_written(mine: Folder) -> None:
    priced = mine.earlier().answers().model.model_copy(update={"price": FREE})
    mine.again((TELEGRAM,), timezone="Asia/Tokyo", limit_usd=7.5, model=priced)
    price = ", price: {input: 0.0, output: 0.0, as_of: 2026-12-01}} # no tools"
    added = "timezone: Asia/Tokyo\ninstallation:\n  cost_per_month_usd: 7.5\n"
    assert mine.file.read_text() == MINE.replace("} # no tools", price) + added


def test_a_limit_that_could_not_be_kept_to_is_not_written(mine: Folder) -> None:
    with pytest.raises(
        CommandFailed, match=r"installation.cost_per_month_usd: .*models.here.price"
    ):
        mine.again((TELEGRAM,), limit_usd=7.5)
    assert mine.file.read_text() == MINE


def test_a_channel_is_added_and_the_other_stays(mine: Folder) -> None:
    config = mine.again((replace(SLACK, base_url="http://slack"),))
    line = (
        '    slack: {bot_token: "${SLACK_BOT_TOKEN}", app_token: "${SLACK_APP_TOKEN}",'
        ' base_url: "http://slack"}\n'
    )
    assert mine.file.read_text() == MINE + line
    assert config.channels.telegram is not None
    assert config.channels.telegram.owners == ("7",)
    assert config.channels.slack is not None
    assert mine.env.read_text().startswith("MY_KEY=k\nOPENAI_API_KEY=o\nSLACK_")


def test_a_new_secret_goes_where_the_old_one_is_taken_from(mine: Folder) -> None:
    provider = replace(mine.earlier().answers().provider, secrets={"api_key": "fresh"})
    mine.again((TELEGRAM,), provider=provider)
    assert mine.file.read_text() == MINE
    assert mine.env.read_text() == "MY_KEY='fresh'\nOPENAI_API_KEY=o\n"


def test_a_new_secret_replaces_one_in_the_file_by_a_variable(mine: Folder) -> None:
    config = mine.again((replace(TELEGRAM, secrets={"token": "123456:NEW"}),))
    assert mine.file.read_text() == MINE.replace("123456:ABC", '"${TELEGRAM_BOT_TOKEN}"')
    assert "123456:NEW" in config.secrets()


def test_a_variable_that_belongs_to_another_is_not_taken(mine: Folder) -> None:
    text = MINE.replace('api_key: "${MY_KEY}", ', "")
    write_private({mine.file: text.encode()})
    provider = replace(mine.earlier().answers().provider, secrets={"api_key": "fresh"})
    config = mine.again((TELEGRAM,), provider=provider)
    assert 'api_key: "${OPENAI_API_KEY_2}"' in mine.file.read_text()
    assert "OPENAI_API_KEY=o\n" in mine.env.read_text()
    key = config.providers["here"].api_key
    assert key is not None
    assert key.get_secret_value() == "fresh"


def test_another_model_leaves_the_entry_of_the_first(mine: Folder) -> None:
    config = mine.again((TELEGRAM,), model=model_settings("openai", "here", "c"))
    assert config.model == "fallback"
    assert mine.file.read_text() == MINE.replace("model: here #", "model: fallback #")
    config = mine.again((TELEGRAM,), model=model_settings("openai", "here", "qwen3:8b"))
    assert config.model == "qwen3-8b"
    assert config.models["qwen3-8b"].id == "qwen3:8b"
    assert config.models["here"].tools is False


def test_another_provider_is_added(mine: Folder) -> None:
    endpoint = Endpoint("anthropic", "anthropic", {"api_key": "sk-ant-1"}, None)
    model = model_settings("anthropic", "anthropic", DEFAULTS["anthropic"])
    config = mine.again((TELEGRAM,), provider=endpoint, model=model)
    assert config.models[config.model] == model
    assert set(config.providers) == {"here", "other", "anthropic"}
    assert "# no tools" in mine.file.read_text()


@pytest.mark.parametrize("name", ["qwen3:8b", "…", "-", "a" * 50, "vendor/model-1.5", "é"])
def test_every_model_gives_a_name_that_is_allowed(name: str, mine: Folder) -> None:
    taken = [free_name(name, ())]
    taken.append(free_name(name, taken))
    assert len(set(taken)) == 2
    model = model_settings("openai", "here", name)
    assert mine.again((TELEGRAM,), model=model).model == taken[0]


def test_a_secret_that_is_missing_or_wrong_can_be_mended_by_an_answer(mine: Folder) -> None:
    text = MINE.replace("123456:ABC", "${TELEGRAM_BOT_TOKEN}")
    write_private({mine.file: text.encode(), mine.env: b"TELEGRAM_BOT_TOKEN=wrong\n"})
    earlier = mine.earlier()
    assert earlier.unset == {"channels.telegram.token", "providers.here.api_key"}
    assert earlier.lacks("providers")
    assert earlier.secret(("channels", "telegram", "token")) == ""
    assert earlier.secret(("providers", "here", "api_key")) == ""
    assert mine.earlier({"MY_KEY": "k"}).unset == {"channels.telegram.token"}
    provider = replace(earlier.answers().provider, secrets={"api_key": "k2"})
    mine.again((TELEGRAM,), provider=provider)
    assert mine.file.read_text() == text
    assert mine.env.read_text() == "TELEGRAM_BOT_TOKEN='123456:ABC'\nMY_KEY='k2'\n"


@pytest.mark.parametrize(
    "fault",
    ["wrong: 1", "timezone: Nowhere", "- x", "\tx", "", "log: {level: ${LEVEL}}"],
)
def test_any_other_fault_is_told_with_all_the_rest(mine: Folder, fault: str) -> None:
    text = MINE.replace("123456:ABC", "${TELEGRAM_BOT_TOKEN}") + fault if fault else ""
    write_private({mine.file: text.encode()})
    with pytest.raises(ConfigError) as told:
        load(mine.file, {})
    with pytest.raises(ConfigError) as found:
        mine.earlier()
    assert str(found.value) == str(told.value)
