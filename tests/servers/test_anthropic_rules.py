"""The Anthropic server refuses what the API refuses, in its words, and takes what it takes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import pytest

from tests.servers.anthropic import AnthropicServer
from tests.servers.anthropic_rules import Rules
from tests.servers.llm import redacted_thinking, thinking, tool
from tests.servers.pictures import png

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
HI = {"role": "user", "content": "hi"}
YES = {"role": "assistant", "content": "yes"}
NOW = {"name": "now", "input_schema": {"type": "object"}}
LATE = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
STRANGER = (
    "unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must "
    "have a corresponding `tool_use` block in the previous message."
)
BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
    "different conversation. Remove the block, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


def use(*ids: str, **changed: Any) -> dict[str, Any]:
    """An assistant message that calls `now` under each id."""
    block = {"type": "tool_use", "name": "now", "input": {}, **changed}
    return {"role": "assistant", "content": [{**block, "id": id_} for id_ in ids]}


def results(*ids: str, **changed: Any) -> dict[str, Any]:
    """A user message with a result for each id."""
    block = {"type": "tool_result", "content": "ok", **changed}
    return {"role": "user", "content": [{**block, "tool_use_id": id_} for id_ in ids]}


def said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def image(data: str = PNG, media_type: str = "image/png") -> dict[str, Any]:
    source = {"type": "base64", "media_type": media_type, "data": data}
    return {"type": "image", "source": source}


@pytest.fixture
async def llm() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(verify=False) as client:
        yield client


async def ask(
    llm: AnthropicServer, http: httpx2.AsyncClient, version: str = "2026-10-21", **changes: Any
) -> tuple[int, str]:
    """Status and error message (empty when all is well); None takes a field away."""
    body = {"model": "m", "max_tokens": 100, "messages": [HI], **changes}
    answer = await http.post(
        f"{llm.base_url}/v1/messages",
        headers={"x-api-key": llm.api_key, "anthropic-version": version},
        json={key: value for key, value in body.items() if value is not None},
    )
    document = answer.json()
    if answer.status_code == 200:
        return 200, ""
    assert document["type"] == "error"
    assert llm.refusals == [document["error"]["message"]]
    return answer.status_code, document["error"]["message"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": None}, "model: Field required"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": None}, "messages: Field required"),
        ({"messages": "hi"}, "messages: Input should be a valid list"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"temperature": 1.0}, "temperature: Extra inputs are not permitted"),
        ({"frequency_penalty": 1}, "frequency_penalty: Extra inputs are not permitted"),
        ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
        ({"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
        (
            {"max_tokens": 64_001},
            "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for m",
        ),
        ({"system": [words("")]}, "system: text content blocks must be non-empty"),
        (
            {"system": [words(" \n")]},
            "system: text content blocks must contain non-whitespace text",
        ),
        ({"system": [image()]}, "system.0.type: Input should be 'text'"),
        (
            {
                "system": [
                    {**words(str(i)), "cache_control": {"type": "ephemeral"}} for i in "12345"
                ]
            },
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
    ],
)
async def test_parameters(
    llm: AnthropicServer, http: httpx2.AsyncClient, changes: dict[str, Any], message: str
) -> None:
    assert await ask(llm, http, **changes) == (400, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema: Field required"),
        (
            {"tools": [{**NOW, "name": "a b"}]},
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        ({"tools": [NOW, NOW]}, "tools: Tool names must be unique."),
        (
            {"tools": [{"name": "a", "input_schema": {"type": "array"}}]},
            "tools.0.custom.input_schema.type: Input should be 'object'",
        ),
        (
            {"tools": [{"name": "a", "input_schema": {"type": "object", "anyOf": []}}]},
            (
                "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at "
                "the top level"
            ),
        ),
        (
            {"tool_choice": {"type": "auto"}},
            "tool_choice: `tool_choice` may only be specified while providing `tools`.",
        ),
        (
            {"tools": [NOW], "tool_choice": {"type": "tool", "name": "then"}},
            "Tool 'then' not found in provided tools",
        ),
        (
            {"tools": [NOW], "tool_choice": {"type": "required"}},
            (
                "tool_choice: Input tag 'required' found using 'type' does not match any of the "
                "expected tags: 'auto', 'any', 'none', 'tool'"
            ),
        ),
    ],
)
async def test_tools(
    llm: AnthropicServer, http: httpx2.AsyncClient, changes: dict[str, Any], message: str
) -> None:
    assert await ask(llm, http, **changes) == (400, message)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (
            [{"role": "system", "content": "x"}],
            (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
                'parameter, not "system" as an input message role.'
            ),
        ),
        (
            [{"role": "tool", "content": "x"}],
            "messages.0.role: Input should be 'user' or 'assistant'",
        ),
        (["hi"], "messages.0: Input should be a valid dictionary"),
        ([{"role": "user"}], "messages.0.content: Field required"),
        ([{**HI, "name": "Ana"}], "messages.0.name: Extra inputs are not permitted"),
        ([YES, HI], 'messages: first message must use the "user" role'),
        (
            [said(), YES, HI],
            (
                "messages.0: all messages must have non-empty content except for the optional final "
                "assistant message"
            ),
        ),
        (
            [HI, YES],
            (
                "This model does not support assistant message prefill. The conversation must end with "
                "a user message."
            ),
        ),
        ([said(words(""))], "messages: text content blocks must be non-empty"),
        ([said(words("\n\n"))], "messages: text content blocks must contain non-whitespace text"),
        (
            [{"role": "user", "content": " "}],
            "messages: text content blocks must contain non-whitespace text",
        ),
        ([said(5)], "messages.0.content.0: Input should be a valid dictionary"),
        ([said({"type": "text"})], "messages.0.content.0.text.text: Field required"),
        (
            [said({**words("a"), "parsed_output": None})],
            "messages.0.content.0.text.parsed_output: Extra inputs are not permitted",
        ),
        (
            [said({"type": "image_url"})],
            (
                "messages.0.content.0: Input tag 'image_url' found using 'type' does not match any of "
                "the expected tags: 'document', 'image', 'search_result', 'text', 'tool_result'"
            ),
        ),
        (
            [HI, said(image(), role="assistant"), HI],
            (
                "messages.1.content.0: Input tag 'image' found using 'type' does not match any of the "
                "expected tags: 'redacted_thinking', 'text', 'thinking', 'tool_use'"
            ),
        ),
        (
            [said(*use("t1")["content"])],
            "messages.0.content.0: `tool_use` blocks can only be in `assistant` messages",
        ),
        (
            [HI, said(*results("t1")["content"], role="assistant"), HI],
            "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
        ),
    ],
)
async def test_messages(
    llm: AnthropicServer, http: httpx2.AsyncClient, messages: list[Any], message: str
) -> None:
    assert await ask(llm, http, messages=messages) == (400, message)


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([HI, use("t1")], LATE.format("t1")),
        ([HI, use("t1"), HI], LATE.format("t1")),
        ([HI, use("t1", "t2"), results("t1")], LATE.format("t2")),
        ([HI, use("t1", "t2"), HI], LATE.format("t1, t2")),
        ([HI, use("t1"), said(words("so"), *results("t1")["content"])], LATE.format("t1")),
        ([results("t1")], "messages.0.content.0: " + STRANGER.format("t1")),
        ([HI, use("t1"), results("t1", "t9")], "messages.2.content.1: " + STRANGER.format("t9")),
        (
            [HI, use("t1"), results("t1"), YES, results("t1")],
            "messages.4.content.0: " + STRANGER.format("t1"),
        ),
        (
            [HI, use("t1"), results("t1", "t1")],
            (
                "messages.2.content.1: each tool_use must have a single result. Found multiple "
                "`tool_result` blocks with id: t1"
            ),
        ),
        (
            [HI, use("t1"), results("t1"), use("t1"), results("t1")],
            "messages.3.content.0: `tool_use` ids must be unique",
        ),
        (
            [HI, use("t1", "t1"), results("t1")],
            "messages.1.content.1: `tool_use` ids must be unique",
        ),
        (
            [HI, use("functions.exec:0"), results("functions.exec:0")],
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            [HI, use("t1"), results("t:1")],
            (
                "messages.2.content.0.tool_result.tool_use_id: String should match pattern "
                "'^[a-zA-Z0-9_-]+$'"
            ),
        ),
        (
            [HI, use("t1", name="a.b"), results("t1")],
            (
                "messages.1.content.0.tool_use.name: String should match pattern "
                "'^[a-zA-Z0-9_-]{1,200}$'"
            ),
        ),
        (
            [HI, use("t1", input="{}"), results("t1")],
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
        ),
        (
            [HI, use("t1"), results("t1", content="", is_error=True)],
            "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
        ),
        (
            [HI, use("t1"), results("t1", content=[image()], is_error=True)],
            (
                "messages.2.content.0.tool_result: all content must be type 'text' if 'is_error' is "
                "true"
            ),
        ),
        (
            [HI, use("t1"), results("t1", content=[words("")])],
            "messages: text content blocks must be non-empty",
        ),
    ],
)
async def test_calls_and_results(
    llm: AnthropicServer, http: httpx2.AsyncClient, messages: list[Any], message: str
) -> None:
    assert await ask(llm, http, messages=messages, tools=[NOW]) == (400, message)


@pytest.mark.parametrize(
    "messages",
    [
        [HI, HI],
        [HI, YES, YES, HI],
        [HI, use("t1", "t2"), results("t2", "t1")],
        [HI, use("t1", "t2"), results("t1"), results("t2")],
        [HI, use("t1"), said(*results("t1")["content"], words("and now?"), image())],
        [HI, use("t1"), results("t1", content=[words("a"), image()])],
        [HI, use("t1"), results("t1", content=None), YES, HI],
        [said(image(), words("what is it?"))],
        [HI, said(words("a"), *use("t1")["content"], role="assistant"), results("t1")],
    ],
)
async def test_legal_conversations_are_taken(
    llm: AnthropicServer, http: httpx2.AsyncClient, messages: list[Any]
) -> None:
    assert await ask(llm, http, messages=messages, tools=[NOW]) == (200, "")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (
            image(media_type="image/svg+xml"),
            (
                "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', "
                "'image/png', 'image/gif' or 'image/webp'"
            ),
        ),
        (image("%%%"), "messages.0.content.0.image.source.base64.data: Invalid base64 data"),
        (image(base64.b64encode(b"text").decode()), "Could not process image"),
        (
            image(media_type="image/jpeg"),
            (
                "messages.0.content.0.image.source.base64.data: The image was specified using the "
                "image/jpeg media type, but the image appears to be a image/png image"
            ),
        ),
        (
            image("A" * 5_242_884),
            (
                "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes > "
                "5242880 bytes"
            ),
        ),
    ],
)
async def test_images(
    llm: AnthropicServer, http: httpx2.AsyncClient, block: Any, message: str
) -> None:
    assert await ask(llm, http, messages=[said(block)]) == (400, message)


@pytest.mark.parametrize(
    ("size", "count", "refused"),
    [
        ((8_000, 2), 20, None),
        ((2, 8_001), 1, "max allowed size: 8000 pixels"),
        ((2_000, 2), 21, None),
        ((2_001, 2), 21, "max allowed size for many-image requests: 2000 pixels"),
    ],
)
async def test_how_many_pixels_an_image_may_have(
    llm: AnthropicServer,
    http: httpx2.AsyncClient,
    size: tuple[int, int],
    count: int,
    refused: str | None,
) -> None:
    small, large = (image(base64.b64encode(png(*s)).decode()) for s in ((2, 2), size))
    messages = [said(*[small] * (count - 1), large)]
    expected = (200, "") if refused is None else (400, sides(f"content.{count - 1}", refused))
    assert await ask(llm, http, messages=messages) == expected


async def test_an_image_of_a_tool_is_measured_too(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    large = image(base64.b64encode(png(9_000, 2)).decode())
    messages = [HI, use("t1"), results("t1", content=[words("a"), large])]
    status, message = await ask(llm, http, messages=messages, tools=[NOW])
    where = "messages.2.content.0.tool_result.content.1.image.source.base64.data: "
    assert (status, message.startswith(where)) == (400, True)


def sides(where: str, words: str) -> str:
    begin = f"messages.0.{where}.image.source.base64.data: "
    return f"{begin}At least one of the image dimensions exceed {words}"


async def test_a_prompt_over_the_window(llm: AnthropicServer, http: httpx2.AsyncClient) -> None:
    llm.rules.window = 1000
    long = [{"role": "user", "content": "a" * 4004}]
    said_back = "prompt is too long: 1002 tokens > 1000 maximum"  # the role counts too
    assert await ask(llm, http, messages=long) == (400, said_back)


async def test_an_answer_that_does_not_fit(llm: AnthropicServer, http: httpx2.AsyncClient) -> None:
    llm.rules.window = 1000
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": "a" * 3996}],
        "max_tokens": 100,
    }
    status, message = await ask(llm, http, **body)
    assert (status, message) == (
        400,
        (
            "input length and `max_tokens` exceed context limit: 1000 + 100 > 1000, decrease input "
            "length or `max_tokens` and try again"
        ),
    )
    llm.rules.refuse_sum_over_window = False
    assert await ask(llm, http, **body) == (200, "")


async def test_a_body_of_too_many_bytes(llm: AnthropicServer, http: httpx2.AsyncClient) -> None:
    llm.rules.max_request_bytes = 100
    assert await ask(llm, http, system="a" * 100) == (413, "Request exceeds the maximum size")


async def test_prefill_where_the_model_takes_it(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    llm.rules.prefill = True
    assert await ask(llm, http, messages=[HI, YES]) == (200, "")
    trailing = [HI, {"role": "assistant", "content": "The answer is "}]
    assert await ask(llm, http, messages=trailing) == (
        400,
        "messages: final assistant content cannot end with trailing whitespace",
    )


async def test_sampling_parameters_belong_to_the_old_version(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    assert await ask(llm, http, version="2023-06-01", temperature=1.0) == (200, "")


async def test_an_unknown_model(llm: AnthropicServer, http: httpx2.AsyncClient) -> None:
    llm.rules.any_model = False
    assert await ask(llm, http, model="claude-9") == (404, "model: claude-9")


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        ({}, 401, "x-api-key header is required"),
        ({"x-api-key": "wrong"}, 401, "invalid x-api-key"),
        ({"authorization": "Bearer wrong"}, 401, "Invalid bearer token"),
        ({"x-api-key": AnthropicServer.api_key}, 400, "anthropic-version: header is required"),
        (
            {"x-api-key": AnthropicServer.api_key, "anthropic-version": "2020-01-01"},
            400,
            'anthropic-version: "2020-01-01" is not a valid version',
        ),
    ],
)
async def test_headers(
    llm: AnthropicServer,
    http: httpx2.AsyncClient,
    headers: dict[str, str],
    status: int,
    message: str,
) -> None:
    answer = await http.post(f"{llm.base_url}/v1/messages", headers=headers, json={})
    assert (answer.status_code, answer.json()["error"]["message"]) == (status, message)


async def test_a_compatible_endpoint_may_read_the_key_from_one_header_only() -> None:
    async with (
        AnthropicServer(Rules(bearer=False)) as llm,
        anthropic.AsyncAnthropic(base_url=llm.base_url, api_key=llm.api_key, max_retries=0) as sdk,
    ):
        with pytest.raises(anthropic.AuthenticationError):
            await sdk.messages.create(model="m", max_tokens=9, messages=[HI])  # type: ignore[list-item]
        named = sdk.with_options(default_headers={"x-api-key": llm.api_key})
        await named.messages.create(model="m", max_tokens=9, messages=[HI])  # type: ignore[list-item]


# Thinking


async def answered(llm: AnthropicServer, http: httpx2.AsyncClient, **changes: Any) -> Any:
    """The content of an answer to `changes`, to be sent back."""
    answer = await http.post(
        f"{llm.base_url}/v1/messages",
        headers={"x-api-key": llm.api_key, "anthropic-version": "2026-10-21"},
        json={"model": "m", "max_tokens": 100, "messages": [HI], "tools": [NOW], **changes},
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["content"]


async def test_thinking_comes_back_as_it_was_issued(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    llm.answer(thinking("Hm."), redacted_thinking("sealed"), "Yes.", tool("now", id="t1"))
    first = await answered(llm, http)
    messages = [HI, said(*first, role="assistant"), results("t1")]
    llm.answer(thinking("Again."), "Done.")
    second = await answered(llm, http, messages=messages)
    messages = [*messages, said(*second, role="assistant"), HI]
    assert await ask(llm, http, messages=messages, tools=[NOW]) == (200, "")


async def test_thinking_may_be_left_out_altogether(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    llm.answer(thinking("Hm."), "Yes.")
    blocks = await answered(llm, http)
    without = [HI, said(*blocks[1:], role="assistant"), HI]
    assert await ask(llm, http, messages=without) == (200, "")


async def test_a_signature_of_another_server_is_refused(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    block = {"type": "thinking", "thinking": "Hm.", "signature": "from elsewhere"}
    messages = [HI, said(block, words("Yes."), role="assistant"), HI]
    assert await ask(llm, http, messages=messages) == (
        400,
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    )


async def test_thinking_without_a_signature_is_refused(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    block = {"type": "thinking", "thinking": "Hm."}
    messages = [HI, said(block, role="assistant"), HI]
    assert await ask(llm, http, messages=messages) == (
        400,
        "messages.1.content.0.thinking.signature: Field required",
    )


async def test_changed_thinking_is_refused(llm: AnthropicServer, http: httpx2.AsyncClient) -> None:
    llm.answer(thinking("Hm."), "Yes.")
    blocks = await answered(llm, http)
    changed = [{**blocks[0], "thinking": "Ha!"}, blocks[1]]
    status, message = await ask(llm, http, messages=[HI, said(*changed, role="assistant"), HI])
    assert status == 400
    assert message.startswith(
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"system": "Be brief."},
        {"tools": [NOW, {**NOW, "name": "then"}]},
        {"messages": [{"role": "user", "content": "changed"}]},
        {"messages": [HI, YES, HI]},
    ],
)
async def test_thinking_is_bound_to_what_came_before_it(
    llm: AnthropicServer, http: httpx2.AsyncClient, changes: dict[str, Any]
) -> None:
    """So it fails after trimming, and with a clock in the system prompt."""
    llm.answer(thinking("Hm."), "Yes.")
    back = said(*await answered(llm, http), role="assistant")
    before = changes.get("messages", [HI])
    sent = {"tools": [NOW], **changes, "messages": [*before, back, HI]}
    message = BOUND.replace("messages.1", f"messages.{len(before)}")
    assert await ask(llm, http, **sent) == (400, message)
    llm.rules.bound_thinking = False
    assert await ask(llm, http, **sent) == (200, "")


async def test_a_thinking_block_between_others_may_not_be_left_out(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    messages: list[Any] = [HI]
    for _ in range(3):
        llm.answer(thinking("Hm."), "Yes.")
        messages += [said(*await answered(llm, http, messages=messages), role="assistant"), HI]

    def without(index: int) -> list[Any]:
        copy = list(messages)
        copy[index] = said(*copy[index]["content"][1:], role="assistant")
        return copy

    message = BOUND.replace("messages.1", "messages.5")
    assert await ask(llm, http, messages=without(1), tools=[NOW]) == (200, "")
    assert await ask(llm, http, messages=without(3), tools=[NOW]) == (400, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            (
                '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" '
                'and "output_config.effort" to control thinking behavior.'
            ),
        ),
        (
            {"thinking": {"type": "on"}},
            (
                "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: "
                "'adaptive', 'disabled', 'between_tools'"
            ),
        ),
        (
            {"thinking": {"type": "adaptive"}, "tools": [NOW], "tool_choice": {"type": "any"}},
            "Thinking may not be enabled when tool_choice forces tool use.",
        ),
    ],
)
async def test_modes_of_thinking(
    llm: AnthropicServer, http: httpx2.AsyncClient, changes: dict[str, Any], message: str
) -> None:
    assert await ask(llm, http, **changes) == (400, message)


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (None, "thinking.enabled.budget_tokens: Field required"),
        (
            1000,
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
        (5000, "`max_tokens` must be greater than `thinking.budget_tokens`."),
    ],
)
async def test_extended_thinking_needs_a_budget(
    llm: AnthropicServer, http: httpx2.AsyncClient, budget: int | None, message: str
) -> None:
    llm.rules.thinking_types = ("enabled", "disabled")
    config = {"type": "enabled", "budget_tokens": budget}
    assert await ask(llm, http, thinking=config, max_tokens=4000) == (400, message)


async def test_extended_thinking_wants_thinking_before_calls(
    llm: AnthropicServer, http: httpx2.AsyncClient
) -> None:
    llm.rules.thinking_types = ("enabled", "disabled")
    config = {"type": "enabled", "budget_tokens": 1024}
    messages = [HI, use("t1"), results("t1")]
    sent: dict[str, Any] = {"messages": messages, "tools": [NOW], "max_tokens": 4000}
    status, message = await ask(llm, http, thinking=config, **sent)
    assert status == 400
    assert message.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
        "`tool_use`."
    )


async def test_counting_tokens_checks_the_same_rules(llm: AnthropicServer) -> None:
    async with anthropic.AsyncAnthropic(base_url=llm.base_url, api_key=llm.api_key) as sdk:
        counted = await sdk.messages.count_tokens(model="m", messages=[HI])  # type: ignore[list-item]
        assert counted.input_tokens == llm.rules.count({"messages": [HI]})
        with pytest.raises(anthropic.BadRequestError, match="at least one message"):
            await sdk.messages.count_tokens(model="m", messages=[])
