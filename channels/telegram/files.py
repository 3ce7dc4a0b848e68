"""Fetching what people attached."""

from __future__ import annotations

import asyncio
from typing import Final

from telegram import File
from telegram.error import InvalidToken, TelegramError

from channels.base import Attachment
from channels.errors import FileRefused
from channels.media import MAX_TEXT_BYTES, image_type
from channels.telegram.api import Bot
from channels.telegram.errors import Meaning, meaning_of, name_of, wait_asked_for
from channels.telegram.media import MAX_IMAGE_BYTES

# Waits in seconds between attempts. Fetching a file changes nothing, so it may be repeated.
_AGAIN_S: Final = (0.5, 2.0)
_PASSING = (Meaning.NOT_SENT, Meaning.UNCERTAIN, Meaning.FLOOD)
_LONGEST_WAIT_S: Final = 30.0  # that Telegram may ask for: somebody waits for the answer


async def fetch(bot: Bot, attachment: Attachment) -> bytes:
    """The file: an image up to 20 MB, checked to be one, or a text up to 1 MB. Raises
    `FileRefused`."""
    most = MAX_IMAGE_BYTES if attachment.kind == "image" else MAX_TEXT_BYTES
    _check_size(attachment.size_bytes, most)
    data = await _insist(bot, attachment.ref, most)
    _check_size(len(data), most)
    if attachment.kind == "image" and image_type(data) is None:
        raise FileRefused("no_picture", "neither PNG, JPEG, GIF nor WebP")
    return data


async def _insist(bot: Bot, file_id: str, most: int) -> bytes:
    for wait_s in _AGAIN_S:
        try:
            return await _download(bot, file_id, most)
        except TelegramError as error:
            meaning = meaning_of(error)
            asked_s = wait_asked_for(error) if meaning is Meaning.FLOOD else 0.0
            if meaning not in _PASSING or asked_s > _LONGEST_WAIT_S:
                raise _refused(error) from None
        await asyncio.sleep(max(wait_s, asked_s))
    try:
        return await _download(bot, file_id, most)
    except TelegramError as error:
        raise _refused(error) from None


async def _download(bot: Bot, file_id: str, most: int) -> bytes:
    file: File = await bot.get_file(file_id)
    _check_size(file.file_size, most)
    if not file.file_path:
        raise FileRefused("gone", "Telegram names no place to have it from")
    try:
        return bytes(await file.download_as_bytearray())
    except InvalidToken:  # PTB's word for a 404
        raise FileRefused("gone", "Telegram does not have it any more") from None


def _refused(error: TelegramError) -> FileRefused:
    match meaning_of(error):
        case Meaning.TOO_BIG:
            return FileRefused("too_large", error.message, limit=_words(MAX_IMAGE_BYTES))
        case Meaning.REFUSED:
            return FileRefused("gone", error.message)
        case _:
            return FileRefused("unavailable", name_of(error))


def _check_size(size: int | None, most: int) -> None:
    if size is not None and size > most:
        raise FileRefused("too_large", f"{size:,} bytes", limit=_words(most))


def _words(most: int) -> str:
    return f"{most // 1_000_000} MB"
