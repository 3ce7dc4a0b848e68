"""What Anthropic's Messages API refuses, in its words.

From the API reference, the versions page (2026-10-21), the pages on errors, tool use, vision and
preserved thinking at platform.claude.com, and wordings reported in public issues. Blocks are
checked in `anthropic_blocks`, signatures of thinking in `anthropic_thinking`. Where the API's
wording is not known, the message follows the style of its schema errors.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.anthropic_blocks import BlockRules, check_content, check_sides, check_system
from tests.servers.anthropic_pairs import check_pairs
from tests.servers.anthropic_thinking import Seals, check_thinking
from tests.servers.llm_request import Refused, missing
from tests.servers.llm_script import Json

VERSIONS = ("2023-06-01", "2026-10-21")
SAMPLING = {"temperature", "top_p", "top_k"}  # removed in 2026-10-21
PARAMETERS = {
    "model",
    "messages",
    "max_tokens",
    "cache_control",
    "container",
    "diagnostics",
    "inference_geo",
    "metadata",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "thinking",
    "tool_choice",
    "tools",
}
COUNT_PARAMETERS = PARAMETERS - {"max_tokens", "stream"}
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
IMAGE_TOKENS = 1500  # about what a picture of 1568 pixels costs
PREFILL = (
    "This model does not support assistant message prefill. "
    "The conversation must end with a user message."
)


@dataclass
class Rules:
    """What a test may set; the defaults are those of a current model and a new account.

    Tokens are counted as characters / 4 of all text, plus 1,500 for each image.
    """

    window: int = 200_000
    max_output: int = 64_000
    max_request_bytes: int = 32_000_000
    # Older models refuse input + max_tokens over the window; current ones answer until it is full.
    refuse_sum_over_window: bool = True
    prefill: bool = False
    prefill_message: str = PREFILL
    # Claude 4.5 and earlier know only enabled and disabled, 4.7 and later refuse enabled.
    thinking_types: tuple[str, ...] = ("adaptive", "disabled", "between_tools")
    # Thinking is tied to what came before it: the default for accounts made since 2026-08-31.
    bound_thinking: bool = True
    bearer: bool = True  # False: a compatible endpoint that reads the key from x-api-key only
    models: tuple[str, ...] = ("claude-local",)
    any_model: bool = True
    blocks: BlockRules = field(default_factory=BlockRules)
    seals: Seals = field(default_factory=Seals)

    def count(self, body: Json) -> int:
        """Input tokens of a request."""
        texts, images = 0, 0
        for part in walk({key: body.get(key) for key in ("system", "tools", "messages")}):
            if isinstance(part, str):
                texts += len(part)
            else:
                images += 1
        return math.ceil(texts / 4) + IMAGE_TOKENS * images


def walk(value: Any) -> Iterator[str | Json]:
    """Every string in a JSON value, and each base64 source once instead of its strings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from walk(item)
    elif isinstance(value, dict):
        if value.get("type") == "base64":
            yield value
        else:
            for item in value.values():
                yield from walk(item)


def check_headers(headers: Mapping[str, str], api_key: str, rules: Rules) -> None:
    """The key, in either header, and the version of the API."""
    bearer = headers.get("authorization") if rules.bearer else None
    key = headers.get("x-api-key")
    if key is None and bearer is None:
        raise Refused("x-api-key header is required", status=401, type="authentication_error")
    if key is not None and key != api_key:
        raise Refused("invalid x-api-key", status=401, type="authentication_error")
    if key is None and bearer != f"Bearer {api_key}":
        raise Refused("Invalid bearer token", status=401, type="authentication_error")
    version = headers.get("anthropic-version")
    if version is None:
        raise Refused("anthropic-version: header is required")
    if version not in VERSIONS:
        raise Refused(f'anthropic-version: "{version}" is not a valid version')


def check_request(body: Json, version: str, size: int, rules: Rules) -> None:
    """A whole `POST /v1/messages`; raises `Refused`."""
    if size > rules.max_request_bytes:
        raise Refused("Request exceeds the maximum size", status=413, type="request_too_large")
    check_parameters(body, PARAMETERS | (SAMPLING if version == "2023-06-01" else set()))
    check_max_tokens(body, rules)
    check_prompt(body, rules)
    check_size(body, rules)


def check_prompt(body: Json, rules: Rules) -> None:
    """What `POST /v1/messages/count_tokens` checks too."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise missing("model")
    if not rules.any_model and model not in rules.models:
        raise Refused(f"model: {model}", status=404, type="not_found_error")
    check_system(body.get("system"))
    check_tools(body)
    check_messages(body.get("messages"), rules)
    check_cache_marks(body)
    check_thinking(body, rules.seals, types=rules.thinking_types, bound=rules.bound_thinking)


def check_parameters(body: Json, known: set[str]) -> None:
    """No parameter that the API does not know."""
    for key in body:
        if key not in known:
            raise Refused(f"{key}: Extra inputs are not permitted")


def check_max_tokens(body: Json, rules: Rules) -> None:
    """`max_tokens` is there, a whole number, and within the model's cap."""
    wanted = body.get("max_tokens")
    if wanted is None:
        raise missing("max_tokens")
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        raise Refused("max_tokens: Input should be a valid integer")
    if wanted < 0:
        raise Refused("max_tokens: Input should be greater than or equal to 0")
    if wanted > rules.max_output:
        raise Refused(
            f"max_tokens: {wanted} > {rules.max_output}, which is the maximum allowed number of "
            f"output tokens for {body.get('model')}"
        )


