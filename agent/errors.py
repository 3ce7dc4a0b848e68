"""What can go wrong in the agent core.

AgentError
 ├── ProviderError       a model call failed; `refusal` says how
 ├── ProviderDown        a provider fails for everybody; asked again at a time that it says
 ├── LimitReached        a cap was met before a model call; `limit` names it
 └── ToolError           a tool failed in a way that the model should read

Cancelling is `asyncio.CancelledError` and never one of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class RefusalKind(StrEnum):
    """The reaction that a failed model call wants, whatever the provider's words were."""

    OVERFLOW = "overflow"  # the input is longer than the window: trim and retry
    OUTPUT_CAP = "output_cap"  # too many output tokens were asked for: lower max_output_tokens
    RATE_LIMIT = "rate_limit"  # back off
    REQUEST_TOO_LARGE = "request_too_large"  # larger than the per-minute quota: waiting never helps
    QUOTA = "quota"  # credit or billing
    FORMAT = "format"  # the history or the request breaks a rule of form
    AUTH = "auth"  # key, permission, unknown model
    TRANSIENT = "transient"  # try again: 5xx, a cut stream, silence
    CONTENT_FILTER = "content_filter"
    MEDIA = "media"  # an image or file that cannot be taken
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A provider's refusal, classified.

    `status` is the HTTP status or None (a cut stream, no connection). Tokens are as the provider
    stated them, None where it did not. `image`: the one that a refusal of media names; `most_images`:
    how many it allows. `detail` is for the log, with secrets and account ids removed; it never goes to
    a chat.
    """

    kind: RefusalKind
    status: int | None = None
    limit_tokens: int | None = None
    requested_tokens: int | None = None
    retry_after_s: float | None = None
    image: bytes | None = field(default=None, repr=False)
    most_images: int | None = None
    detail: str = ""


class AgentError(Exception):
    """The root of this tree."""


class ProviderError(AgentError):
    """A model call failed."""

    def __init__(self, provider: str, refusal: Refusal) -> None:
        super().__init__(f"{provider}: {refusal.kind} (HTTP {refusal.status}): {refusal.detail}")
        self.provider = provider
        self.refusal = refusal


class ProviderDown(AgentError):
    """A provider fails for everybody (key, credit, outage); nobody asks it before `until`."""

    def __init__(self, provider: str, kind: RefusalKind, until: datetime) -> None:
        super().__init__(f"{provider} is down ({kind}) until {until:%H:%M:%S}")
        self.provider = provider
        self.kind = kind
        self.until = until


class LimitReached(AgentError):
    """A cap forbids the next model call.

    `limit` is the key of the cap (`steps`, `cost_per_month_usd`); `values` fill the sentence that
    the chat is shown.
    """

    def __init__(self, limit: str, /, **values: str) -> None:
        super().__init__(f"limit reached: {limit}")
        self.limit = limit
        self.values = values


class ToolError(AgentError):
    """A tool could not do its work; the text is written for the model and holds no secrets."""
