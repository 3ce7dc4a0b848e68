"""What a failed request wants from us, where no server can bring it about."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from slack_sdk.errors import SlackApiError, SlackRequestError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from channels.errors import (
    ChannelError,
    ChannelFailed,
    ChannelUnavailable,
    ReplyRefused,
    Uncertain,
    Unreachable,
)
from channels.slack.errors import (
    Failure,
    Meaning,
    delivery_failed,
    listening_failed,
    meaning_of,
    wait_asked_for,
)

KEY = ConnectionKey("slack.com", 443, True, True, None, None, None)


def refusal(
    code: str | None, status: int = 200, headers: dict[str, str] | None = None
) -> SlackApiError:
    response = AsyncSlackResponse(
        client=AsyncWebClient("xoxb-1"),
        http_verb="POST",
        api_url="https://slack.com/api/x?token=xoxb-1",
        req_args={},
        data={"ok": False, "error": code} if code else {},
        headers=headers or {},
        status_code=status,
    )
    return SlackApiError("failed with xoxb-1", response)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (aiohttp.ClientConnectorError(KEY, OSError("refused")), Meaning.NOT_SENT),
        (aiohttp.ConnectionTimeoutError("connecting"), Meaning.NOT_SENT),
        (aiohttp.SocketTimeoutError("reading"), Meaning.UNCERTAIN),
        (TimeoutError(), Meaning.UNCERTAIN),
        (aiohttp.ServerDisconnectedError(), Meaning.UNCERTAIN),
        (aiohttp.ClientOSError(104, "reset"), Meaning.UNCERTAIN),
        (SlackRequestError("upload failed"), Meaning.UNCERTAIN),
        (SlackApiError("no JSON", {"not": "a response"}), Meaning.UNCERTAIN),
        (refusal(None, 502), Meaning.UNCERTAIN),
        (refusal("internal_error"), Meaning.UNCERTAIN),
        (refusal("service_unavailable"), Meaning.NOT_SENT),
        (refusal("ratelimited"), Meaning.RATE_LIMITED),
        (refusal(None, 429), Meaning.RATE_LIMITED),
        (refusal("a_code_of_tomorrow"), Meaning.REFUSED),
    ],
)
def test_a_failure_says_whether_it_may_have_arrived(error: Failure, meaning: Meaning) -> None:
    assert meaning_of(error) is meaning


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("invalid_auth", Unreachable),
        ("channel_not_found", Unreachable),
        ("message_not_found", ReplyRefused),
        ("missing_scope", ReplyRefused),
        ("no_text", ReplyRefused),
        ("fatal_error", Uncertain),
        ("ratelimited", ChannelUnavailable),
        ("service_unavailable", ChannelUnavailable),
    ],
)
def test_a_refused_delivery_has_a_kind_and_no_token(code: str, kind: type[ChannelError]) -> None:
    error = delivery_failed(refusal(code))
    assert isinstance(error, kind)
    assert "xoxb" not in str(error)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("token_revoked", ChannelFailed),
        ("missing_scope", ChannelFailed),
        (None, ChannelUnavailable),
    ],
)
def test_a_refused_connection_has_a_kind_and_no_token(
    code: str | None, kind: type[ChannelError]
) -> None:
    error = listening_failed(refusal(code, 500), "bot_token")
    assert isinstance(error, kind)
    assert "xoxb" not in str(error)


@pytest.mark.parametrize(("asked", "seconds"), [("7", 7), ("0.5", 0.5), ("", 1), ("soon", 1)])
def test_the_wait_is_what_slack_says(asked: str, seconds: float) -> None:
    assert wait_asked_for(refusal("ratelimited", 429, {"Retry-After": asked})) == seconds
    assert wait_asked_for(TimeoutError()) == 1
