"""Telegram's wordings, each with the reaction that it wants; no text of ours holds a token."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import Mock

import aiohttp
import pytest
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from channels.errors import ChannelFailed, ChannelUnavailable, Uncertain, Unreachable
from channels.telegram.errors import (
    Meaning,
    delivery_failed,
    listening_failed,
    meaning_of,
    wait_asked_for,
)

URL = "https://api.telegram.org/bot123456:SECRET/sendMessage"
NO_PROXY = aiohttp.ClientHttpProxyError(Mock(real_url=URL), (), status=502, message=URL)


def caused_by(cause: Exception, error: TelegramError | None = None) -> TelegramError:
    made = error or NetworkError(f"{type(cause).__name__}: {cause}")
    made.__cause__ = cause
    return made


@pytest.mark.parametrize(
    ("description", "meaning"),
    [
        ("message is not modified: specified new message content", Meaning.NOT_MODIFIED),
        ("message to edit not found", Meaning.MESSAGE_GONE),
        ("message can't be edited", Meaning.NOT_EDITABLE),
        ("MESSAGE_ID_INVALID", Meaning.MESSAGE_GONE),
        ("message thread not found", Meaning.THREAD_GONE),
        ("TOPIC_CLOSED", Meaning.UNREACHABLE),
        ("text must be non-empty", Meaning.EMPTY),
        ("message text is empty", Meaning.EMPTY),
        ("chat not found", Meaning.UNREACHABLE),
        ("not enough rights to send text messages to the chat", Meaning.UNREACHABLE),
        ("can't parse entities: Can't find end of the entity", Meaning.REFUSED),
        ("message is too long", Meaning.REFUSED),
        ("file is too big", Meaning.TOO_BIG),
    ],
)
def test_a_bad_request_is_told_by_its_words(description: str, meaning: Meaning) -> None:
    assert meaning_of(BadRequest(f"Bad Request: {description}")) is meaning


def test_connect_errors_never_left_and_read_errors_are_uncertain() -> None:
    for cause in (aiohttp.ConnectionTimeoutError(URL), NO_PROXY):
        assert meaning_of(caused_by(cause)) is Meaning.NOT_SENT
    for cause in (aiohttp.SocketTimeoutError(URL), aiohttp.ServerDisconnectedError(URL)):
        assert meaning_of(caused_by(cause, TimedOut())) is Meaning.UNCERTAIN
    assert meaning_of(NetworkError("Bad Gateway")) is Meaning.UNCERTAIN
    assert meaning_of(TelegramError("Invalid server response")) is Meaning.UNCERTAIN


def test_floods_tell_their_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setenv("PTB_TIMEDELTA", "true")
        flood = RetryAfter(timedelta(seconds=34))
        assert (meaning_of(flood), wait_asked_for(flood)) == (Meaning.FLOOD, 34.0)
    bare = NetworkError("Too Many Requests: retry after 5")
    assert (meaning_of(bare), wait_asked_for(bare)) == (Meaning.FLOOD, 5.0)


@pytest.mark.parametrize(
    "error",
    [
        InvalidToken("The token `123456:SECRET` was rejected by the server."),
        caused_by(NO_PROXY),
        caused_by(aiohttp.SocketTimeoutError(URL)),
        NetworkError(f"Unknown error in HTTP implementation: InvalidURL({URL!r})"),
        Conflict("Conflict: terminated by other getUpdates request"),
    ],
)
def test_no_text_of_ours_holds_the_token(error: TelegramError) -> None:
    for translate in (listening_failed, delivery_failed):
        ours = translate(error)
        assert "SECRET" not in f"{ours} {ours!r}"


def test_what_is_final_and_what_is_tried_again() -> None:
    assert isinstance(listening_failed(InvalidToken()), ChannelFailed)
    assert isinstance(listening_failed(Conflict("x")), ChannelUnavailable)
    assert isinstance(listening_failed(BadRequest("x")), ChannelUnavailable)
    blocked = delivery_failed(Forbidden("bot was blocked by the user"))
    assert isinstance(blocked, Unreachable)
    assert blocked.removed
    muted = delivery_failed(BadRequest("not enough rights to send text messages to the chat"))
    assert isinstance(muted, Unreachable)
    assert not muted.removed
    assert isinstance(delivery_failed(ChatMigrated(-1001)), Unreachable)
    assert isinstance(delivery_failed(TimedOut()), Uncertain)
    assert isinstance(delivery_failed(InvalidToken()), ChannelUnavailable)
