"""What providers say when they refuse, as tables for `agent.providers.errors`.

The literal texts behind them stand in `tests/agent/providers/test_errors.py`. All patterns are
matched against lower-case text.
"""

from __future__ import annotations

import re

from agent.errors import RefusalKind

K = RefusalKind


def any_of(*patterns: str) -> re.Pattern[str]:
    """One pattern of several."""
    return re.compile("|".join(patterns), re.DOTALL)


# Codes and types that mean one thing. What some providers misuse is not here: `invalid_request_error`
# (anything), `rate_limit_exceeded` (also requests that are larger than the quota).
CODES = {
    "context_length_exceeded": K.OVERFLOW,
    "model_max_prompt_tokens_exceeded": K.OVERFLOW,
    "model_context_window_exceeded": K.OVERFLOW,
    "request_too_large": K.OVERFLOW,
    "1210": K.OVERFLOW,  # Zhipu
    "1261": K.OVERFLOW,
    "336103": K.OVERFLOW,  # Baidu
    "content_filter": K.CONTENT_FILTER,
    "responsibleaipolicyviolation": K.CONTENT_FILTER,
    "data_inspection_failed": K.CONTENT_FILTER,
    "datainspectionfailed": K.CONTENT_FILTER,
    "1301": K.CONTENT_FILTER,
    "arrearage": K.QUOTA,
    "billing_error": K.QUOTA,
    "exceeded_current_quota_error": K.QUOTA,
    "invalid_api_key": K.AUTH,
    "model_not_found": K.AUTH,
    "1214": K.FORMAT,
}

# The status that a typed error event in a stream stands for.
STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

BY_STATUS = {
    401: K.AUTH,
    402: K.QUOTA,
    403: K.AUTH,
    404: K.AUTH,
    408: K.TRANSIENT,
    409: K.TRANSIENT,
    413: K.OVERFLOW,
    422: K.FORMAT,
    425: K.TRANSIENT,
    429: K.RATE_LIMIT,
}

# One request larger than what a minute allows. Some say so with 413, some with 429.
REQUEST_TOO_LARGE = any_of(
    r"request too large for", r"tokens per min\w* \([a-z]*tpm\): limit.*must be reduced"
)

QUOTA = any_of(
    r"check your plan and billing",
    r"overdue",
    r"in good standing",
    r"free tier .*exhausted",
    r"credit balance",
    r"check your account balance",
    r"insufficient[ _](?:balance|quota)",
    r"account .*is suspended",
)
# DashScope says "quota" when it means the minute's, in OpenAI's very words for a lack of money.
DASHSCOPE_THROTTLING = any_of(
    r"throttling\.", r"allocated quota exceeded", r"aliyun", r"alibabacloud"
)

RATE_LIMIT = any_of(
    r"throttl",
    r"too many tokens, please wait",
    r"rate limit",
    r"rate increased too quickly",
    r"too many requests",
    r"request limit",
    r"(?:tokens|requests) per (?:min|day)",
    r"quota exceeded for metric",
    r"resource_exhausted",
    r"limit for this period",
)

CONTENT_FILTER = any_of(
    r"content management policy",
    r"content exists risk",
    r"inappropriate content",
    r"data may contain",
    r"(?:sensitive|unsafe) (?:content|text)",
)

MEDIA = any_of(
    r"media exceeds size",
    r"image exceeds",
    r"image dimensions exceed",
    r"could not process image",
    r"(?:invalid|unsupported) image",
)

AUTH = any_of(
    r"(?:incorrect|invalid) (?:x-)?api[ -]key",
    r"api key not valid",
    r"invalid (?:authentication|bearer)",
    r"not found the model",
)

OUTPUT_CAP = any_of(
    r"available_tokens",
    r"range of max_tokens",
    r"max_(?:completion_)?tokens is too large",
    r"max_tokens: \d+ > \d+, which is the maximum",
    r"output tokens and your prompt contains at least",
)

