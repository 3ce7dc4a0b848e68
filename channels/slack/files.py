"""Fetching what people attached.

Slack answers a download without the token, or without the scope, with 200 and its login page. The
token goes to Slack alone, also when a download is redirected.
"""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp
from yarl import URL

from channels.base import Attachment
from channels.errors import FileRefused
from channels.media import MAX_TEXT_BYTES, image_type
from channels.slack.api import SlackApi
from channels.slack.errors import FAILURES
from channels.slack.media import MAX_IMAGE_BYTES

_REDIRECTS = 3
_CHUNK_BYTES = 64 * 1024
_OK = 200
_REDIRECTED: Final = range(300, 400)
_FORBIDDEN: Final = frozenset({401, 403})
_BUSY: Final = frozenset({429, *range(500, 600)})
_HTML = "text/html"


class _Busy(Exception):
    """Slack has no answer right now."""


async def fetch(api: SlackApi, attachment: Attachment, repeats_s: tuple[float, ...]) -> bytes:
    """An image up to 20 MB, checked to be one, or a text up to 1 MB; `repeats_s` are the pauses
    before a download is tried again. Raises `FileRefused`."""
    most = MAX_IMAGE_BYTES if attachment.kind == "image" else MAX_TEXT_BYTES
    _check_size(attachment.size_bytes or 0, most)
    url = _address(attachment.ref)
    if url is None or not _is_slack(url, api):
        raise FileRefused("gone", "it is not held by Slack")
    data, media_type = await _insist(api, url, most, repeats_s)
    if _is_login_page(attachment, data, media_type):
        raise FileRefused("no_scope", "a page of HTML instead of it")
    if attachment.kind == "image" and image_type(data) is None:
        raise FileRefused("no_picture", "neither PNG, JPEG, GIF nor WebP")
    return data


async def _insist(
    api: SlackApi, url: URL, most: int, repeats_s: tuple[float, ...]
) -> tuple[bytes, str]:
    """Fetching changes nothing, so it may be repeated."""
    for pause_s in repeats_s:
        try:
            return await _download(api, url, most)
        except (*FAILURES, _Busy):
            await asyncio.sleep(pause_s)
    try:
        return await _download(api, url, most)
    except (*FAILURES, _Busy) as error:
        # What aiohttp says may hold the address.
        detail = str(error) if isinstance(error, _Busy) else type(error).__name__
        raise FileRefused("unavailable", detail) from None


async def _download(api: SlackApi, url: URL, most: int) -> tuple[bytes, str]:
    for _ in range(_REDIRECTS + 1):
        headers = {"Authorization": f"Bearer {api.client.token}"} if _is_slack(url, api) else {}
        async with api.session.get(
            url, headers=headers, proxy=api.proxy, allow_redirects=False
        ) as answer:
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTED or location is None:
                _check_status(answer.status)
                return await _read(answer, most), answer.content_type
        target = _address(location)
        if target is None:
            break
        url = url.join(target)
        if url.scheme != "https" and not _is_slack(url, api):
            break
    raise FileRefused("no_scope", "redirected to where no file can be")


def _check_status(status: int) -> None:
    if status in _BUSY:
        raise _Busy(f"HTTP {status}")
    if status in _FORBIDDEN:
        raise FileRefused("no_scope", f"HTTP {status}")
    if status != _OK:
        raise FileRefused("gone", f"HTTP {status}")


async def _read(answer: aiohttp.ClientResponse, most: int) -> bytes:
    data = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
        data += chunk
        _check_size(len(data), most)
    return bytes(data)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise FileRefused("too_large", f"{size:,} bytes", limit=f"{most // 1_000_000} MB")


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


def _is_login_page(attachment: Attachment, data: bytes, media_type: str) -> bool:
    """Whether this is Slack's page, not the file: of a page of HTML, by its length."""
    if media_type != _HTML or (attachment.kind == "image" and image_type(data) is not None):
        return False
    return attachment.media_type != _HTML or attachment.size_bytes != len(data)
