"""What setup asks about a channel depends on how it is connected."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path

import pytest

from bridge.cli.setup_channels import ask_channel
from bridge.cli.setup_earlier import read_earlier
from tests.servers.slack import SlackServer

CONFIG = """\
model: m
providers: {p: {kind: openai, base_url: "http://127.0.0.1:1"}}
models: {m: {provider: p, id: x}}
channels:
  slack:
    bot_token: TOKEN
    signing_secret: 0123456789abcdef
    http_port: 3000
    base_url: URL
"""


async def test_an_app_on_signed_http_is_asked_for_its_signing_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def typed(question: str) -> str:
        asked.append(question)
        return ""

    monkeypatch.setattr(getpass, "getpass", typed)
    async with SlackServer() as slack:
        text = CONFIG.replace("TOKEN", slack.bot_token).replace("URL", slack.base_url)
        (tmp_path / "config.yaml").write_text(text)
        earlier = read_earlier(tmp_path / "config.yaml", text.encode(), {})
        found = await asyncio.to_thread(ask_channel, "slack", earlier, {})
    assert asked == [
        "Bot token of Slack (xoxb-...) (hidden; Enter keeps …): ",
        "Signing secret of Slack (hidden; Enter keeps …cdef): ",
    ]
    assert found.secrets == {"bot_token": slack.bot_token, "signing_secret": "0123456789abcdef"}
    assert "api.slack.com" not in capsys.readouterr().out
