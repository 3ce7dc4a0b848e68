"""What Slack's refusals mean: the one place that knows its error codes.

Our texts hold codes and the kind of a network error, never what the SDK says about a request: that
may hold a token, a ticket or a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, cast

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from channels.errors import (
    ChannelError,
    ChannelFailed,
    ChannelUnavailable,
    ReplyRefused,
    Uncertain,
    Unreachable,
)

FAILURES = (SlackClientError, aiohttp.ClientError, TimeoutError)
"""Everything that a request through the SDK raises."""

Failure = SlackClientError | aiohttp.ClientError | TimeoutError


class MessageGone(ReplyRefused):
    """The message cannot be edited (any more)."""


class Meaning(Enum):
    """The reaction that a failed request wants."""

    NOT_SENT = auto()  # it never left, or Slack did nothing: try again
    UNCERTAIN = auto()  # it may have taken effect
    RATE_LIMITED = auto()  # wait
    TOKEN = auto()  # the token is refused
    SCOPE = auto()  # the token lacks a scope
    UNREACHABLE = auto()  # removed from there, archived, gone
    MESSAGE_GONE = auto()
    REFUSED = auto()  # anything else that is wrong with the request


# docs.slack.dev/reference/methods: the errors of chat.*, auth.test and apps.connections.open.
_CODES: Mapping[Meaning, frozenset[str]] = {
    Meaning.NOT_SENT: frozenset({"service_unavailable", "request_timeout", "team_added_to_org"}),
    Meaning.UNCERTAIN: frozenset({"internal_error", "fatal_error"}),
    Meaning.RATE_LIMITED: frozenset({"ratelimited", "rate_limited"}),
    Meaning.TOKEN: frozenset(
        {
            *("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"),
            *("not_allowed_token_type", "no_permission", "org_login_required", "access_denied"),
            *("two_factor_setup_required", "ekm_access_denied", "forbidden_team"),
        }
    ),
    Meaning.SCOPE: frozenset({"missing_scope"}),
    Meaning.UNREACHABLE: frozenset(
        {
            *("channel_not_found", "is_archived", "not_in_channel", "user_not_in_channel"),
            *("thread_not_found", "invalid_thread_ts", "messages_tab_disabled", "cannot_dm_bot"),
            *("user_disabled", "user_not_found", "team_not_found", "team_access_not_granted"),
            *("restricted_action", "restricted_action_read_only_channel", "channel_is_archived"),
            *("restricted_action_thread_locked", "restricted_action_thread_only_channel"),
            *("restricted_action_non_threadable_channel", "cannot_reply_to_message"),
        }
    ),
    Meaning.MESSAGE_GONE: frozenset(
        {"message_not_found", "cant_update_message", "cant_delete_message", "edit_window_closed"}
    ),
}
_MEANINGS = {code: meaning for meaning, codes in _CODES.items() for code in codes}

_NOTHING_LEFT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
)
_HTTP_TOO_MANY = 429
_HTTP_TOO_LARGE = 413
_DEFAULT_WAIT_S = 1.0


def code_of(error: Failure) -> str:
    """Slack's error code, else the HTTP status, else the kind of the error."""
    response = _response(error)
    if response is None:
        return type(error).__name__
    code = data_of(response).get("error")
    return str(code) if code else f"HTTP {_status(response)}"


def meaning_of(error: Failure) -> Meaning:
    """What a failed request wants from us."""
    response, status = _response(error), _http_status(error)
    if status == _HTTP_TOO_MANY:
        return Meaning.RATE_LIMITED
    code = None if response is None else data_of(response).get("error")
    if code:
        return _MEANINGS.get(str(code), Meaning.REFUSED)
    if status == _HTTP_TOO_LARGE:
        return Meaning.REFUSED
    # With these it is a page of something in front of Slack, which did not let the request through.
    passed_on = status is None or not 300 <= status < 500
    if not passed_on or isinstance(error, _NOTHING_LEFT):
        return Meaning.NOT_SENT
    return Meaning.UNCERTAIN


