"""A request in the shape of OpenAI's Chat Completions API, in the dialect of the server.

Each result is a `tool` message directly after the calls, as text; images of results follow in a
user message. `agent.history.repair` has done what holds everywhere.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from agent.errors import Refusal, RefusalKind
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
    arguments_text,
    call_as_text,
    clean,
    result_as_text,
    result_text,
    wire_name,
)

_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")  # 40 characters is the API's limit for a call's id
_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")  # Mistral's
_NO_TOOL_CHOICE = re.compile(r"tool[_ ]choice")
_NO_TOOLS = re.compile(r"not support tools?\b")  # Ollama's words
_GO_ON = "(the results are noted)"
# platform.openai.com, guides/images-vision: 50 MB a request; compatible servers take less of all.
_IMAGES = ImageLimits(side=None, each=20_000_000, together=40_000_000, count=50)
# Where a message has none of its own; DeepSeek V4 refuses an empty text (hermes-agent, #17341).
_NO_REASONING = " "


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server differs from OpenAI; learnt from its refusals.

    `reasoning`: a message's own goes back with its calls (`own`) or whatever it holds (`kept`, for a
    list that is only written back), none does (`none`), or every message of the assistant's must
    carry some (`required`). `tools`: whether any may be offered; `tool_choice`: whether it may be said
    that none is to be called now.
    """

    completion_tokens: bool = True
    stream_options: bool = True
    reasoning: Literal["own", "kept", "none", "required"] = "own"
    short_ids: bool = False
    user_after_tool: bool = True
    tools: bool = True
    tool_choice: bool = True


def learnt(dialect: Dialect, refusal: Refusal, body: dict[str, Any]) -> Dialect:
    """The dialect after a refusal of `body`; the same when it teaches nothing."""
    unclear = refusal.kind in (RefusalKind.FORMAT, RefusalKind.UNKNOWN)
    if refusal.status not in (400, 422) or not unclear:
        return dialect
    said = refusal.detail.lower()
    if "max_completion_tokens" in said:
        # A relay's next upstream may want the one that the last refused.
        return replace(dialect, completion_tokens="max_tokens" in body)
    if ("stream_options" in said or "include_usage" in said) and "stream_options" in body:
        return replace(dialect, stream_options=False)
    if _NO_TOOL_CHOICE.search(said) and "tool_choice" in body:
        return replace(dialect, tool_choice=False)
    if (_NO_TOOL_CHOICE.search(said) or _NO_TOOLS.search(said)) and "tools" in body:
        return replace(dialect, tools=False)
    if "reasoning_content" in said:
        wanted = "missing" in said or "must be passed" in said
        return replace(dialect, reasoning="required" if wanted else "none")
    if "length of 9" in said:
        return replace(dialect, short_ids=True)
    if "'user' after role 'tool'" in said:
        return replace(dialect, user_after_tool=False)
    return dialect


def render(request: ModelRequest, model: str, dialect: Dialect) -> dict[str, Any]:
    """The body. `model` is the name that thinking blocks of this model carry."""
    cap = "max_completion_tokens" if dialect.completion_tokens else "max_tokens"
    body: dict[str, Any] = {
        "model": request.model,
        "messages": list(_Conversation(request, model, dialect).messages()),
        cap: request.max_output_tokens,
    }
    if dialect.stream_options:
        body["stream_options"] = {"include_usage": True}
    if request.tools and request.traits.tools and dialect.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
        if not request.may_call and dialect.tool_choice:
            body["tool_choice"] = "none"
    return body


