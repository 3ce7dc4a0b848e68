"""What OpenAI's Chat Completions API refuses, in its words, and what compatible servers add.

From the API reference (platform.openai.com/docs/api-reference/chat), the field cases, and wordings
reported in public issues. Messages are checked in `openai_messages`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.servers.llm_request import Refused
from tests.servers.llm_script import Json
from tests.servers.openai_messages import check_messages
from tests.servers.openai_pairs import MessageRules
from tests.servers.openai_refusals import check_name, too_long

PARAMETERS = {
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
}
MAX_TOOLS = 128
MAX_DESCRIPTION = 1024
CAPS = ("max_completion_tokens", "max_tokens")
IMAGE_TOKENS = 765  # a picture of 1024 x 1024 at high detail
DATA_URL = re.compile(r'data:image/[^"]*')


@dataclass
class Rules:
    """What a test may set. The presets below are servers that speak the same API.

    Tokens are counted as characters / 4 of messages and tools, plus 765 for each data URL.
    """

    window: int = 128_000
    max_output: int = 16_384
    # Parameters that this server does not know, such as max_completion_tokens or stream_options.
    unknown_parameters: frozenset[str] = frozenset()
    completion_tokens_only: bool = False  # reasoning models: max_tokens is refused
    models: tuple[str, ...] = ("gpt-local",)
    any_model: bool = True
    messages: MessageRules = field(default_factory=MessageRules)

    def count(self, body: Json) -> int:
        """Input tokens of a request."""
        counted, images = 0, 0
        pending: list[Any] = [body.get("messages"), body.get("tools")]
        while pending:
            value = pending.pop()
            if isinstance(value, str):
                images += DATA_URL.match(value) is not None
                counted += 0 if DATA_URL.match(value) else len(value)
            elif isinstance(value, list):
                pending += value
            elif isinstance(value, dict):
                pending += value.values()
        return math.ceil(counted / 4) + IMAGE_TOKENS * images

    def new_id(self, number: int) -> str:
        """An id for a call of the server's own."""
        return f"{number:09d}" if self.messages.nine_character_ids else f"call_{number:024d}"


def deepseek() -> Rules:
    """DeepSeek in thinking mode: reasoning comes back with calls; tool content is a string."""
    return Rules(
        messages=MessageRules(reasoning="required", tool_content_strings=True, deepseek=True)
    )


def mistral() -> Rules:
    """Mistral: ids of nine letters and digits, no user message directly after a tool's."""
    return Rules(messages=MessageRules(nine_character_ids=True, user_after_tool=False))


def alternating() -> Rules:
    """Gemini's compatible endpoint and chat templates that want user and assistant in turn."""
    return Rules(messages=MessageRules(alternation=True))


def only_max_tokens() -> Rules:
    """A compatible server that knows neither max_completion_tokens nor stream_options."""
    return Rules(unknown_parameters=frozenset({"max_completion_tokens", "stream_options"}))


def check_headers(headers: Mapping[str, str], api_key: str) -> None:
    """The key."""
    given = headers.get("authorization")
    if given is None:
        raise Refused(
            "You didn't provide an API key. You need to provide your API key in an Authorization "
            "header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
            status=401,
        )
    if given != f"Bearer {api_key}":
        key = given.removeprefix("Bearer ")
        shown = f"{key[:8]}{'*' * max(0, len(key) - 12)}{key[-4:]}"
        raise Refused(
            f"Incorrect API key provided: {shown}. You can find your API key at "
            "https://platform.openai.com/account/api-keys.",
            status=401,
            code="invalid_api_key",
        )


def check_request(body: Json, rules: Rules) -> None:
    """A whole `POST /v1/chat/completions`; raises `Refused`."""
    check_parameters(body, rules)
    check_model(body, rules)
    check_tools(body)
    check_messages(body.get("messages"), rules.messages)
    check_stream_options(body)
    check_size(body, rules)


def check_parameters(body: Json, rules: Rules) -> None:
    """No parameter that the server does not know."""
    unknown = [key for key in body if key not in PARAMETERS - rules.unknown_parameters]
    if unknown:
        plural = "s" if len(unknown) > 1 else ""
        raise Refused(f"Unrecognized request argument{plural} supplied: {', '.join(unknown)}")
    if rules.completion_tokens_only and "max_tokens" in body:
        raise Refused(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        )
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise Refused(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            code="invalid_parameter_combination",
        )


