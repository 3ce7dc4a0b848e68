"""What providers say when they refuse, and what each refusal wants.

The literal texts are those of public reports and of the providers' documentation.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import RefusalKind as K
from agent.providers.errors import MOST_DETAIL, classify, detail_of, refusal_of

Row = tuple[int | None, Any, K, int | None, int | None]  # status, body, kind, limit, requested


def said(message: str, code: str | None = None, type: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def anthropic_said(message: str, type: str = "invalid_request_error") -> dict[str, Any]:
    """An error in Anthropic's shape."""
    return {"type": "error", "error": {"type": type, "message": message}, "request_id": "req_01"}


ANTHROPIC: list[Row] = [
    (
        400,
        anthropic_said(
            "input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000, "
            "decrease input length or `max_tokens` and try again"
        ),
        K.OUTPUT_CAP,
        11_941,
        20_000,
    ),
    (
        400,
        anthropic_said(
            "input length and `max_tokens` exceed context limit: 200059 + 20000 > 200000, "
            "decrease input length or `max_tokens` and try again"
        ),
        K.OVERFLOW,
        200_000,
        200_059,
    ),
    (
        400,
        anthropic_said(
            "max_tokens: 32768 > context_window: 200000 - input_tokens: 190000 = "
            "available_tokens: 10000"
        ),
        K.OUTPUT_CAP,
        10_000,
        32_768,
    ),
    (
        400,
        anthropic_said(
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for x"
        ),
        K.OUTPUT_CAP,
        64_000,
        100_000,
    ),
    (
        400,
        anthropic_said("prompt is too long: 250000 tokens > 200000 maximum"),
        K.OVERFLOW,
        200_000,
        250_000,
    ),
    (
        413,
        {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}},
        K.OVERFLOW,
        None,
        None,
    ),
    (401, anthropic_said("invalid x-api-key", "authentication_error"), K.AUTH, None, None),
    (
        403,
        anthropic_said(
            "Your API key does not have permission to use the specified resource.",
            "permission_error",
        ),
        K.AUTH,
        None,
        None,
    ),
    (404, anthropic_said("model: claude-none", "not_found_error"), K.AUTH, None, None),
    (
        400,
        anthropic_said("Your credit balance is too low to access the Anthropic API."),
        K.QUOTA,
        None,
        None,
    ),
    (
        429,
        anthropic_said(
            "This request would exceed your organization's rate limit of 30,000 input tokens per "
            "minute. Please reduce the prompt length or the maximum tokens requested.",
            "rate_limit_error",
        ),
        K.RATE_LIMIT,
        None,
        None,
    ),
    (529, anthropic_said("Overloaded", "overloaded_error"), K.TRANSIENT, None, None),
    (500, anthropic_said("Internal server error", "api_error"), K.TRANSIENT, None, None),
    *[
        (400, anthropic_said(message), K.FORMAT, None, None)
        for message in (
            (
                "messages.33: `tool_use` ids were found without `tool_result` blocks immediately "
                "after: toolu_01. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message."
            ),
            (
                "messages.62.content.1: unexpected tool_use_id found in tool_result blocks: toolu_01. "
                "Each tool_result block must have a corresponding tool_use block in the previous "
                "message."
            ),
            "messages.3.content.1: `tool_use` ids must be unique",
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            "messages: text content blocks must be non-empty",
            "messages: text content blocks must contain non-whitespace text",
            "messages: at least one message is required",
            (
                "This model does not support assistant message prefill. The conversation must end "
                "with a user message."
            ),
            "Tool names must be unique",
            "messages.1.content.0: Invalid `signature` in `thinking` block",
        )
    ],
    (
        400,
        anthropic_said(
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes "
            "> 5242880 bytes"
        ),
        K.MEDIA,
        None,
        None,
    ),
    (400, anthropic_said("Could not process image"), K.MEDIA, None, None),
]

