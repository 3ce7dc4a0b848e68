"""The strict servers' rules as judges of a rendered request, without sockets: every API and dialect
that we speak gets every request of a conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agent.history import violations
from agent.messages import Message, ThinkingBlock
from agent.provider import ModelRequest, ModelTraits
from agent.providers import anthropic_body, openai_body
from agent.providers.openai_body import Dialect
from tests.servers import anthropic_rules, openai_rules
from tests.servers.llm_script import Thinking

VERSION = "2023-06-01"
ALL, BLIND = ModelTraits(), ModelTraits(images=False)
Check = Callable[[dict[str, Any]], None]


@dataclass
class Judge:
    """One model of one server: how it is spoken to, and what it refuses (by raising `Refused`)."""

    name: str
    render: Callable[[ModelRequest, str], dict[str, Any]]
    check: Check
    traits: ModelTraits = ALL
    seals: anthropic_rules.Seals | None = None
    seen: dict[str, Any] = field(default_factory=dict[str, Any])  # the newest request

    @property
    def model(self) -> str:
        """What thinking of this model is marked with."""
        return f"{self.name}/model"

    def take(self, request: ModelRequest) -> None:
        """Judge a request as it would go to this model."""
        mine = replace(request, traits=self.traits)
        body = on_the_wire(self.render(mine, self.model))
        body["stream"] = True
        self.check(body)
        self.seen = body

    def think(self, text: str, *, withheld: bool = False) -> ThinkingBlock:
        """A thinking block in answer to the newest request, sealed where this API seals."""
        if self.seals is None:
            return ThinkingBlock(text, self.model)
        if withheld:
            opaque = f"opaque {len(self.seals.issued)}"  # each block's data is its own
            seal = self.seals.sign(Thinking((), None, opaque), self.seen, None)
            return ThinkingBlock("", self.model, redacted=seal)
        seal = self.seals.sign(Thinking((text,)), self.seen, None)
        return ThinkingBlock(text, self.model, signature=seal)


def on_the_wire(body: dict[str, Any]) -> dict[str, Any]:
    """As the server reads it; raises when it is not valid JSON in UTF-8."""
    text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    read: dict[str, Any] = json.loads(text.encode())
    return read


def _anthropic(name: str, traits: ModelTraits = ALL) -> Judge:
    rules = anthropic_rules.Rules(window=10**9, refuse_sum_over_window=False)

    def check(body: dict[str, Any]) -> None:
        size = len(json.dumps(body))
        anthropic_rules.check_request(body, VERSION, size, rules)

    return Judge(name, anthropic_body.render, check, traits, rules.seals)


def _chat(
    name: str, rules: openai_rules.Rules, dialect: Dialect, traits: ModelTraits = ALL
) -> Judge:
    rules.window = 10**9

    def check(body: dict[str, Any]) -> None:
        openai_rules.check_request(body, rules)
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                json.loads(call["function"]["arguments"], parse_constant=pytest.fail)

    def render(request: ModelRequest, model: str) -> dict[str, Any]:
        return openai_body.render(request, model, dialect)

    return Judge(name, render, check, traits)


def judges() -> list[Judge]:
    """Fresh ones, with no seal issued yet."""
    none, required = Dialect(reasoning="none"), Dialect(reasoning="required")
    mistral = Dialect(reasoning="none", short_ids=True, user_after_tool=False)
    old = Dialect(completion_tokens=False, stream_options=False, reasoning="none")
    return [
        _anthropic("anthropic"),
        _anthropic("without-tools", ModelTraits(images=False, tools=False)),
        _chat("deepseek", openai_rules.deepseek(), required, BLIND),
        _chat("mistral", openai_rules.mistral(), mistral),
        _chat("old", openai_rules.only_max_tokens(), old, ModelTraits(True, False, False)),
        # OpenAI's rules, and those of servers that want user and assistant in turn.
        _chat("openai", openai_rules.alternating(), none),
    ]


def judged(bench: list[Judge], request: ModelRequest) -> None:
    """By all of them; raises `Refused`, or fails for a history that `repair` did not mend."""
    assert violations(request.messages) == []
    for judge in bench:
        judge.take(request)


def said_by(messages: list[Message] | tuple[Message, ...], role: str) -> str:
    """All that one side said."""
    return "\n".join(message.text for message in messages if message.role == role)