def check_model(body: Json, rules: Rules) -> None:
    """The model is named, and known where the server cares."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Refused("you must provide a model parameter")
    if not rules.any_model and model not in rules.models:
        raise Refused(
            f"The model `{model}` does not exist or you do not have access to it.",
            status=404,
            code="model_not_found",
        )


def check_stream_options(body: Json) -> None:
    """`stream_options` belongs to streams."""
    if body.get("stream_options") is not None and not body.get("stream"):
        raise Refused(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            param="stream_options",
        )


def check_tools(body: Json) -> None:
    """Tool definitions and the parameters that need them."""
    tools = body.get("tools")
    if tools is None:
        for key in ("tool_choice", "parallel_tool_calls"):
            if body.get(key) is not None:
                raise Refused(
                    f"Invalid value for '{key}': '{key}' is only allowed when 'tools' are "
                    "specified.",
                    param=key,
                )
        return
    if not tools:
        raise Refused(
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            param="tools",
            code="empty_array",
        )
    if len(tools) > MAX_TOOLS:
        raise Refused(
            f"Invalid 'tools': array too long. Expected an array with maximum length {MAX_TOOLS}, "
            f"but got an array with length {len(tools)} instead.",
            param="tools",
            code="array_above_max_length",
        )
    for index, tool in enumerate(tools):
        check_tool(f"tools[{index}]", tool)
    check_tool_choice(body.get("tool_choice"), [tool["function"]["name"] for tool in tools])


def check_tool(where: str, tool: Json) -> None:
    """One definition."""
    if tool.get("type") != "function":
        raise Refused(
            f"Invalid value: '{tool.get('type')}'. Supported values are: 'function' and 'custom'.",
            param=f"{where}.type",
            code="invalid_value",
        )
    function = tool.get("function") or {}
    check_name(f"{where}.function.name", function.get("name"))
    description = function.get("description") or ""
    if len(description) > MAX_DESCRIPTION:
        raise too_long(f"{where}.function.description", description, MAX_DESCRIPTION)
    schema = function.get("parameters")
    if schema is not None and schema.get("type") != "object":
        raise Refused(
            f"Invalid schema for function '{function['name']}': schema must be a JSON Schema of "
            f"'type: \"object\"', got 'type: \"{schema.get('type')}\"'.",
            param=f"{where}.function.parameters",
            code="invalid_function_parameters",
        )


def check_tool_choice(choice: str | Json | None, names: list[str]) -> None:
    """`tool_choice` is a mode, or names a tool that is there."""
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        raise Refused(
            f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.",
            param="tool_choice",
            code="invalid_value",
        )
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        if name not in names:
            raise Refused(
                f"Invalid value for 'tool_choice': no function named '{name}' was specified in "
                "the 'tools' parameter.",
                param="tool_choice",
            )


def check_size(body: Json, rules: Rules) -> None:
    """The cap on the answer, and input with answer against the window."""
    used = rules.count(body)
    name = next((key for key in CAPS if body.get(key) is not None), None)
    wanted = body[name] if name else 0
    if name and wanted < 1:
        raise Refused(
            f"Invalid '{name}': integer below minimum value. Expected a value >= 1, but got "
            f"{wanted} instead.",
            param=name,
            code="integer_below_min_value",
        )
    if wanted > rules.max_output:
        raise Refused(
            f"{name} is too large: {wanted}. This model supports at most {rules.max_output} "
            f"completion tokens, whereas you provided {wanted}.",
            param=name,
            code="invalid_value",
        )
    limit = f"This model's maximum context length is {rules.window} tokens. However, "
    if used > rules.window:
        raise overflow(
            f"{limit}your messages resulted in {used} tokens. Please reduce the length of the "
            "messages."
        )
    if used + wanted > rules.window:
        raise overflow(
            f"{limit}you requested {used + wanted} tokens ({used} in the messages, {wanted} in the "
            "completion). Please reduce the length of the messages or completion."
        )


def overflow(message: str) -> Refused:
    """The request does not fit the window."""
    return Refused(message, param="messages", code="context_length_exceeded")