OPENAI: list[Row] = [
    (
        400,
        said(
            "This model's maximum context length is 128000 tokens. However, your messages resulted "
            "in 130412 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
            "invalid_request_error",
        ),
        K.OVERFLOW,
        128_000,
        130_412,
    ),
    (
        400,
        said(
            "This model's maximum context length is 128000 tokens. However, you requested 130000 "
            "tokens (120000 in the messages, 10000 in the completion). Please reduce the length of "
            "the messages or completion.",
            "context_length_exceeded",
        ),
        K.OUTPUT_CAP,
        8_000,
        10_000,
    ),
    (
        None,
        {
            "type": "response.failed",
            "code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model. Please adjust your "
            "input and try again.",
        },
        K.OVERFLOW,
        None,
        None,
    ),
    (
        400,
        said("Input too long.", "context_length_exceeded", "invalid_request_error"),
        K.OVERFLOW,
        None,
        None,
    ),
    (
        429,
        said(
            "Rate limit reached for gpt-4 in organization org-abc on tokens per min (TPM): Limit "
            "10000, Used 8339, Requested 7835. Please try again in 37.044s. Visit "
            "https://platform.openai.com/account/rate-limits to learn more.",
            "rate_limit_exceeded",
            "tokens",
        ),
        K.RATE_LIMIT,
        None,
        None,
    ),
    (
        429,
        said("You exceeded the token limit for this period", "rate_limit_exceeded", "tokens"),
        K.RATE_LIMIT,
        None,
        None,
    ),
    (
        429,
        said(
            "You exceeded your current quota, please check your plan and billing details. For more "
            "information on this error, read the docs: https://platform.openai.com/docs.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        K.QUOTA,
        None,
        None,
    ),
    (
        429,
        said(
            "Request too large for gpt-4o in organization org-abc on tokens per min (TPM): Limit "
            "30000, Requested 33926. The input or output tokens must be reduced in order to run "
            "successfully.",
            "rate_limit_exceeded",
            "tokens",
        ),
        K.REQUEST_TOO_LARGE,
        30_000,
        33_926,
    ),
    (
        400,
        said(
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
        ),
        K.FORMAT,
        None,
        None,
    ),
    (
        400,
        said(
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with "
            "maximum length 40, but got a string with length 90 instead.",
            "string_above_max_length",
        ),
        K.FORMAT,
        None,
        None,
    ),
    (
        400,
        said(
            "Invalid 'messages[1].content': string too long. Expected a string with maximum length "
            "10485760, but got a string with length 20971520 instead.",
            "string_above_max_length",
        ),
        K.OVERFLOW,
        None,
        None,
    ),
    (
        400,
        said(
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, "
            "whereas you provided 100000.",
            "invalid_value",
        ),
        K.OUTPUT_CAP,
        16_384,
        100_000,
    ),
    (401, said("Incorrect API key provided: sk-abc***xyz.", "invalid_api_key"), K.AUTH, None, None),
    (
        400,
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's "
                "content management policy. Please modify your prompt and retry.",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
        K.CONTENT_FILTER,
        None,
        None,
    ),
]

ASIA: list[Row] = [
    *[
        (400, said(message, "invalid_request_error"), K.FORMAT, None, None)
        for message in (
            (
                "Missing `reasoning_content` field in the assistant message at message index 2. For "
                "more information, please refer to https://api-docs.deepseek.com/guides"
            ),
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
        )
    ],
    (
        400,
        said("Content Exists Risk", "invalid_request_error", "invalid_request_error"),
        K.CONTENT_FILTER,
        None,
        None,
    ),
    (
        400,
        said("Invalid max_tokens value, the valid range of max_tokens is [1, 393216]"),
        K.OUTPUT_CAP,
        393_216,
        None,
    ),
    (400, said("Range of max_tokens should be [1, 65536]"), K.OUTPUT_CAP, 65_536, None),
    (400, said("Range of input length should be [1, 131072]"), K.OVERFLOW, 131_072, None),
    (
        429,
        said(
            "You exceeded your current quota, please check your plan and billing details.",
            "Throttling.AllocationQuota",
        ),
        K.RATE_LIMIT,
        None,
        None,
    ),
    (
        429,
        said(
            "Allocated quota exceeded, please increase your quota limit.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        K.RATE_LIMIT,
        None,
        None,
    ),
    *[
        (429, said(message), K.RATE_LIMIT, None, None)
        for message in (
            "Requests rate limit exceeded, please try again later.",
            "You have exceeded your request limit.",
            (
                "Request rate increased too quickly. To ensure system stability, please adjust your "
                "client logic to scale requests more smoothly over time."
            ),
            "Too many requests in route. Please try again later.",
        )
    ],
    (
        400,
        said("Access denied, please make sure your account is in good standing.", "Arrearage"),
        K.QUOTA,
        None,
        None,
    ),
    (403, said("The free tier of the model has been exhausted."), K.QUOTA, None, None),
    (429, said("The postpaid bill is overdue."), K.QUOTA, None, None),
    *[
        (400, said(message, "data_inspection_failed"), K.CONTENT_FILTER, None, None)
        for message in (
            "Input or output data may contain inappropriate content.",
            "Input data may contain inappropriate content.",
            "Output data may contain inappropriate content.",
        )
    ],
    (
        503,
        said(
            "Too many requests. Your requests are being throttled due to system capacity limits. "
            "Please try again later."
        ),
        K.TRANSIENT,
        None,
        None,
    ),
    (
        400,
        said(
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
            None,
            "invalid_request_error",
        ),
        K.OVERFLOW,
        262_144,
        291_351,
    ),
    (
        429,
        said(
            "You exceeded your current token quota: <org> {credit}, please check your account "
            "balance",
            None,
            "exceeded_current_quota_error",
        ),
        K.QUOTA,
        None,
        None,
    ),
    (
        429,
        said("Your account org-x is suspended, please check your plan and billing details"),
        K.QUOTA,
        None,
        None,
    ),
    (
        429,
        said(
            "Your account org-abc123<ak-def456> request reached organization max RPM: 3, please "
            "try again after 1 seconds",
            None,
            "rate_limit_reached_error",
        ),
        K.RATE_LIMIT,
        None,
        None,
    ),
    (401, said("Invalid Authentication"), K.AUTH, None, None),
    (403, said("The API you are accessing is not open"), K.AUTH, None, None),
    (404, said("Not found the model kimi-x or Permission denied"), K.AUTH, None, None),
    (
        400,
        said("invalid params, context window exceeds limit (2013)", None, "bad_request_error"),
        K.OVERFLOW,
        None,
        None,
    ),
    (400, said("media exceeds size limit: max 10485760 bytes (2013)"), K.MEDIA, None, None),
    (400, said("prompt is too long (2013)"), K.OVERFLOW, None, None),
    (400, said("tokens in request more than max tokens allowed", "1210"), K.OVERFLOW, None, None),
    (400, said("Prompt exceeds max length", "1261"), K.OVERFLOW, None, None),
    (400, said("Prompt 超长", "1261"), K.OVERFLOW, None, None),
    (400, said("messages 参数非法。请检查文档。", "1214"), K.FORMAT, None, None),
    (400, said("系统检测到输入或生成内容可能包含敏感内容", "1301"), K.CONTENT_FILTER, None, None),
    (
        400,
        {"error_code": 336103, "error_msg": "Prompt tokens too long"},
        K.OVERFLOW,
        None,
        None,
    ),
    *[
        (400, said(message), K.OVERFLOW, None, None)
        for message in (
            "超出了模型最大token限制。",
            "请求超过最大上下文长度",
            "输入长度超过模型上限",
        )
    ],
    (
        400,
        {"error": {"message": "Param Incorrect", "param": "text is not set"}},
        K.FORMAT,
        None,
        None,
    ),
]

OTHERS: list[Row] = [
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "The input token count (1196265) exceeds the maximum number of tokens "
                "allowed (1048575).",
                "status": "INVALID_ARGUMENT",
            }
        },
        K.OVERFLOW,
        1_048_575,
        1_196_265,
    ),
    (
        400,
        said("input token count is 32825 but model only supports up to 32768"),
        K.OVERFLOW,
        32_768,
        32_825,
    ),
    (
        400,
        said(
            "Please ensure that function call turn comes immediately after a user turn or after a "
            "function response turn."
        ),
        K.FORMAT,
        None,
        None,
    ),
    (
        503,
        {
            "error": {
                "code": 503,
                "message": "The model is overloaded. Please try again later.",
                "status": "UNAVAILABLE",
            }
        },
        K.TRANSIENT,
        None,
        None,
    ),
    (
        429,
        said(
            "Quota exceeded for metric: generativelanguage.googleapis.com/"
            "generate_content_input_token_count, limit: 0",
            "RESOURCE_EXHAUSTED",
        ),
        K.RATE_LIMIT,
        None,
        None,
    ),
    (
        413,
        said(
            "Request too large for model `openai/gpt-oss-120b` in organization `org_01` service "
            "tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 11881, Please "
            "reduce your message size and try again. Need more tokens? Upgrade to Dev Tier today "
            "at https://console.groq.com/settings/billing",
            "rate_limit_exceeded",
            "tokens",
        ),
        K.REQUEST_TOO_LARGE,
        8_000,
        11_881,
    ),
    (
        429,
        said(
            "Request too large for model `x` on output tokens per minute (OTPM): Limit 1000, "
            "Requested 2048"
        ),
        K.REQUEST_TOO_LARGE,
        1_000,
        2_048,
    ),
    (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 149617 "
            "tokens.",
        },
        K.OVERFLOW,
        131_072,
        149_617,
    ),
    (
        400,
        said(
            "Provider returned error: Input length 131393 exceeds the maximum allowed input length "
            "of 131040 tokens."
        ),
        K.OVERFLOW,
        131_040,
        131_393,
    ),
    (400, said("Input is too long for requested model."), K.OVERFLOW, None, None),
    (
        400,
        "ValidationException: The input is too long for the model",
        K.OVERFLOW,
        None,
        None,
    ),
    (
        400,
        said(
            "invalid_prompt: prompt tokens (330095) exceed model maximum (278528) for base model abc"
        ),
        K.OVERFLOW,
        278_528,
        330_095,
    ),
    (
        429,
        said("ThrottlingException: Too many tokens, please wait before trying again."),
        K.RATE_LIMIT,
        None,
        None,
    ),
    (
        400,
        "ThrottlingException: Too many tokens, please wait before trying again.",
        K.RATE_LIMIT,
        None,
        None,
    ),
    (
        400,
        said(
            "Prompt contains 40046 tokens and 0 draft tokens, too large for model with 32768 "
            "maximum context length"
        ),
        K.OVERFLOW,
        32_768,
        40_046,
    ),
    (
        400,
        said(
            "The input (516368 tokens) is longer than the model's context length (262144 tokens)."
        ),
        K.OVERFLOW,
        262_144,
        516_368,
    ),
    (
        400,
        said(
            "Input token count + max_tokens parameter must be less than the context length of the "
            "model being queried."
        ),
        K.OVERFLOW,
        None,
        None,
    ),
    (
        400,
        said(
            "This model's maximum context length is 196608 tokens. However, you requested 16384 "
            "output tokens and your prompt contains at least 180225 input tokens, for a total of "
            "at least 196609 tokens. Please reduce the length of the input prompt or the number of "
            "requested output tokens. (parameter=input_tokens, value=180225)"
        ),
        K.OUTPUT_CAP,
        None,
        16_384,
    ),
    (
        400,
        said(
            "max_completion_tokens is too large: 99999.This model supports at most 32768 "
            "completion tokens."
        ),
        K.OUTPUT_CAP,
        32_768,
        99_999,
    ),
    (
        400,
        said("Input length (40000 tokens) exceeds the maximum allowed length (32768 tokens)."),
        K.OVERFLOW,
        32_768,
        40_000,
    ),
    (
        400,
        said("Multimodal prompt is too long after expanding multimodal tokens."),
        K.OVERFLOW,
        None,
        None,
    ),
    (
        400,
        said("Input length (265330) exceeds model's maximum context length (262144)."),
        K.OVERFLOW,
        262_144,
        265_330,
    ),
    (
        400,
        said(
            "request (66202 tokens) exceeds the available context size (65536 tokens), try "
            "increasing it",
            None,
            "exceed_context_size_error",
        ),
        K.OVERFLOW,
        65_536,
        66_202,
    ),
    (
        400,
        said("the request exceeds the available context size, try increasing it"),
        K.OVERFLOW,
        None,
        None,
    ),
    (400, said("Context size has been exceeded."), K.OVERFLOW, None, None),
    (
        400,
        said("prompt too long; exceeded max context length by 100918 tokens"),
        K.OVERFLOW,
        None,
        None,
    ),
    (
        400,
        {"error": "the input length exceeds the context length of 4096"},
        K.OVERFLOW,
        4_096,
        None,
    ),
    (400, {"error": "context length exceeded"}, K.OVERFLOW, None, None),
    (
        400,
        said(
            "prompt token count of 140000 exceeds the limit of 128000",
            "model_max_prompt_tokens_exceeded",
        ),
        K.OVERFLOW,
        128_000,
        140_000,
    ),
    (
        400,
        {
            "message": "too many tokens: total number of tokens in the prompt cannot exceed 8192 - "
            "received 9000."
        },
        K.OVERFLOW,
        8_192,
        9_000,
    ),
    (
        422,
        {
            "error": "Input validation error: `inputs` must have less than 4096 tokens. Given: "
            "5000.",
            "error_type": "validation",
        },
        K.OVERFLOW,
        4_096,
        5_000,
    ),
    (400, said("Token limit exceeded, please try again later."), K.OVERFLOW, None, None),
    (
        503,
        said(
            "litellm.ServiceUnavailableError: Requested token count exceeds the model's maximum "
            "context length of 131072 tokens."
        ),
        K.OVERFLOW,
        131_072,
        None,
    ),
    *[
        (400, said(message), K.FORMAT, None, None)
        for message in (
            "tool message content must be a string",
            "Input should be a valid string: expected string, got list",
            "tool_call.content must be string",
        )
    ],
]

