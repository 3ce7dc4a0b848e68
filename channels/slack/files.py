"""Fetching what people attached.

Slack answers a download without the token, or without the scope, with 200 and its login page. The
token goes to Slack alone, also when a download is redirected.
"""

from __future__ import annotations

from typing import Final

import aiohttp
from yarl import URL

from channels.base import Attachment
from channels.errors import ChannelUnavailable, ReplyRefused
from channels.media import MAX_TEXT_BYTES, image_type
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES
from channels.slack.media import MAX_IMAGE_BYTES

_REDIRECTS = 3
_CHUNK_BYTES = 64 * 1024
_OK = 200
_REDIRECTED: Final = range(300, 400)
_BUSY: Final = frozenset({429, *range(500, 600)})
_HTML = "text/html"
_NOT_HANDED_OUT = (
    "Slack does not hand it out. The app needs the scope files:read, and has to be installed again "
    "after that was added"
)


async def fetch(api: SlackApi, attachment: Attachment) -> bytes:
    """The file. Raises `ChannelUnavailable`; `ReplyRefused` when it is too large, gone, or a scope
    is missing."""
    most = MAX_IMAGE_BYTES if attachment.kind == "image" else MAX_TEXT_BYTES
    url = _address(attachment.ref)
    if url is None or not _is_slack(url, api):
        raise ReplyRefused("it is not held by Slack")
    try:
        data, media_type = await _download(api, url, most)
    except FAILURES as error:
        raise ChannelUnavailable(f"Slack cannot be reached ({type(error).__name__})") from None
    if _is_something_else(attachment, data, media_type):
        raise ReplyRefused(_NOT_HANDED_OUT)
    return data


async def _download(api: SlackApi, url: URL, most: int) -> tuple[bytes, str]:
    for _ in range(_REDIRECTS + 1):
        headers = {"Authorization": f"Bearer {api.client.token}"} if _is_slack(url, api) else {}
        async with api.session.get(
            url, headers=headers, proxy=api.proxy, allow_redirects=False
        ) as answer:
            location = answer.headers.get("Location")
            if answer.status in _REDIRECTED and location is not None:
                target = _address(location)
                if target is None:
                    break
                url = url.join(target)
                if url.scheme != "https" and not _is_slack(url, api):
                    break
                continue
            if answer.status in _BUSY:
                raise ChannelUnavailable(f"Slack cannot be reached (HTTP {answer.status})")
            if answer.status != _OK:
                raise ReplyRefused(f"Slack does not hand it out (HTTP {answer.status})")
            return await _read(answer, most), answer.content_type
    raise ReplyRefused(_NOT_HANDED_OUT)


async def _read(answer: aiohttp.ClientResponse, most: int) -> bytes:
    data = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
        data += chunk
        if len(data) > most:
            raise ReplyRefused(f"it has more than {most:,} bytes")
    return bytes(data)


def _address(text: str) -> URL | None:
    try:
        return URL(text)
    except ValueError:
        return None


def _is_slack(url: URL, api: SlackApi) -> bool:
    """Whether the token may go there."""
    host = url.host
    if not host:
        return False
    if url.scheme == "https" and (host == "slack.com" or host.endswith(".slack.com")):
        return True
    return url.origin() == URL(api.base_url).origin()


def _is_something_else(attachment: Attachment, data: bytes, media_type: str) -> bool:
    """Whether this is the login page, not the file: by the first bytes of an image, for a page of
    HTML by its length."""
    if attachment.kind == "image":
        return image_type(data) is None
    if media_type != _HTML:
        return False
    return attachment.media_type != _HTML or attachment.size_bytes != len(data)