OVERFLOW = any_of(
    r"context[ _-]?(?:length|window|size|limit)",
    r"(?:prompt|input|request) (?:is |was )?too (?:long|large)",
    r"maximum prompt length",
    r"maximum (?:allowed )?(?:input )?length of \d+ tokens",
    r"exceeds the maximum allowed length",
    r"tokens in request more than max",
    r"longer than the model",
    r"input length",
    r"input token count",
    r"token count is \d+ but",
    r"prompt token count",
    r"prompt tokens \(\d+\) exceed",
    r"prompt tokens too long",
    r"prompt exceeds max",
    r"prompt contains \d+ tokens",
    r"exceeded model token limit",
    r"token limit exceeded",
    r"too many tokens",
    r"must have less than \d+ tokens",
    r"model_context_window_exceeded",
    r"messages\[\d+\]\.content.*string too long",
    r"超长",
    r"最大token限制",
    r"最大上下文长度",
    r"输入长度超过",
)

FORMAT = any_of(
    r"tool_use|tool_result|tool_calls?|toolresult|tooluse",
    r"function (?:call|response) turn",
    r"reasoning_content",
    r"prefill",
    r"non-empty|non-whitespace|at least one message",
    r"tool names",
    r"`?signature`? in `?thinking`?",
    r"should match pattern|does not match pattern",
    r"text is not set",
    r"must be (?:a )?string|expected (?:a )?string",
    r"extra inputs are not permitted|field required|input should be",
    r"invalid type for|invalid value|invalid '",
    r"unsupported parameter|unrecognized request argument|unknown parameter",
    r"非法",
)

# Where the numbers stand. `limit` is the window, `used` the input, `output` what was asked for as
# answer, `room` the largest answer that is allowed. The first that matches counts; a number that
# only looks like one (an error code, an excess, a per-minute limit) has no pattern.
NUMBERS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"(?P<used>\d+) \+ (?P<output>\d+) > (?P<limit>\d+)",
        r"max_tokens: (?P<output>\d+) > context_window: .*available_tokens: (?P<room>\d+)",
        r"max_tokens: (?P<output>\d+) > (?P<room>\d+)",
        # vLLM counts no further than its window: "at least" says nothing of the input.
        r"requested (?P<output>\d+) output tokens and your prompt contains at least",
        r"length is (?P<limit>\d+) .*\((?P<used>\d+) in the messages, (?P<output>\d+) in the compl",
        r"is too large: (?P<output>\d+)\. ?this model supports at most (?P<room>\d+)",
        r"range of max_tokens (?:is|should be) \[\d+, (?P<room>\d+)\]",
        r"range of input length should be \[\d+, (?P<limit>\d+)\]",
        r"prompt is too long: (?P<used>\d+) tokens > (?P<limit>\d+)",
        r"maximum context length is (?P<limit>\d+) .*?(?:resulted in|requested) (?P<used>\d+)",
        r"input token count \(?(?P<used>\d+)\)? exceeds .*?\((?P<limit>\d+)\)",
        r"token count is (?P<used>\d+) but model only supports up to (?P<limit>\d+)",
        r"token limit: (?P<limit>\d+) \(requested: (?P<used>\d+)\)",
        r"maximum prompt length is (?P<limit>\d+) .*?contains (?P<used>\d+)",
        r"input length (?P<used>\d+) exceeds the maximum allowed input length of (?P<limit>\d+)",
        r"input length \((?P<used>\d+)(?: tokens)?\) exceeds .*?\((?P<limit>\d+)(?: tokens)?\)",
        r"prompt tokens \((?P<used>\d+)\) exceed model maximum \((?P<limit>\d+)\)",
        r"prompt contains (?P<used>\d+) tokens.*?with (?P<limit>\d+) maximum",
        r"input \((?P<used>\d+) tokens\) is longer .*?\((?P<limit>\d+) tokens\)",
        r"request \((?P<used>\d+) tokens\) exceeds .*?\((?P<limit>\d+) tokens\)",
        r"token count of (?P<used>\d+) exceeds the limit of (?P<limit>\d+)",
        r"cannot exceed (?P<limit>\d+) - received (?P<used>\d+)",
        r"less than (?P<limit>\d+) tokens\. given: (?P<used>\d+)",
        r"context length (?:is|of) (?P<limit>\d+)",
        r"limit:? (?P<limit>\d+), requested (?P<used>\d+)",
    )
)

WAIT = re.compile(r"try again in (?P<seconds>\d+(?:\.\d+)?) ?(?P<unit>ms|s)\b")