SHAPES: list[Row] = [
    (400, "", K.UNKNOWN, None, None),
    (400, b"", K.UNKNOWN, None, None),
    (400, None, K.UNKNOWN, None, None),
    (400, "400 status code (no body)", K.UNKNOWN, None, None),
    (418, [], K.UNKNOWN, None, None),
    (500, "", K.TRANSIENT, None, None),
    (502, "<!doctype html><html><title>context length</title></html>", K.TRANSIENT, None, None),
    (None, "", K.TRANSIENT, None, None),
    (401, {"error": "Unauthorized"}, K.AUTH, None, None),
    (
        400,
        {"object": "error", "message": "prompt is too long", "code": 400},
        K.OVERFLOW,
        None,
        None,
    ),
    (408, "", K.TRANSIENT, None, None),
    (402, "", K.QUOTA, None, None),
    (None, {"type": "overloaded_error", "message": "Overloaded"}, K.TRANSIENT, None, None),
    (None, {"type": "rate_limit_error", "message": "slow down"}, K.RATE_LIMIT, None, None),
    (
        None,
        said(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 33926. "
            "The input or output tokens must be reduced.",
            "rate_limit_exceeded",
            "tokens",
        ),
        K.REQUEST_TOO_LARGE,
        30_000,
        33_926,
    ),
]

