"""The typed codes and statuses of refusals, as tables for `agent.providers.errors`.

Words are in `agent.providers.vocabulary` and `agent.providers.denials`. The literal texts behind all
of them stand in `tests/agent/providers/test_errors.py` and `tests/agent/providers/refusals/`.
"""

from __future__ import annotations

import re

from agent.errors import RefusalKind

K = RefusalKind

# Codes and types that mean one thing. What some providers misuse is not here: `invalid_request_error`
# (anything), `rate_limit_exceeded` (also requests that are larger than the quota), Zhipu's 1210
# (overflow, and any wrong parameter).
CODES = {
    "context_length_exceeded": K.OVERFLOW,
    "model_max_prompt_tokens_exceeded": K.OVERFLOW,
    "model_context_window_exceeded": K.OVERFLOW,
    "exceed_context_size_error": K.OVERFLOW,
    "tokens_too_long": K.OVERFLOW,  # Baidu
    "content_filter": K.CONTENT_FILTER,
    "content_policy_violation": K.CONTENT_FILTER,
    "responsibleaipolicyviolation": K.CONTENT_FILTER,
    "data_inspection_failed": K.CONTENT_FILTER,
    "datainspectionfailed": K.CONTENT_FILTER,
    "arrearage": K.QUOTA,
    "billing_error": K.QUOTA,
    "billing_hard_limit_reached": K.QUOTA,
    "billing_not_active": K.QUOTA,
    "insufficient_quota": K.QUOTA,
    "exceeded_current_quota_error": K.QUOTA,
    "invalid_api_key": K.AUTH,
    "model_not_found": K.AUTH,
    "tool_use_failed": K.TRANSIENT,  # Groq: the model wrote a call that is none; the next may be good
}

# Numbers that mean something under one key only: Baidu's `error_code`, MiniMax's `status_code`,
# Zhipu's and SiliconFlow's `code`.
KEYED_CODES = {
    ("error_code", "336103"): K.OVERFLOW,
    ("error_code", "17"): K.QUOTA,
    ("error_code", "18"): K.RATE_LIMIT,
    ("error_code", "19"): K.QUOTA,
    ("error_code", "110"): K.AUTH,
    ("error_code", "111"): K.AUTH,
    ("error_code", "336100"): K.TRANSIENT,
    ("status_code", "1002"): K.RATE_LIMIT,
    ("status_code", "1004"): K.AUTH,
    ("status_code", "1008"): K.QUOTA,
    ("status_code", "1026"): K.CONTENT_FILTER,
    ("status_code", "1027"): K.CONTENT_FILTER,
    ("status_code", "1039"): K.RATE_LIMIT,
    ("status_code", "2049"): K.AUTH,
    ("code", "1113"): K.QUOTA,
    ("code", "1211"): K.AUTH,
    ("code", "1214"): K.FORMAT,
    ("code", "1261"): K.OVERFLOW,
    ("code", "1301"): K.CONTENT_FILTER,
    ("code", "1302"): K.RATE_LIMIT,
    ("code", "30001"): K.QUOTA,
}

# What a code's words mean, where neither it nor the sentence is known; the first that matches.
CODE_PARTS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (
            r"context_?(?:length|window|size)|(?:prompt|input|tokens?)_?too_?long|exceed_?context",
            K.OVERFLOW,
        ),
        (r"overdue|arrear|insufficient|billing|payment|exhausted_?quota|charge|balance", K.QUOTA),
        (
            r"content_?(?:filter|policy)|sensitive|moderat|inspection|safety|prohibited|censor",
            K.CONTENT_FILTER,
        ),
        (
            r"rate_?limit|throttl|too_?many_?requests|resource_?exhausted|limit_?exceeded",
            K.RATE_LIMIT,
        ),
        (r"image|media|mime", K.MEDIA),
        (r"api_?key|auth|permission|access_?denied|not_?found|forbidden|not_?open", K.AUTH),
        (r"overload|unavailable|time_?out|internal|server_?error|busy", K.TRANSIENT),
    )
)

# The status that a typed error event in a stream, or the name of an SDK's exception in a relay's
# sentence, stands for.
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
STATUS_OF_EXCEPTION = {
    "badrequesterror": 400,
    "authenticationerror": 401,
    "permissiondeniederror": 403,
    "notfounderror": 404,
    "unprocessableentityerror": 422,
    "ratelimiterror": 429,
    "internalservererror": 500,
    "serviceunavailableerror": 503,
}
STATUS_IN_WORDS = re.compile(r"(?:error|status)(?: code)?:? ([45]\d\d)\b")

BY_STATUS = {
    401: K.AUTH,
    402: K.QUOTA,
    403: K.AUTH,
    404: K.AUTH,
    405: K.AUTH,  # like 404: another address is meant
    407: K.AUTH,
    408: K.TRANSIENT,
    409: K.TRANSIENT,
    410: K.AUTH,
    413: K.OVERFLOW,
    415: K.FORMAT,
    421: K.TRANSIENT,
    422: K.FORMAT,
    423: K.TRANSIENT,
    424: K.TRANSIENT,  # Bedrock: the model failed
    425: K.TRANSIENT,
    429: K.RATE_LIMIT,
    451: K.AUTH,
    498: K.TRANSIENT,  # Groq: the flexible tier is full
    499: K.TRANSIENT,
}

# Providers that say "quota" and mean the minute's, by their names and their hosts.
QUOTA_MEANS_RATE = re.compile(r"dashscope|qwen|tongyi|aliyun|alibaba|bailian|百炼|千问")
