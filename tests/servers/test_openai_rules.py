"""The OpenAI server refuses what the API and its like refuse, in their words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.servers.openai import OpenAIServer
from tests.servers.openai_rules import Rules, alternating, deepseek, mistral, only_max_tokens

HI = {"role": "user", "content": "hi"}
YES = {"role": "assistant", "content": "yes"}
RULE = {"role": "system", "content": "Be brief."}
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
UNANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {}"
)
ORPHAN = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'."
)


def call(*ids: str, arguments: Any = "{}", name: str = "now", **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    calls = [{"id": id_, "type": "function", "function": function} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def done(id_: str, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def picture(url: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def function(**changes: Any) -> dict[str, Any]:
    return {"type": "function", "function": {**NOW["function"], **changes}}  # type: ignore[dict-item]


@pytest.fixture
async def llm() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as server:
        yield server


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(verify=False) as client:
        yield client


async def ask(llm: OpenAIServer, http: httpx2.AsyncClient, **changes: Any) -> dict[str, Any]:
    """The error with its status, or an empty object; None takes a field away."""
    body = {"model": "m", "messages": [HI], **changes}
    answer = await http.post(
        f"{llm.base_url}/chat/completions",
        headers={"authorization": f"Bearer {llm.api_key}"},
        json={key: value for key, value in body.items() if value is not None},
    )
    if answer.status_code == 200:
        return {}
    error: dict[str, Any] = answer.json()["error"]
    assert llm.refusals[-1] == error["message"]
    return {**error, "status": answer.status_code}


async def refusal(llm: OpenAIServer, http: httpx2.AsyncClient, **changes: Any) -> str:
    error = await ask(llm, http, **changes)
    assert error["status"] == 400
    assert error["type"] == "invalid_request_error"
    return str(error["message"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": None}, "you must provide a model parameter"),
        ({"messages": None}, "Missing required parameter: 'messages'."),
        (
            {"messages": []},
            (
                "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an "
                "empty array instead."
            ),
        ),
        ({"top_k": 5}, "Unrecognized request argument supplied: top_k"),
        ({"top_k": 5, "x": 1}, "Unrecognized request arguments supplied: top_k, x"),
        (
            {"stream_options": {"include_usage": True}},
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        ),
        (
            {"max_completion_tokens": 16_385},
            (
                "max_completion_tokens is too large: 16385. This model supports at most 16384 "
                "completion tokens, whereas you provided 16385."
            ),
        ),
        (
            {"max_tokens": 0},
            (
                "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 "
                "instead."
            ),
        ),
        (
            {"max_tokens": 5, "max_completion_tokens": 5},
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        ),
        (
            {"tool_choice": "auto"},
            (
                "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are "
                "specified."
            ),
        ),
        (
            {"tools": []},
            (
                "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an "
                "empty array instead."
            ),
        ),
        (
            {"tools": [NOW] * 129},
            (
                "Invalid 'tools': array too long. Expected an array with maximum length 128, but got "
                "an array with length 129 instead."
            ),
        ),
        (
            {"tools": [function(name="a b")]},
            (
                "Invalid 'tools[0].function.name': string does not match pattern. Expected a string "
                "that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ),
        ),
        (
            {"tools": [function(name="a" * 65)]},
            (
                "Invalid 'tools[0].function.name': string too long. Expected a string with maximum "
                "length 64, but got a string with length 65 instead."
            ),
        ),
        (
            {"tools": [function(description="a" * 1025)]},
            (
                "Invalid 'tools[0].function.description': string too long. Expected a string with "
                "maximum length 1024, but got a string with length 1025 instead."
            ),
        ),
        (
            {"tools": [function(parameters={"type": "array"})]},
            (
                "Invalid schema for function 'now': schema must be a JSON Schema of 'type: \"object\"',"
                " got 'type: \"array\"'."
            ),
        ),
        (
            {"tools": [{"type": "retrieval"}]},
            "Invalid value: 'retrieval'. Supported values are: 'function' and 'custom'.",
        ),
        (
            {"tools": [NOW], "tool_choice": "any"},
            "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
        ),
        (
            {
                "tools": [NOW],
                "tool_choice": {"type": "function", "function": {"name": "then"}},
            },
            (
                "Invalid value for 'tool_choice': no function named 'then' was specified in the "
                "'tools' parameter."
            ),
        ),
    ],
)
async def test_parameters(
    llm: OpenAIServer, http: httpx2.AsyncClient, changes: dict[str, Any], message: str
) -> None:
    assert await refusal(llm, http, **changes) == message


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        (
            [{"role": "model", "content": "x"}],
            (
                "Invalid value: 'model'. Supported values are: 'system', 'assistant', 'user', "
                "'function', 'tool', and 'developer'."
            ),
        ),
        (["hi"], "Invalid type for 'messages[0]': expected an object, but got a string instead."),
        ([{**HI, "id": 1}], "Unknown parameter: 'messages[0].id'."),
        (
            [HI, {**YES, "reasoning_content": "Hm."}, HI],
            "Unknown parameter: 'messages[1].reasoning_content'.",
        ),
        (
            [{**HI, "name": "Ana B"}],
            (
                "Invalid 'messages[0].name': string does not match pattern. Expected a string that "
                r"matches the pattern '^[^\s<|\\/>]+$'."
            ),
        ),
        ([{"role": "user"}], "Invalid value for 'content': expected a string, got null."),
        (
            [HI, {"role": "assistant", "content": None}, HI],
            "Invalid value for 'content': expected a string, got null.",
        ),
        (
            [HI, call("c1"), done("c1", None)],
            "Invalid value for 'content': expected a string, got null.",
        ),
        (
            [{"role": "user", "content": {"text": "hi"}}],
            (
                "Invalid type for 'messages[0].content': expected a string or array of objects, but "
                "got an object instead."
            ),
        ),
        (
            [user()],
            (
                "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, "
                "but got an empty array instead."
            ),
        ),
        (
            [user({"type": "image"})],
            (
                "Invalid value: 'image'. Supported values are: 'text', 'image_url', 'input_audio', "
                "'file'."
            ),
        ),
        (
            [user({"type": "text"})],
            "Missing required parameter: 'messages[0].content[0].text'.",
        ),
        (
            [{"role": "user", "content": ""}],
            "Invalid request: the message at position 0 with role 'user' must not be empty",
        ),
        (
            [HI, YES],
            (
                "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
                "assistant"
            ),
        ),
        (
            [user({"type": "image_url", "image_url": "data:image/png;base64,AAAA"})],
            (
                "Invalid type for 'messages[0].content[0].image_url': expected an object, but got a "
                "string instead."
            ),
        ),
        (
            [user(picture("file:///etc/passwd"))],
            (
                "Invalid 'messages[0].content[0].image_url.url'. Expected a valid URL, but got a value "
                "with an invalid format."
            ),
        ),
        (
            [user(picture("data:image/svg+xml;base64,AAAA"))],
            (
                "You uploaded an unsupported image. Please make sure your image has of one the "
                "following formats: ['png', 'jpeg', 'gif', 'webp']."
            ),
        ),
        ([user(picture("data:image/png;base64,%%"))], "Invalid base64 image_url."),
        (
            [HI, call("c1"), done("c1", [picture("https://a.b/c.png")])],
            (
                "Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but "
                "this message with role 'tool' contains an image URL."
            ),
        ),
    ],
)
async def test_messages(
    llm: OpenAIServer, http: httpx2.AsyncClient, messages: list[Any], message: str
) -> None:
    assert await refusal(llm, http, messages=messages) == message


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([HI, call("c1")], UNANSWERED.format("c1")),
        ([HI, call("c1"), HI], UNANSWERED.format("c1")),
        ([HI, call("c1", "c2"), done("c2"), HI], UNANSWERED.format("c1")),
        ([HI, call("c1", "c2"), HI, done("c1"), done("c2")], UNANSWERED.format("c1, c2")),
        ([HI, done("c1")], ORPHAN),
        ([HI, call("c1"), done("c1"), YES, done("c1")], ORPHAN),
        (
            [HI, call("c1"), done("c9")],
            (
                "Invalid parameter: 'tool_call_id' of 'c9' not found in 'tool_calls' of previous "
                "message."
            ),
        ),
        (
            [HI, call("c1"), done("c1"), done("c1")],
            "Duplicate value for 'tool_call_id' of 'c1' in message[3].",
        ),
        (
            [HI, call("c1", "c1"), done("c1")],
            "Duplicate value for 'tool_call_id' of 'c1' in messages[1].",
        ),
        (
            [HI, call("c1"), {"role": "tool", "content": "ok"}],
            "Missing required parameter: 'messages[2].tool_call_id'.",
        ),
        (
            [HI, call(), HI],
            (
                "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length "
                "1, but got an empty array instead."
            ),
        ),
        (
            [HI, call("c" * 41), done("c" * 41)],
            (
                "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with "
                "maximum length 40, but got a string with length 41 instead."
            ),
        ),
        (
            [HI, call(""), done("")],
            (
                "Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum "
                "length 1, but got an empty string instead."
            ),
        ),
        (
            [HI, call("c1", arguments={}), done("c1")],
            (
                "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, "
                "but got an object instead."
            ),
        ),
        (
            [HI, call("c1", name="a.b"), done("c1")],
            (
                "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ),
        ),
    ],
)
async def test_calls_and_answers(
    llm: OpenAIServer, http: httpx2.AsyncClient, messages: list[Any], message: str
) -> None:
    assert await refusal(llm, http, messages=messages) == message


@pytest.mark.parametrize("arguments", ["", "{", "[]", "null", '{"a": 1} x'])
async def test_arguments_hold_a_json_object_on_strict_servers(
    llm: OpenAIServer, http: httpx2.AsyncClient, arguments: str
) -> None:
    messages = [HI, call("c1", arguments=arguments), done("c1")]
    assert '"function.arguments"' in await refusal(llm, http, messages=messages)
    llm.rules.messages.json_arguments = False
    assert await ask(llm, http, messages=messages) == {}


@pytest.mark.parametrize(
    "messages",
    [
        [RULE, HI, HI, YES, YES, HI],
        [{**RULE, "role": "developer"}, {**HI, "name": "Ana_2"}],
        [HI, call("c1", "c2"), done("c2"), done("c1"), YES, call("c1"), done("c1")],
        [HI, call("c1", content="Let me see."), done("c1", [{"type": "text", "text": "ok"}]), HI],
        [HI, call("c1"), done("c1", ""), YES, HI],
        [user(picture("data:image/png;base64,AAAA"), {"type": "text", "text": "what?"})],
    ],
)
async def test_legal_conversations_are_taken(
    llm: OpenAIServer, http: httpx2.AsyncClient, messages: list[Any]
) -> None:
    assert await ask(llm, http, messages=messages, tools=[NOW]) == {}


async def test_openai_itself_takes_more_than_its_like(
    llm: OpenAIServer, http: httpx2.AsyncClient
) -> None:
    llm.rules.messages.user_last = llm.rules.messages.non_empty = False
    messages = [{"role": "user", "content": ""}, YES]
    assert await ask(llm, http, messages=messages) == {}


async def test_messages_over_the_window(llm: OpenAIServer, http: httpx2.AsyncClient) -> None:
    llm.rules.window = 1000
    error = await ask(llm, http, messages=[{"role": "user", "content": "a" * 4000}])
    assert error["code"] == "context_length_exceeded"
    assert error["message"] == (
        "This model's maximum context length is 1000 tokens. However, your messages resulted in "
        "1001 tokens. Please reduce the length of the messages."
    )


async def test_an_answer_that_does_not_fit(llm: OpenAIServer, http: httpx2.AsyncClient) -> None:
    llm.rules.window = 1000
    messages = [{"role": "user", "content": "a" * 3996}]
    assert await refusal(llm, http, messages=messages, max_tokens=100) == (
        "This model's maximum context length is 1000 tokens. However, you requested 1100 tokens "
        "(1000 in the messages, 100 in the completion). Please reduce the length of the messages "
        "or completion."
    )


async def test_keys(llm: OpenAIServer, http: httpx2.AsyncClient) -> None:
    url = f"{llm.base_url}/chat/completions"
    none = await http.post(url, json={})
    assert none.status_code == 401
    assert none.json()["error"]["message"].startswith("You didn't provide an API key.")
    wrong = await http.post(url, json={}, headers={"authorization": "Bearer sk-wrong-0123456789"})
    assert wrong.status_code == 401
    assert wrong.json()["error"]["code"] == "invalid_api_key"
    assert wrong.json()["error"]["message"].startswith("Incorrect API key provided: sk-wrong****")


async def test_an_unknown_model(llm: OpenAIServer, http: httpx2.AsyncClient) -> None:
    llm.rules.any_model = False
    error = await ask(llm, http, model="gpt-9")
    assert (error["status"], error["code"]) == (404, "model_not_found")


async def asked(rules: Rules, http: httpx2.AsyncClient, **changes: Any) -> str:
    """What a server of these rules says; empty when it is content."""
    async with OpenAIServer(rules) as llm:
        return str((await ask(llm, http, **changes)).get("message", ""))


async def test_servers_that_know_only_one_name_for_the_cap(http: httpx2.AsyncClient) -> None:
    old, new = only_max_tokens(), Rules(completion_tokens_only=True)
    assert await asked(old, http, max_tokens=5) == ""
    assert await asked(old, http, max_completion_tokens=5) == (
        "Unrecognized request argument supplied: max_completion_tokens"
    )
    assert await asked(new, http, max_completion_tokens=5) == ""
    assert await asked(new, http, max_tokens=5) == (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead."
    )


async def test_deepseek_wants_reasoning_back_beside_calls(http: httpx2.AsyncClient) -> None:
    without = [HI, {**YES}, HI, call("c1"), done("c1")]
    assert await asked(deepseek(), http, messages=without) == (
        "Missing `reasoning_content` field in the assistant message at message index 3. For more "
        "information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
    )
    sealed = [HI, call("c1", reasoning_content="Hm."), done("c1")]
    assert await asked(deepseek(), http, messages=sealed) == ""
    assert await asked(deepseek(), http, messages=[HI, done("c1")]) == (
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
    )


async def test_tool_content_may_have_to_be_a_string(http: httpx2.AsyncClient) -> None:
    parts = [{"type": "text", "text": "ok"}]
    messages = [HI, call("c1", reasoning_content="Hm."), done("c1", parts)]
    assert await asked(deepseek(), http, messages=messages) == "Param Incorrect"


async def test_mistral_wants_ids_of_nine_and_no_user_after_a_tool(
    http: httpx2.AsyncClient,
) -> None:
    assert await asked(mistral(), http, messages=[HI, call("call_1"), done("call_1")]) == (
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
    )
    nine = [HI, call("abcdefgh1"), done("abcdefgh1")]
    assert await asked(mistral(), http, messages=nine) == ""
    assert await asked(mistral(), http, messages=[*nine, HI]) == (
        "Unexpected role 'user' after role 'tool'"
    )


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([RULE, HI, YES, HI, call("c1"), done("c1")], ""),
        ([HI, call("c1"), done("c1"), HI], ""),
        ([HI, HI], "Conversation roles must alternate user/assistant/user/assistant/..."),
        ([YES, HI], "Conversation roles must alternate user/assistant/user/assistant/..."),
        (
            [HI, YES, call("c1"), done("c1")],
            (
                "Please ensure that function call turn comes immediately after a user turn or after a "
                "function response turn."
            ),
        ),
        (
            [RULE, call("c1"), done("c1")],
            (
                "<400> InternalError.Algo.InvalidParameter: The input messages do not contain elements "
                "with the role of user"
            ),
        ),
    ],
)
async def test_servers_that_want_roles_in_turn(
    http: httpx2.AsyncClient, messages: list[Any], message: str
) -> None:
    assert await asked(alternating(), http, messages=messages) == message