ROWS = [*ANTHROPIC, *OPENAI, *ASIA, *OTHERS, *SHAPES]


def test_every_known_refusal_gets_its_kind_and_its_numbers() -> None:
    """One test for the whole table: each row of which this is not so is told, all at once."""
    wrong: list[str] = []
    for status, body, *expected in ROWS:
        shapes: list[Any] = [body, json.dumps(body)] if isinstance(body, dict) else [body]
        for given_body in shapes:
            refusal = classify(status, given_body)
            got = [refusal.kind, refusal.limit_tokens, refusal.requested_tokens]
            if got != expected:
                wrong.append(f"{status} {given_body!r}: {got} is not {expected}")
    assert not wrong, "\n".join(wrong)


def test_the_time_to_wait_is_the_headers_and_else_the_words() -> None:
    words = said("Rate limit reached. Please try again in 37.044s.")
    assert classify(429, words).retry_after_s == 37.044
    assert classify(429, words, 3.0).retry_after_s == 3.0
    assert classify(429, said("Please try again in 120ms.")).retry_after_s == 0.12
    assert classify(429, said("later")).retry_after_s is None


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("in organization org-AbC123dEf on", "AbC123dEf"),
        ("in organization `org_01jabcd` service", "01jabcd"),
        ("project-77aa is disabled", "77aa"),
        ("Your account org-9f8a<ak-77ab> request", "77ab"),
        ("Incorrect API key provided: sk-abc***xyz. You", "xyz"),
        ("Incorrect API key provided: local*****7key. You", "7key"),
        ("Visit https://example.com/account?token=s3cret to learn", "s3cret"),
        ("key AIzaSyA1234567890abcdefghijklmnopqrs is", "AIzaSyA"),
        ("authorization: Bearer abc.def", "abc.def"),
        ("contact ana@example.com now", "ana@"),
    ],
)
def test_no_id_key_or_address_is_left_in_the_detail(text: str, gone: str) -> None:
    assert gone not in detail_of(text)
    assert gone not in classify(400, said(text)).detail


