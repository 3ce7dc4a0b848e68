"""What OpenAI's Chat Completions API refuses, in its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.servers.llm import Json, Refused


@dataclass
class Rules:
    """What a test may set."""

    window: int = 128_000
    models: tuple[str, ...] = ("gpt-local",)

    def count(self, body: Json) -> int:
        return len(str(body.get("messages"))) // 4

    def new_id(self, number: int) -> str:
        return f"call_{number:024d}"


def check_headers(headers: Mapping[str, str], api_key: str) -> None:
    if headers.get("authorization") != f"Bearer {api_key}":
        raise Refused("Incorrect API key provided", status=401, code="invalid_api_key")


def check_request(body: Json, rules: Rules) -> None:
    del body, rules
