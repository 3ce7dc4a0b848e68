"""What can go wrong on a chat platform, typed by the reaction wanted.

ChannelError
 ├── ChannelUnavailable   the platform cannot be reached or is busy: try again
 ├── ChannelFailed        trying again is useless (a token is refused): give up and say why
 ├── FileRefused          an attached file cannot be had; `reason` says why
 ├── NotStored            raised by `receive`: nothing can be stored now, so it has to come again
 ├── FormRefused          raised by `receive`: a form has faults; it is shown again with them
 └── DeliveryError        one reply could not be delivered
      ├── Unreachable     blocked, kicked, chat gone: no retries until its next message
      ├── ReplyRefused    the platform refused it also as plain text
      └── Uncertain       it may have arrived: never sent again blindly

Texts name the configuration key at fault and never hold a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal


class ChannelError(Exception):
    """The root of this tree."""


class ChannelUnavailable(ChannelError):
    """Try again. `retry_after_s` is the wait in seconds that the platform asked for, or None."""

    def __init__(self, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class ChannelFailed(ChannelError):
    """Give up; the text is one line for the operator that names the configuration key."""


FileReason = Literal[
    "too_large",
    "too_many_pixels",
    "gone",
    "no_picture",
    "broken_picture",
    "no_text",
    "no_scope",
    "unavailable",
    "disk_full",
]


class FileRefused(ChannelError):
    """An attached file cannot be had. `reason` names the sentence that its sender is told, `limit`
    is the largest size in words, where it was too large, or the most megapixels; the text is for
    the log."""

    def __init__(self, reason: FileReason, detail: str = "", *, limit: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.limit = limit


class NotStored(ChannelError):
    """A message could not be stored, and may be later. A channel waits for that with all that comes
    after it; every other error of `receive` is the fault of this message, or of ours."""


class FormRefused(ChannelError):
    """What is wrong in a form, by its fields' names; nothing of it was stored."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(f"{len(faults)} fields of a form are wrong")
        self.faults = faults


class DeliveryError(ChannelError):
    """A reply could not be delivered."""


class Unreachable(DeliveryError):
    """The bot was blocked or removed, or the chat is gone. `removed`: the platform says that the bot
    has no place there any more, and not only that it may not write."""

    def __init__(self, reason: str, *, removed: bool = False) -> None:
        super().__init__(reason)
        self.removed = removed


class ReplyRefused(DeliveryError):
    """The platform refused the reply, also as plain text."""


class Uncertain(DeliveryError):
    """The connection ended after the request was sent: the reply may have arrived."""
