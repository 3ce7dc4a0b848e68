"""A request in the shape of Anthropic's Messages API, by its rules.

Results come first in a message, blank text is never sent, thinking goes back byte-identical to the
model that sealed it and to no other. `agent.history.repair` has done what holds everywhere.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agent.provider import ModelRequest
from agent.providers.sendable import ImageLimits, images_left_out, media_type, sendable
from agent.providers.wire import (
    NO_CONTENT,
    NO_IMAGES,
    WireIds,
    arguments_object,
    call_as_text,
    clean,
    result_as_text,
    result_text,
    wire_name,
)

# The API's pattern for the ids of calls; longer ones are replaced all the same.
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CACHED: JsonObject = {"type": "ephemeral"}
# platform.claude.com, build-with-claude/vision: 5 MB and 8,000 pixels each, but 2,000 pixels in a
# request with more than 20; a request has at most 32 MB, of which some is text.
IMAGES = ImageLimits(side=8_000, each=5 * 1024 * 1024, together=24_000_000, count=20)


@dataclass(frozen=True, slots=True)
class _Style:
    """How the blocks of one request are rendered."""

    ids: WireIds
    model: str
    images: bool
    left_out: dict[int, str]  # words for images that may not be sent, by id(block)
    tools: bool
    thinking: bool


def render(request: ModelRequest, model: str, *, thinking: bool = True) -> dict[str, Any]:
    """The body. `model` is the name that thinking blocks of this model carry; `thinking`: whether
    any of it goes back."""
    tools = bool(request.tools) and request.traits.tools
    style = _Style(
        ids=WireIds(request.messages, _ID),
        model=model,
        images=request.traits.images,
        left_out=images_left_out(request.messages, IMAGES),
        tools=tools,
        # Thinking is bound to all that came before it, calls included.
        thinking=thinking and (tools or not any(m.tool_uses for m in request.messages)),
    )
    messages = [
        {"role": message.role, "content": _content(message, style)} for message in request.messages
    ]
    _cache_here(messages[-1]["content"])
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_output_tokens,
        "messages": messages,
    }
    if tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        if not request.may_call:
            body["tool_choice"] = {"type": "none"}
    if request.system.strip() and request.traits.system_prompt:
        text = clean(request.system)
        body["system"] = [{"type": "text", "text": text, "cache_control": _CACHED}]
    elif tools:  # a mark on the system prompt covers the tools, which come before it
        body["tools"][-1]["cache_control"] = _CACHED
    return body


def _cache_here(content: Any) -> None:
    """The conversation so far is a prefix of the next request: let the provider keep it."""
    if content[-1]["type"] in ("text", "tool_result", "image"):
        content[-1] = {**content[-1], "cache_control": _CACHED}


def has_thinking(body: dict[str, Any]) -> bool:
    """Whether a rendered request sends thinking back."""
    return any(
        block["type"] in ("thinking", "redacted_thinking")
        for message in body["messages"]
        for block in message["content"]
    )


def _content(message: Message, style: _Style) -> list[JsonObject]:
    results = [block for block in message.blocks if isinstance(block, ToolResultBlock)]
    rest = [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
    rendered = [
        *(part for result in results for part in _result(result, style)),
        *(_image(image, style) for result in results for image in _apart(result, style)),
        *(part for block in rest for part in _block(block, style)),
    ]
    return rendered or [{"type": "text", "text": NO_CONTENT}]


def _block(block: Block, style: _Style) -> Iterator[JsonObject]:
    match block:
        case TextBlock():
            yield from _text(block.text)
        case ImageBlock():
            yield _image(block, style)
        case ThinkingBlock():
            yield from _thinking(block, style)
        case ToolUseBlock() if style.tools:
            yield {
                "type": "tool_use",
                "id": style.ids(block.id),
                "name": wire_name(block.name),
                "input": arguments_object(sendable(block.arguments)),
            }
        case ToolUseBlock():
            yield from _text(call_as_text(block))
        case ToolResultBlock():
            yield from _result(block, style)


def _text(text: str) -> Iterator[JsonObject]:
    if text.strip():
        yield {"type": "text", "text": clean(text)}


def _image(block: ImageBlock, style: _Style) -> JsonObject:
    note = style.left_out.get(id(block)) if style.images else NO_IMAGES
    if note is not None:
        return {"type": "text", "text": note}
    data = base64.b64encode(block.data).decode("ascii")
    # What a tool says of its image may be wrong, and the API compares.
    source: JsonObject = {"type": "base64", "media_type": media_type(block.data), "data": data}
    return {"type": "image", "source": source}


def _result(result: ToolResultBlock, style: _Style) -> Iterator[JsonObject]:
    if not style.tools:
        yield from _text(result_as_text(result))
        return
    content: list[Any] = [{"type": "text", "text": result_text(result)}]
    if not result.is_error:
        content = [part for block in result.content for part in _block(block, style)] or content
    yield {
        "type": "tool_result",
        "tool_use_id": style.ids(result.tool_use_id),
        "content": content,
        "is_error": result.is_error,
    }


def _apart(result: ToolResultBlock, style: _Style) -> list[ImageBlock]:
    """Images that cannot stand in the result: an error may hold text only."""
    if style.tools and not result.is_error:
        return []
    return [part for part in result.content if isinstance(part, ImageBlock)]


def _thinking(block: ThinkingBlock, style: _Style) -> Iterator[JsonObject]:
    if not style.thinking or block.model != style.model:
        return
    if block.redacted is not None:
        yield {"type": "redacted_thinking", "data": block.redacted}
    elif block.signature:
        yield {"type": "thinking", "thinking": block.text, "signature": block.signature}