def test_what_helps_stays_in_the_detail() -> None:
    text = "req_011CSHoEeqs5C35K2UUqR7Fy messages.3.content.1: `tool_use` ids must be unique"
    assert detail_of(text) == text


LISTS = Path(__file__).parent / "refusals"


def listed() -> list[tuple[str, int | None, K, int | None, int | None, Any]]:
    """The lists in `refusals/`: each line as (where, status, kind, limit, requested, body)."""
    rows: list[Any] = []
    for path in sorted(LISTS.glob("*.txt")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line and not line.startswith("#"):
                status, kind, limit, requested, body = line.split(" ", 4)
                figures = [
                    None if text == "-" else int(text) for text in (status, limit, requested)
                ]
                where = f"{path.stem}:{number}"
                given = json.loads(body) if body.startswith("{") else body
                rows.append((where, figures[0], K(kind), figures[1], figures[2], given))
    return rows


LISTED = listed()


def wrapped(status: int | None, body: Any) -> dict[str, Any]:
    """The same refusal as relays, SDKs and streams hand it on."""
    text = body if isinstance(body, str) else json.dumps(body)
    inner = said(body) if isinstance(body, str) else body
    raw = {"message": "Provider returned error", "metadata": {"raw": json.dumps(inner)}}
    return {
        "in OpenAI's shape": inner,
        "as text": text,
        "as bytes": text.encode(),
        "in Anthropic's shape": anthropic_said(text, "error"),
        "as a string": {"error": text},
        "in a list": [{"error": {"message": text}}],
        "in OpenRouter's": {"error": raw},
        "twice in a string": {"error": {"message": json.dumps(json.dumps(inner))}},
        "in LiteLLM's": said(
            f"litellm.APIError: OpenAIException - {json.dumps(inner)}", str(status)
        ),
        "as an event": f"event: error\ndata: {json.dumps(inner)}\n\n",
    }


@pytest.mark.parametrize("listing", sorted({row[0].split(":")[0] for row in LISTED}))
def test_a_refusal_is_told_however_it_is_wrapped(listing: str) -> None:
    """One test for each file: every line and wrapping of which this is not so is told, all at once."""
    wrong: list[str] = []
    rows = [row for row in LISTED if row[0].startswith(f"{listing}:")]
    for where, status, kind, limit, requested, body in rows:
        for how, given_body in wrapped(status, body).items():
            refusal = classify(status, given_body)
            got = (refusal.kind, refusal.limit_tokens, refusal.requested_tokens)
            if got != (kind, limit, requested):
                wrong.append(f"{where} {how}: {got} is not {(kind, limit, requested)}")
    assert not wrong, "\n".join(wrong)


def test_the_same_words_mean_money_at_one_provider_and_a_minute_at_another() -> None:
    words = said(
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
    )
    assert classify(429, words).kind is K.QUOTA
    assert classify(429, words, provider="DashScope").kind is K.RATE_LIMIT
    assert classify(429, words, provider="dashscope-intl.aliyuncs.com").kind is K.RATE_LIMIT
    paid = said("Access denied, please make sure your account is in good standing.", "Arrearage")
    assert classify(400, paid, provider="dashscope").kind is K.QUOTA


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 7m12s.", 432.0),
        ("Please try again in 4m19.2s. Need more tokens?", 259.2),
        ("Please try again in 1 hour.", 3_600.0),
        ("Try again in 1 minute 5 seconds", 65.0),
        ("Please retry after 26 seconds.", 26.0),
        ("reached max RPM: 3, please try again after 1 seconds", 1.0),
        ("Please wait 37 seconds before retrying.", 37.0),
        ("请在20秒后重试", 20.0),
        ("20秒後に再試行してください", 20.0),
        ("20초 후에 다시 시도하세요", 20.0),
        ("повторите попытку через 20 секунд", 20.0),
        ("Bitte versuchen Sie es in 20 Sekunden erneut.", 20.0),
        ("réessayez dans 30 secondes", 30.0),
        ("Inténtelo de nuevo en 30 segundos", 30.0),
        ("Tente novamente em 5 segundos", 5.0),
        ("Riprova tra 15 secondi", 15.0),
        ("30 saniye sonra tekrar deneyin", 30.0),
        ("حاول مرة أخرى بعد ٢٠ ثانية", 20.0),
        ("Vui lòng thử lại sau 10 giây", 10.0),
        ("Retry in 2 minutes and 5 seconds", 125.0),
        ("upstream is rate limiting us, try in 1m30s", 90.0),
        ("Coba lagi dalam 2 menit", 120.0),
        ("कृपया 30 सेकंड बाद पुनः प्रयास करें", 30.0),
        ("נסה שוב בעוד 20 שניות", 20.0),
        ("โปรดลองอีกครั้งใน 20 วินาที", 20.0),
        ("২০ সেকেন্ড পরে আবার চেষ্টা করুন", 20.0),
        ("Probeer het over 20 seconden opnieuw", 20.0),
        ("Spróbuj ponownie za 2 minuty", 120.0),
        ("There are 3 extra 20 s clips", None),
        ("Limit 60 per 60s exceeded", None),
        ("You will regain access on 2026-11-01 at 00:00 UTC", None),
        ({"error": {"details": [{"@type": "RetryInfo", "retryDelay": "34s"}]}}, 34.0),
        ({"error": {"message": "slow down", "retry_after": 20}}, 20.0),
        ({"retry_after_ms": 1500}, 1.5),
        ({"error": {"type": "usage_limit_reached", "resets_in_seconds": 7200}}, 7_200.0),
    ],
)
def test_a_wait_is_read_in_each_of_its_wordings(words: Any, seconds: float | None) -> None:
    assert classify(429, words).retry_after_s == seconds