def wait_asked_for(error: Failure) -> float:
    """The seconds that a rate limit asks for (`Retry-After`), 1 when it does not say."""
    response = _response(error)
    asked = None if response is None else headers_of(response).get("Retry-After")
    try:
        return max(0.0, float(asked or _DEFAULT_WAIT_S))
    except ValueError:
        return _DEFAULT_WAIT_S


def needed_scope(error: Failure) -> str:
    """The scope that Slack says is missing, or `?`."""
    response = _response(error)
    needed = None if response is None else data_of(response).get("needed")
    return str(needed or "?")


def listening_failed(error: Failure, key: str) -> ChannelError:
    """Why the bot cannot receive; `key` names the token in the configuration."""
    match meaning_of(error):
        case Meaning.TOKEN:
            return ChannelFailed(f"channels.slack.{key}: Slack refuses it ({code_of(error)})")
        case Meaning.SCOPE:
            scope = needed_scope(error)
            return ChannelFailed(f"channels.slack.{key}: the app lacks the scope {scope}")
        case Meaning.RATE_LIMITED:
            return ChannelUnavailable("Slack asks to wait", wait_asked_for(error))
        case _:
            return ChannelUnavailable(f"Slack cannot be reached ({code_of(error)})")


def delivery_failed(error: Failure) -> ChannelError:
    """Why a reply was not delivered."""
    code = code_of(error)
    match meaning_of(error):
        case Meaning.UNREACHABLE | Meaning.TOKEN:
            return Unreachable(f"Slack: {code}", removed=code == "not_in_channel")
        case Meaning.SCOPE:
            return ReplyRefused(f"Slack: the app lacks the scope {needed_scope(error)}")
        case Meaning.MESSAGE_GONE:
            return MessageGone(f"Slack: {code}")
        case Meaning.REFUSED:
            return ReplyRefused(f"Slack: {code}")
        case Meaning.RATE_LIMITED:
            return ChannelUnavailable("Slack asks to wait", wait_asked_for(error))
        case Meaning.UNCERTAIN:
            return Uncertain(f"no clear answer from Slack ({code})")
        case _:
            return ChannelUnavailable(f"Slack cannot be reached ({code})")


def is_outside(error: Failure) -> bool:
    """Whether Slack refuses because the bot is not in that channel. conversations.leave says so in a
    field of its own, without an error code."""
    response = _response(error)
    told = response is not None and data_of(response).get("not_in_channel") is True
    return told or code_of(error) in ("channel_not_found", "not_in_channel")


def _response(error: Failure) -> AsyncSlackResponse | None:
    """Slack's answer. The SDK also raises `SlackApiError` with an aiohttp response for a body that
    is no JSON: that is no clear answer."""
    if not isinstance(error, SlackApiError):
        return None
    response: object = error.response  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return response if isinstance(response, AsyncSlackResponse) else None


def _http_status(error: Failure) -> int | None:
    """The status of the answer, whatever its body is; None without an answer."""
    if not isinstance(error, SlackApiError):
        return None
    response: object = error.response  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(response, AsyncSlackResponse):
        return _status(response)
    return response.status if isinstance(response, aiohttp.ClientResponse) else None


def data_of(response: AsyncSlackResponse) -> dict[str, Any]:
    """The body of an answer; nothing where it is no JSON object."""
    data = cast("object", response.data)  # pyright: ignore[reportUnknownMemberType]
    return cast("dict[str, Any]", data) if isinstance(data, dict) else {}


def headers_of(response: AsyncSlackResponse) -> Mapping[str, str]:
    """The headers of an answer."""
    return cast("Mapping[str, str]", response.headers)  # pyright: ignore[reportUnknownMemberType]


def _status(response: AsyncSlackResponse) -> int:
    return response.status_code  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