def check_size(body: Json, rules: Rules) -> None:
    """The input, and the input with the reserved answer, against the window."""
    used, wanted = rules.count(body), int(body["max_tokens"])
    if used > rules.window:
        raise Refused(f"prompt is too long: {used} tokens > {rules.window} maximum")
    if rules.refuse_sum_over_window and used + wanted > rules.window:
        raise Refused(
            f"input length and `max_tokens` exceed context limit: {used} + {wanted} > "
            f"{rules.window}, decrease input length or `max_tokens` and try again"
        )


def check_tools(body: Json) -> None:
    """Tool definitions and `tool_choice`."""
    tools = body.get("tools") or []
    names: list[str] = []
    for index, tool in enumerate(tools):
        where = f"tools.{index}.custom"
        for key in ("name", "input_schema"):
            if key not in tool:
                raise missing(f"{where}.{key}")
        if not NAME.fullmatch(tool["name"]):
            raise Refused(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        check_schema(where, tool["input_schema"])
        names.append(tool["name"])
    if len(set(names)) != len(names):
        raise Refused("tools: Tool names must be unique.")
    check_tool_choice(body.get("tool_choice"), names)


def check_schema(where: str, schema: Json) -> None:
    """An input schema is an object's."""
    if schema.get("type") != "object":
        raise Refused(f"{where}.input_schema.type: Input should be 'object'")
    if {"oneOf", "allOf", "anyOf"} & schema.keys():
        raise Refused(
            f"{where}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the "
            "top level"
        )


def check_tool_choice(choice: Json | None, names: list[str]) -> None:
    """`tool_choice` needs tools, a known type and a tool that is there."""
    if choice is None:
        return
    if choice.get("type") not in ("auto", "any", "tool", "none"):
        raise Refused(
            f"tool_choice: Input tag '{choice.get('type')}' found using 'type' does not match any "
            "of the expected tags: 'auto', 'any', 'none', 'tool'"
        )
    if not names:
        raise Refused("tool_choice: `tool_choice` may only be specified while providing `tools`.")
    if choice["type"] == "tool" and choice.get("name") not in names:
        raise Refused(f"Tool '{choice.get('name')}' not found in provided tools")


def check_messages(messages: Any, rules: Rules) -> None:
    """Roles, blocks, the pairing of calls and results, and how the conversation ends."""
    if messages is None:
        raise missing("messages")
    if not isinstance(messages, list):
        raise Refused("messages: Input should be a valid list")
    if not messages:
        raise Refused("messages: at least one message is required")
    for index, message in enumerate(messages):
        check_message(index, message, rules, final=index == len(messages) - 1)
    if messages[0]["role"] != "user":
        raise Refused('messages: first message must use the "user" role')
    check_sides(messages, rules.blocks)
    check_pairs(messages)
    if messages[-1]["role"] == "assistant":
        if not rules.prefill:
            raise Refused(rules.prefill_message)
        check_prefill(messages[-1]["content"])


def check_message(index: int, message: Any, rules: Rules, *, final: bool) -> None:
    """One message by itself."""
    if not isinstance(message, dict):
        raise Refused(f"messages.{index}: Input should be a valid dictionary")
    role = message.get("role")
    if role == "system":
        raise Refused(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
            'parameter, not "system" as an input message role.'
        )
    if role not in ("user", "assistant"):
        raise Refused(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    for key in message:
        if key not in ("role", "content"):
            raise Refused(f"messages.{index}.{key}: Extra inputs are not permitted")
    content = message.get("content")
    if content is None:
        raise missing(f"messages.{index}.content")
    if not content and not (final and role == "assistant"):
        raise Refused(
            f"messages.{index}: all messages must have non-empty content except for the optional "
            "final assistant message"
        )
    check_content(index, role, content, rules.blocks)


def check_prefill(content: Any) -> None:
    """The beginning of an answer may not end in white space."""
    last = content if isinstance(content, str) else (content[-1].get("text", "") if content else "")
    if last != last.rstrip():
        raise Refused("messages: final assistant content cannot end with trailing whitespace")


def check_cache_marks(body: Json) -> None:
    """At most four blocks carry `cache_control`."""
    found = json.dumps([body.get("system"), body.get("tools"), body.get("messages")]).count(
        '"cache_control": {'
    )
    if found > 4:
        raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {found}.")