STATUSES = st.none() | st.integers(-1, 1_000)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
# What the patterns look for, in no order that anybody wrote.
PIECES = st.sampled_from(
    [word for row in LISTED for word in str(row[5]).split()]
    + ["{", "[", '"', "\\u", "<html", "\ud800"]
)


@given(STATUSES, st.text() | st.binary() | JSON | st.lists(PIECES).map(" ".join))
@settings(deadline=None)
def test_any_body_gives_a_refusal_with_one_bounded_line(status: int | None, body: Any) -> None:
    refusal = classify(status, body)
    assert len(refusal.detail) <= MOST_DETAIL
    assert "\n" not in refusal.detail
    refusal.detail.encode()
    for number in (refusal.limit_tokens, refusal.requested_tokens, refusal.retry_after_s):
        assert number is None or number >= 0


@given(JSON)
@settings(deadline=None)
def test_a_body_means_the_same_parsed_and_as_text(body: Any) -> None:
    assert classify(400, body) == classify(400, json.dumps(body))


@pytest.mark.parametrize("piece", ['{"a":', "[", '["', "9", "a-1.", "input ", "\\u00", "model "])
def test_a_body_without_end_is_read_in_part(piece: str) -> None:
    assert classify(400, piece * 100_000).kind in (K.UNKNOWN, K.FORMAT)


