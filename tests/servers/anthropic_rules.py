"""What Anthropic's Messages API refuses, in its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.llm import Json, Refused, Thinking


@dataclass
class Rules:
    """What a test may set."""

    window: int = 200_000
    issued: set[str] = field(default_factory=set)

    def count(self, body: Json) -> int:
        return len(str(body.get("messages"))) // 4

    def sign(self, part: Thinking) -> str:
        signature = part.redacted or part.signature or f"sig{len(self.issued):08d}="
        self.issued.add(signature)
        return signature


def check_headers(headers: Mapping[str, str], api_key: str) -> None:
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    if headers.get("x-api-key", bearer) != api_key:
        raise Refused("invalid x-api-key", status=401, type="authentication_error")


def check_request(body: dict[str, Any], rules: Rules) -> None:
    del body, rules
