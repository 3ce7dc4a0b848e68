"""What setup writes can be read again, whatever the addresses and secrets are."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.cli.options import CommandFailed
from bridge.cli.setup_files import (
    Answers,
    Endpoint,
    config_text,
    env_text,
    read_present,
    write_private,
)
from bridge.config import load
from bridge.known_models import DEFAULTS, model_settings

SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="'\"\\"), min_size=1
)
NAMES = st.sampled_from(["ANTHROPIC_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_APP_TOKEN"])


@given(st.dictionaries(NAMES, SECRETS, min_size=1))
def test_dotenv_reads_what_was_written(secrets: dict[str, str]) -> None:
    text = env_text("# a comment\nexport ANTHROPIC_API_KEY=old\nOTHER=1", secrets)
    read = dotenv_values(stream=io.StringIO(text), interpolate=False)
    assert read.items() >= {**secrets, "OTHER": "1"}.items()
    assert text.count("ANTHROPIC_API_KEY=") == 1
    assert text.startswith("# a comment\n")


@settings(max_examples=30, deadline=None)
@given(
    base_url=st.none() | st.sampled_from(["http://a/${B}", 'http://a/"#:{}', "https://a:1/v1"]),
    limit=st.floats(0, 1_000_000),
    channel=st.sampled_from(["telegram", "slack"]),
    kind=st.sampled_from(["anthropic", "openai"]),
    known=st.booleans(),
)
def test_the_file_says_what_was_answered_in_15_lines(
    tmp_path_factory, base_url: str | None, limit: float, channel: str, kind: str, known: bool
) -> None:
    tokens = {
        "telegram": {"token": "123456:ABC"},
        "slack": {"bot_token": "xoxb-1", "app_token": "xapp-1"},
    }[channel]
    model = model_settings(kind, kind, DEFAULTS[kind] if known else "my model: #1")
    answers = Answers(
        channel=Endpoint(channel, tokens, base_url.split("$")[0] if base_url else None),
        provider=Endpoint(kind, {"api_key": "a-key"}, base_url),
        model=model,
        timezone="America/Argentina/Buenos_Aires",
        limit_usd=limit,
    )
    folder = tmp_path_factory.mktemp("written")
    write_private(folder / "config.yaml", config_text(answers))
    write_private(folder / ".env", env_text("", answers.secrets()))
    assert len(config_text(answers).splitlines()) <= 15
    config = load(folder / "config.yaml", {})
    assert config.models == {"default": model}
    assert config.providers[kind].base_url == base_url
    assert config.limits.cost_per_month_usd == limit
    assert config.secrets() == {"a-key", *tokens.values()}


def test_a_file_is_replaced_at_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new\n")
    assert path.read_text() == "new\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_or_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="cannot be written"):
        write_private(tmp_path / "no" / "config.yaml", "")
    (tmp_path / ".env").write_bytes(b"A=\xff")
    with pytest.raises(CommandFailed, match="nothing was written"):
        read_present(tmp_path / ".env")
    assert read_present(tmp_path / "none") == ""