def test_deep_json_is_read_as_far_as_a_provider_goes() -> None:
    deep: Any = "prompt is too long"
    for _ in range(5_000):
        deep = [deep]
    assert classify(400, deep).kind is K.UNKNOWN


def test_what_the_request_held_is_no_refusal_and_not_logged() -> None:
    echo = {"role": "user", "content": "my rate limit: the prompt is too long"}
    detail = [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": echo}]
    refusal = classify(422, {"detail": detail})
    assert refusal.kind is K.FORMAT
    assert "my rate" not in refusal.detail


def response(status: int, body: Any, **headers: str) -> httpx2.Response:
    request = httpx2.Request("POST", "http://127.0.0.1/v1")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json=body, headers=named, request=request)


REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (openai.APIConnectionError(request=REQUEST), K.TRANSIENT),
        (openai.APITimeoutError(request=REQUEST), K.TRANSIENT),
        (anthropic.APIConnectionError(request=REQUEST), K.TRANSIENT),
        (anthropic.APITimeoutError(request=REQUEST), K.TRANSIENT),
        (httpx2.RemoteProtocolError("peer closed connection"), K.TRANSIENT),
        (httpx2.ReadTimeout("nothing"), K.TRANSIENT),
        (httpx2.ConnectError("refused"), K.TRANSIENT),
        (json.JSONDecodeError("Expecting value", "{", 1), K.TRANSIENT),
        (openai.APIError("boom", REQUEST, body={"type": "server_error"}), K.TRANSIENT),
        (
            openai.APIError("x", REQUEST, body={"code": "rate_limit_exceeded", "message": "slow"}),
            K.RATE_LIMIT,
        ),
        (
            openai.APIError("x", REQUEST, body={"code": "context_length_exceeded"}),
            K.OVERFLOW,
        ),
        (
            openai.BadRequestError(
                "x",
                response=response(400, {}),
                body={"code": "context_length_exceeded", "message": "Input too long."},
            ),
            K.OVERFLOW,
        ),
        (
            anthropic.APIStatusError(  # an error event: the stream's own status is 200
                "x",
                response=response(200, {}),
                body={"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
            ),
            K.TRANSIENT,
        ),
        (
            anthropic.APIStatusError(
                "x",
                response=response(200, {}),
                body={"type": "error", "error": {"type": "rate_limit_error", "message": "x"}},
            ),
            K.RATE_LIMIT,
        ),
    ],
)
def test_whatever_the_sdks_raise_is_a_refusal(error: Exception, kind: K) -> None:
    assert refusal_of(error).kind is kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "3"}, 3.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "-4"}, 0.0),
        ({"retry_after_ms": "250", "retry_after": "1"}, 0.25),
        ({"retry_after": "soon"}, None),
        ({"retry_after": ""}, None),
        ({"retry_after": "inf"}, None),
        ({"retry_after_ms": "nan"}, None),
        ({"retry_after": "Mon, 01 Jan 99999999999999 00:00:00 GMT"}, None),
        ({}, None),
        (
            {"retry_after": format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True)},
            0.0,
        ),
    ],
)
def test_retry_after_is_read_in_each_of_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    answer = response(429, {}, **headers)
    error = openai.RateLimitError("slow", response=answer, body=None)
    assert refusal_of(error).retry_after_s == seconds


def test_a_date_to_come_is_read_as_seconds() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    error = openai.RateLimitError("slow", response=response(429, {}, retry_after=date), body=None)
    seconds = refusal_of(error).retry_after_s
    assert seconds is not None
    assert 3_000 < seconds <= 3_600


@pytest.mark.parametrize("error", [TypeError("no"), KeyError("x"), RuntimeError("x"), ValueError()])
def test_a_mistake_of_ours_is_not_tried_again(error: Exception) -> None:
    refusal = refusal_of(error)
    assert refusal.kind is K.UNKNOWN
    assert refusal.detail.startswith(type(error).__name__)


def test_the_host_that_refused_tells_whose_words_they_are() -> None:
    request = httpx2.Request("POST", "https://dashscope.aliyuncs.com/compatible-mode/v1")
    answer = httpx2.Response(429, json={}, request=request)
    body = {"code": "insufficient_quota", "message": "You exceeded your current quota"}
    error = openai.RateLimitError("slow", response=answer, body=body)
    assert refusal_of(error).kind is K.RATE_LIMIT
