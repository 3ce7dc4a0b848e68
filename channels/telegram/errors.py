"""What Telegram's refusals mean: the one place that reads their wording.

Our texts never repeat what PTB or aiohttp say about a connection or a token: those may hold the
token, which is part of every URL of the Bot API. Telegram's own descriptions of a refused request
hold none.
"""

from __future__ import annotations

import re
from datetime import timedelta
from enum import Enum, auto

from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)

from channels.errors import (
    ChannelError,
    ChannelFailed,
    ChannelUnavailable,
    ReplyRefused,
    Uncertain,
    Unreachable,
)
from channels.telegram.request import NOTHING_LEFT, TurnedAway


class Meaning(Enum):
    """The reaction that a failed request wants."""

    NOT_SENT = auto()  # it never left, or did not get to the Bot API: try again
    UNCERTAIN = auto()  # it may have taken effect
    FLOOD = auto()  # too many: wait
    NOT_MODIFIED = auto()  # the message looks like that already: success
    MESSAGE_GONE = auto()  # there is no such message (any more), or it cannot be deleted
    NOT_EDITABLE = auto()  # the message stands there, and cannot be edited
    THREAD_GONE = auto()  # no such topic
    EMPTY = auto()  # nothing visible in it
    TOO_BIG = auto()  # a file is larger than bots may have or send
    MIGRATED = auto()  # the group has a new id
    UNREACHABLE = auto()  # blocked, kicked, gone
    REFUSED = auto()  # anything else that is wrong with the request
    TOKEN = auto()  # the token is not known
    CONFLICT = auto()  # someone else polls
    WEBHOOK = auto()  # a webhook is set


# Wordings of the Bot API (tdlib/telegram-bot-api, tdlib/td), in lower case.
_WORDINGS: tuple[tuple[Meaning, tuple[str, ...]], ...] = (
    (Meaning.NOT_MODIFIED, ("message is not modified", "message_not_modified")),
    (
        Meaning.MESSAGE_GONE,
        (
            "message to edit not found",
            "message to delete not found",
            "message can't be deleted",
            "message_id_invalid",
        ),
    ),
    (Meaning.NOT_EDITABLE, ("message can't be edited",)),
    (
        Meaning.THREAD_GONE,
        ("message thread not found", "topic_deleted", "topic_id_invalid"),
    ),
    (Meaning.TOO_BIG, ("file is too big",)),
    (Meaning.EMPTY, ("text must be non-empty", "message text is empty", "text is empty")),
    (
        Meaning.UNREACHABLE,
        (
            "chat not found",
            "user not found",
            "user is deactivated",
            "group chat was deactivated",
            "peer_id_invalid",
            "not enough rights to send",
            "have no rights to send",
            "need administrator rights",
            "chat_write_forbidden",
            "chat_restricted",
            "topic_closed",
            "bot was kicked",
            "bot was blocked",
        ),
    ),
)
_TOO_LARGE = 413
_TOO_MANY = re.compile(r"too many requests(?:: retry after (\d+))?", re.IGNORECASE)


def meaning_of(error: TelegramError) -> Meaning:
    """What a failed request wants from us."""
    match error:
        case RetryAfter():
            return Meaning.FLOOD
        case ChatMigrated():
            return Meaning.MIGRATED
        case _ if _is_no_word_of_the_api(error):
            return Meaning.NOT_SENT
        case InvalidToken():  # a 401 or 404
            return Meaning.TOKEN
        case TurnedAway():
            return Meaning.TOO_BIG if error.status == _TOO_LARGE else Meaning.NOT_SENT
        case Conflict():
            return Meaning.WEBHOOK if "webhook" in error.message.lower() else Meaning.CONFLICT
        case Forbidden() | BadRequest():
            return _by_wording(error)
        case NetworkError() if isinstance(error.__cause__, NOTHING_LEFT):
            return Meaning.NOT_SENT
        case NetworkError() if _TOO_MANY.search(error.message):
            return Meaning.FLOOD
        case _:
            return Meaning.UNCERTAIN


def _is_no_word_of_the_api(error: TelegramError) -> bool:
    """Whether a refusal has a status of the Bot API's, and not its body (PTB makes that the cause). A
    proxy that forbids the way is no person who has blocked the bot."""
    of_the_api = isinstance(error, InvalidToken | Forbidden | BadRequest | Conflict)
    return of_the_api and error.__cause__ is not None


def _by_wording(error: TelegramError) -> Meaning:
    said = error.message.lower()
    for meaning, wordings in _WORDINGS:
        if any(wording in said for wording in wordings):
            return meaning
    return Meaning.UNREACHABLE if isinstance(error, Forbidden) else Meaning.REFUSED


def wait_asked_for(error: TelegramError) -> float:
    """The seconds that a refusal for flooding asks for."""
    if isinstance(error, RetryAfter):
        wait = error.retry_after
        return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)
    found = _TOO_MANY.search(error.message)
    return float(found.group(1) or 1) if found else 1.0


def listening_failed(error: TelegramError) -> ChannelError:
    """Why the bot cannot receive, for the supervisor and the operator."""
    match meaning_of(error):
        case Meaning.TOKEN:
            return ChannelFailed(
                "channels.telegram.token: Telegram does not know this token (if base_url is set, "
                "it may not point to a Bot API server)"
            )
        case Meaning.CONFLICT:
            return ChannelUnavailable(
                "another process receives messages with the token in channels.telegram.token: "
                "stop it, or use a token of its own"
            )
        case Meaning.WEBHOOK:
            return ChannelUnavailable(
                "a webhook is set for the bot of channels.telegram.token: remove it (deleteWebhook)"
            )
        case Meaning.FLOOD:
            return ChannelUnavailable("Telegram asks to wait", wait_asked_for(error))
        case Meaning.REFUSED:
            return ChannelUnavailable(f"Telegram refused to hand out messages: {error.message}")
        case _:
            return ChannelUnavailable(f"Telegram cannot be reached ({name_of(error)})")


def delivery_failed(error: TelegramError) -> ChannelError:
    """Why a reply was not delivered."""
    match meaning_of(error):
        case Meaning.UNREACHABLE | Meaning.THREAD_GONE | Meaning.MIGRATED:
            # 403 is about the bot's place in the chat; rights within it are a 400.
            return Unreachable(f"Telegram: {error.message}", removed=isinstance(error, Forbidden))
        case (
            Meaning.REFUSED
            | Meaning.EMPTY
            | Meaning.TOO_BIG
            | Meaning.MESSAGE_GONE
            | Meaning.NOT_EDITABLE
            | Meaning.NOT_MODIFIED
        ):
            return ReplyRefused(f"Telegram: {error.message}")
        case Meaning.FLOOD:
            return ChannelUnavailable("Telegram asks to wait", wait_asked_for(error))
        case Meaning.UNCERTAIN:
            return Uncertain(f"no clear answer from Telegram ({name_of(error)})")
        case _:
            return ChannelUnavailable(f"Telegram cannot be reached ({name_of(error)})")


def name_of(error: TelegramError) -> str:
    """The kind of error, without its text."""
    if isinstance(error, TurnedAway):
        return f"status {error.status} from something in front of it"
    if _is_no_word_of_the_api(error):
        return "what answers is no Bot API server: look at base_url and proxy, if they are set"
    return type(error.__cause__ or error).__name__
