"""Which way requests take: what the configuration says, never what the environment says."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from channels.errors import ChannelUnavailable
from channels.telegram.channel import TelegramChannel
from channels.telegram.settings import TelegramSettings
from tests.channels.telegram.conftest import make_channel
from tests.servers.telegram import TelegramServer

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
async def elsewhere() -> AsyncIterator[TelegramServer]:
    """Where requests come out that take the way by a proxy: it takes any host for its own."""
    async with TelegramServer() as running:
        yield running


@pytest.mark.parametrize("proxy", [NOWHERE, "socks5://127.0.0.1:9", "nonsense"])
async def test_proxies_of_the_environment_are_not_ours(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    channel = make_channel(server)
    assert (await channel.identify()).username == "galata_test_bot"
    await channel.aclose()


def proxied(server: TelegramServer, proxy: str, base_url: str) -> TelegramChannel:
    settings = TelegramSettings(
        token=SecretStr(server.token), base_url=base_url, proxy=SecretStr(proxy)
    )
    return TelegramChannel(settings, menu=[])


async def test_the_proxy_of_the_configuration_is_used(
    elsewhere: TelegramServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    channel = proxied(elsewhere, f"http://127.0.0.1:{elsewhere.port}", "http://telegram.invalid")
    assert (await channel.identify()).username == "galata_test_bot"
    await channel.aclose()


async def test_a_proxy_that_is_not_there_is_told_without_its_password(
    server: TelegramServer,
) -> None:
    root = server.base_url.removesuffix("/bot")
    channel = proxied(server, "http://user:hunter2@127.0.0.1:9", root)
    with pytest.raises(ChannelUnavailable) as caught:
        await channel.identify()
    assert "hunter2" not in repr(caught.value)
    assert server.calls == []
    await channel.aclose()
