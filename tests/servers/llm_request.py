"""What an LLM server keeps of a request, and its refusal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.llm_script import Json


class Refused(Exception):
    """A request breaks a rule of the API. `type`, `param` and `code` are the API's own words."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.param = param
        self.code = code


def missing(where: str) -> Refused:
    """A required field is absent."""
    return Refused(f"{where}: Field required")


@dataclass
class LlmRequest:
    """A request as it came in, and what became of it. Times are of `time.monotonic`, which
    processes of one machine share."""

    id: str
    path: str
    headers: Mapping[str, str]
    body: Json
    size: int = 0
    arrived: float = field(default_factory=time.monotonic)
    first_chunk_at: float | None = None
    status: int | None = None
    refusal: str | None = None
    content_chunks: int = 0
    disconnected: bool = False
    finished: bool = False

    @property
    def messages(self) -> list[Json]:
        """The conversation that was sent."""
        messages: list[Json] = self.body.get("messages") or []
        return messages

    @property
    def last_user_text(self) -> str:
        """The text of the newest message of role user; empty when there is none."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return flat_text(message.get("content"))
        return ""


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers with lower-case names."""
    return {name.lower(): value for name, value in headers.items()}


def flat_text(content: Any) -> str:
    """The text in a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