class _Conversation:
    """The messages of one request."""

    def __init__(self, request: ModelRequest, model: str, dialect: Dialect) -> None:
        self._request = request
        self._model = model
        self._dialect = dialect
        self._tools = bool(request.tools) and request.traits.tools and dialect.tools
        self._left_out = images_left_out(request.messages, _IMAGES)
        self._ids = (
            WireIds(request.messages, _SHORT_ID, prefix="", digits=9)
            if dialect.short_ids
            else WireIds(request.messages, _ID)
        )

    def messages(self) -> Iterator[JsonObject]:
        """All of them, the system prompt first."""
        if self._request.system.strip() and self._request.traits.system_prompt:
            yield {"role": "system", "content": clean(self._request.system)}
        for message in self._request.messages:
            if message.role == "assistant":
                yield self._assistant(message)
            else:
                yield from self._user(message)

    def _assistant(self, message: Message) -> JsonObject:
        texts = [
            block.text
            for block in message.blocks
            if isinstance(block, TextBlock) and block.text.strip()
        ]
        if not self._tools:
            texts += [call_as_text(call) for call in message.tool_uses]
        text = clean("\n\n".join(texts))
        rendered: JsonObject = {"role": "assistant", "content": text or NO_CONTENT}
        if self._tools and message.tool_uses:
            rendered["content"] = text or None
            rendered["tool_calls"] = [self._call(call) for call in message.tool_uses]
        reasoning = self._reasoning(message)
        if reasoning is not None:
            rendered["reasoning_content"] = reasoning
        return rendered

    def _reasoning(self, message: Message) -> str | None:
        """A message's own goes back with its calls, in later turns too: nobody needs it elsewhere.
        DeepSeek and others in thinking mode want some in each message once a conversation has calls;
        the model's own is what `agent.context.without_seals` keeps."""
        dialect = self._dialect.reasoning
        if dialect == "none" or (dialect != "kept" and not self._tools):
            return None
        if dialect == "own" and not message.tool_uses:
            return None
        own = "".join(
            block.text
            for block in message.blocks
            if isinstance(block, ThinkingBlock) and block.model == self._model
        )
        return clean(own) or (_NO_REASONING if dialect == "required" else None)

    def _call(self, call: ToolUseBlock) -> JsonObject:
        return {
            "id": self._ids(call.id),
            "type": "function",
            "function": {
                "name": wire_name(call.name),
                "arguments": arguments_text(sendable(call.arguments)),
            },
        }

    def _user(self, message: Message) -> Iterator[JsonObject]:
        said: list[Block] = []
        for result in message.tool_results:
            if self._tools:
                text = result_text(result)
                id_ = self._ids(result.tool_use_id)
                yield {"role": "tool", "tool_call_id": id_, "content": text}
            else:
                said.append(TextBlock(result_as_text(result)))
            said += [part for part in result.content if isinstance(part, ImageBlock)]
        answered = self._tools and bool(message.tool_results)
        said += [block for block in message.blocks if not isinstance(block, ToolResultBlock)]
        if not said and answered:
            return
        if answered and not self._dialect.user_after_tool:
            yield {"role": "assistant", "content": _GO_ON}
        yield {"role": "user", "content": self._content(said)}

    def _content(self, blocks: list[Block]) -> str | list[Any]:
        """Text as one string, which every server takes; parts only where there are images."""
        parts = [part for block in blocks for part in self._parts(block)]
        if all(part["type"] == "text" for part in parts):
            return "\n\n".join(str(part["text"]) for part in parts) or NO_CONTENT
        return parts

    def _parts(self, block: Block) -> Iterator[JsonObject]:
        if isinstance(block, TextBlock) and block.text.strip():
            yield {"type": "text", "text": clean(block.text)}
        elif isinstance(block, ImageBlock):
            yield self._image(block)

    def _image(self, block: ImageBlock) -> JsonObject:
        note = self._left_out.get(id(block)) if self._request.traits.images else NO_IMAGES
        if note is not None:
            return {"type": "text", "text": note}
        data = base64.b64encode(block.data).decode("ascii")
        # What a tool says of its image may be wrong.
        url = f"data:{media_type(block.data)};base64,{data}"
        return {"type": "image_url", "image_url": {"url": url}}
