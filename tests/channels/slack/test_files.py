"""Fetching files, with the token for Slack alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest
from aiohttp import web

from channels.base import Attachment
from channels.errors import FileRefused
from channels.slack.channel import SlackChannel
from tests.servers.slack import SlackServer

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100


def attached(
    server: SlackServer, name: str, content: bytes, media_type: str = "text/plain"
) -> Attachment:
    """A file that a person has sent to the bot."""
    dm = server.dm(server.user("Ana"))
    file = server.file(name, content, media_type)
    dm.send("", files=[file])
    kind = "image" if media_type.startswith("image/") else "document"
    return Attachment(kind, file.url, name, media_type, len(content))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content", "media_type"),
    [
        ("a.png", PNG, "image/png"),
        ("a.gif", b"GIF89a...", "image/gif"),
        ("a.jpg", b"\xff\xd8\xff...", "image/jpeg"),
        ("a.webp", b"RIFF....WEBP", "image/webp"),
        ("a.txt", "é\n".encode(), "text/plain"),
        ("a.html", b"<!DOCTYPE html><p>mine</p>", "text/html"),
        ("a.json", b"{}", "application/json"),
    ],
)
async def test_a_file_is_fetched_with_the_token(
    server: SlackServer, channel: SlackChannel, name: str, content: bytes, media_type: str
) -> None:
    assert await channel.fetch(attached(server, name, content, media_type)) == content


async def refused(channel: SlackChannel, attachment: Attachment) -> FileRefused:
    with pytest.raises(FileRefused) as caught:
        await channel.fetch(attachment)
    return caught.value


@pytest.mark.parametrize("media_type", ["image/png", "text/plain", "text/html"])
async def test_a_login_page_is_no_file_and_means_a_missing_scope(
    server: SlackServer, channel: SlackChannel, media_type: str
) -> None:
    attachment = attached(server, "a", PNG, media_type)
    server.scopes.remove("files:read")
    assert (await refused(channel, attachment)).reason == "no_scope"


@pytest.mark.parametrize(
    ("name", "content", "media_type", "limit"),
    [
        ("a.txt", b"x" * 1_000_001, "text/plain", "1 MB"),
        ("a.png", PNG + b"x" * 20_000_000, "image/png", "20 MB"),
    ],
)
async def test_a_file_that_is_too_large_is_refused_whatever_slack_said(
    server: SlackServer,
    channel: SlackChannel,
    name: str,
    content: bytes,
    media_type: str,
    limit: str,
) -> None:
    attachment = attached(server, name, content, media_type)
    error = await refused(channel, attachment)
    assert (error.reason, error.limit) == ("too_large", limit)
    assert server.calls_to("files.download") == []
    error = await refused(channel, replace(attachment, size_bytes=10))
    assert (error.reason, error.limit) == ("too_large", limit)
    assert len(server.calls_to("files.download")) == 1


async def test_what_is_no_picture_is_told_so(server: SlackServer, channel: SlackChannel) -> None:
    attachment = attached(server, "a.png", b"not one", "image/png")
    assert (await refused(channel, attachment)).reason == "no_picture"


@pytest.mark.parametrize("fault", [{"drop": True}, {"html": True, "status": 503}])
async def test_a_passing_trouble_is_got_over(
    server: SlackServer, channel: SlackChannel, fault: dict[str, object]
) -> None:
    attachment = attached(server, "a.txt", b"x")
    server.fail_next("files.download", count=2, **fault)  # type: ignore[arg-type]
    assert await channel.fetch(attachment) == b"x"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"drop": True}, "unavailable"),
        ({"html": True, "status": 503}, "unavailable"),
        ({"html": True, "status": 429}, "unavailable"),
        ({"html": True, "status": 403}, "no_scope"),
        ({"html": True, "status": 404}, "gone"),
        ({"html": True, "status": 410}, "gone"),
    ],
)
async def test_trouble_at_slack_has_a_reason(
    server: SlackServer, channel: SlackChannel, fault: dict[str, object], reason: str
) -> None:
    attachment = attached(server, "a.txt", b"x")
    server.fail_next("files.download", count=9, **fault)  # type: ignore[arg-type]
    error = await refused(channel, attachment)
    assert error.reason == reason
    assert server.bot_token not in str(error)
    assert attachment.ref not in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/a",
        "https://slack.com.evil.example/a",
        "file:///etc/passwd",
        "?",
        "http://[x",
    ],
)
async def test_nothing_is_fetched_from_elsewhere(channel: SlackChannel, url: str) -> None:
    attachment = Attachment("document", url, "a", "text/plain", 1)
    assert (await refused(channel, attachment)).reason == "gone"


@dataclass
class Elsewhere:
    """Another web server, and what it was asked with."""

    url: str = ""
    authorized: list[str | None] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.authorized.append(request.headers.get("Authorization"))
        return web.Response(body=PNG, content_type="image/png")


@pytest.fixture
async def elsewhere() -> AsyncIterator[Elsewhere]:
    here = Elsewhere()
    app = web.Application()
    app.router.add_get("/{path:.*}", here.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    here.url = f"http://127.0.0.1:{runner.addresses[0][1]}/x"
    yield here
    await runner.cleanup()


async def test_a_redirect_to_another_place_takes_no_token_along(
    channel: SlackChannel, server: SlackServer, elsewhere: Elsewhere
) -> None:
    """Slack's own place is simulated by a base_url on a server that redirects."""
    redirected: list[str | None] = []

    async def redirect(request: web.Request) -> web.Response:
        redirected.append(request.headers.get("Authorization"))
        raise web.HTTPFound(elsewhere.url if "away" in request.path else "/api/../file")

    app = web.Application()
    app.router.add_get("/{path:.*}", redirect)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    settings = channel._settings.model_copy(update={"base_url": f"{origin}/api/"})
    own = SlackChannel(settings)
    image = Attachment("image", f"{origin}/away", "a.png", "image/png", len(PNG))
    # Not https: not followed at all.
    assert (await refused(own, image)).reason == "no_scope"
    assert elsewhere.authorized == []
    # For ever in a circle.
    assert (await refused(own, replace(image, ref=f"{origin}/circle"))).reason == "no_scope"
    assert set(redirected) == {f"Bearer {server.bot_token}"}
    assert len(redirected) == 5
    await own.aclose()
    await runner.cleanup()
