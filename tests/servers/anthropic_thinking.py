"""Thinking blocks: the signatures that the server issued, and what may be sent back.

From platform.claude.com, build-with-claude/preserved-thinking and its page on prefix checks: a
block comes back as it was issued; on newer models it is also bound to `system`, `tools` and every
message before it, and no block between two others may be left out. All of a conversation's
thinking may be left out, or its oldest blocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.servers.llm_request import Refused, missing
from tests.servers.llm_script import Json, Thinking

MIN_BUDGET = 1024
BOUND = (
    "The block is bound to a different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


@dataclass(frozen=True)
class Seal:
    """What a signature stands for: the text, the conversation before it, the block before it."""

    text: str
    prefix: str
    length: int  # blocks in the prefix
    previous: str | None


@dataclass
class Seals:
    """The signatures that a server issued."""

    issued: dict[str, Seal] = field(default_factory=dict)

    def sign(self, part: Thinking, body: Json, before: str | None) -> str:
        """A signature for a block of the answer to `body`; `before`: the one before it there."""
        text = "".join(part.pieces)
        signature = part.redacted or part.signature or f"EqQB{len(self.issued):08d}local=="
        blocks = flat(body.get("messages") or [])
        seen = [seal for block in blocks if (seal := signature_of(block))]
        previous = before or (seen[-1] if seen else None)
        prefix = digest(body, blocks, len(blocks))
        self.issued[signature] = Seal(text, prefix, len(without_thinking(blocks)), previous)
        return signature


def signature_of(block: Json) -> str | None:
    """The seal of a thinking block, None of any other."""
    if block["type"] == "thinking":
        return str(block["signature"])
    return str(block["data"]) if block["type"] == "redacted_thinking" else None


def flat(messages: list[Json]) -> list[Json]:
    """All blocks of a conversation, each with its role; a string is one text block."""
    blocks: list[Json] = []
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks += [{**block, "role": message["role"]} for block in content]
    return blocks


def without_thinking(blocks: list[Json]) -> list[Json]:
    """The blocks that are compared as a prefix."""
    return [block for block in blocks if signature_of(block) is None]


def digest(body: Json, blocks: list[Json], count: int) -> str:
    """System, tools and the first `count` blocks, but for thinking and cache marks."""
    system = body.get("system") or ""
    if isinstance(system, list):
        system = "\n".join(block["text"] for block in system)
    kept = without_thinking(blocks)[:count]
    return json.dumps(bare([system, body.get("tools") or [], kept]), sort_keys=True)


def bare(value: Any) -> Any:
    """A JSON value without its cache marks."""
    if isinstance(value, list):
        return [bare(item) for item in value]
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if key != "cache_control"}
    return value


def check_thinking(body: Json, seals: Seals, *, types: tuple[str, ...], bound: bool) -> None:
    """The `thinking` parameter, and each thinking block that comes back."""
    config = body.get("thinking")
    if config is not None:
        check_config(body, config, types)
    messages = body["messages"]
    latest = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
    before: list[Json] = []
    last: str | None = None
    for index, message in enumerate(messages):
        for place, block in enumerate(flat([message])):
            signature = signature_of(block)
            if signature is None:
                before.append(block)
                continue
            where = f"messages.{index}.content.{place}"
            seal = seals.issued.get(signature)
            check_seal(where, block, seal, is_latest=index == latest)
            if seal and bound and not fits(seal, body, before, last):
                raise Refused(f"{where}: Invalid `signature` in `thinking` block. {BOUND}")
            last = signature
    if config is not None and config["type"] == "enabled":
        check_leading(messages, latest)


def check_config(body: Json, config: Json, types: tuple[str, ...]) -> None:
    """The mode must be one that the model has."""
    kind = config.get("type")
    if kind == "enabled" and kind not in types:
        raise Refused(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" '
            'and "output_config.effort" to control thinking behavior.'
        )
    if kind not in types:
        tags = ", ".join(f"'{name}'" for name in types)
        raise Refused(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected "
            f"tags: {tags}"
        )
    if kind == "enabled":
        check_budget(body, config)
    choice = (body.get("tool_choice") or {}).get("type")
    if kind != "disabled" and choice in ("any", "tool"):
        raise Refused("Thinking may not be enabled when tool_choice forces tool use.")


def check_budget(body: Json, config: Json) -> None:
    """Extended thinking has a budget, smaller than the answer's."""
    budget = config.get("budget_tokens")
    if budget is None:
        raise missing("thinking.enabled.budget_tokens")
    if budget < MIN_BUDGET:
        raise Refused(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        )
    if budget >= body.get("max_tokens", budget + 1):
        raise Refused("`max_tokens` must be greater than `thinking.budget_tokens`.")


def check_seal(where: str, block: Json, seal: Seal | None, *, is_latest: bool) -> None:
    """The signature is ours, and the text is the one that was signed."""
    if seal is None:
        raise Refused(f"{where}: Invalid `signature` in `thinking` block")
    if block["type"] == "thinking" and block["thinking"] != seal.text:
        if is_latest:
            raise Refused(
                f"{where}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the "
                "original response."
            )
        raise Refused(f"{where}: Invalid `signature` in `thinking` block")


def fits(seal: Seal, body: Json, before: list[Json], last: str | None) -> bool:
    """Whether nothing before the block changed since it was issued.

    Between the prefix and the block there may be other blocks of the same answer.
    """
    if len(before) < seal.length or digest(body, before, seal.length) != seal.prefix:
        return False
    if any(block["role"] != "assistant" for block in before[seal.length :]):
        return False
    return last is None or last == seal.previous


def check_leading(messages: list[Json], latest: int) -> None:
    """With extended thinking, the message whose calls are being answered starts with thinking."""
    if latest < 0:
        return
    blocks = flat([messages[latest]])
    if any(block["type"] == "tool_use" for block in blocks) and signature_of(blocks[0]) is None:
        raise Refused(
            f"messages.{latest}.content.0.type: Expected `thinking` or `redacted_thinking`, but "
            f"found `{blocks[0]['type']}`. When `thinking` is enabled, a final `assistant` message "
            "must start with a thinking block (preceeding the lastmost set of `tool_use` and "
            "`tool_result` blocks)."
        )
