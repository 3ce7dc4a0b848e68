"""How the messages of Chat Completions must follow each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.servers.llm_request import Refused
from tests.servers.llm_script import Json


@dataclass
class MessageRules:
    """What a test may set. What OpenAI itself would take but many servers refuse is refused."""

    reasoning: Literal["refused", "accepted", "required"] = "refused"  # reasoning_content
    tool_content_strings: bool = False  # MiMo and others: a list in a tool message is refused
    json_arguments: bool = True  # arguments must hold a JSON object; OpenAI takes any string
    max_id: int = 40
    nine_character_ids: bool = False  # Mistral
    alternation: bool = False
    user_after_tool: bool = True  # Mistral wants an assistant message in between
    user_last: bool = True  # OpenAI takes an assistant message last
    non_empty: bool = True  # OpenAI takes empty text
    deepseek: bool = False  # DeepSeek's wording for an orphan


def check_pairs(messages: list[Json], rules: MessageRules) -> None:
    """Each call is answered by a tool message directly after, once; each answer has its call."""
    open_ids: list[str] = []
    asked: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            check_answer(index, message, asked, open_ids, rules)
            continue
        if open_ids:
            raise unanswered(index, open_ids)
        open_ids = [call["id"] for call in message.get("tool_calls") or []]
        asked = set(open_ids)
    if open_ids:
        raise unanswered(len(messages), open_ids)


def check_answer(
    index: int, message: Json, asked: set[str], open_ids: list[str], rules: MessageRules
) -> None:
    """A tool message against the calls before it; takes its id off the open ones."""
    id_ = message.get("tool_call_id")
    if id_ is None:
        raise Refused(
            f"Missing required parameter: 'messages[{index}].tool_call_id'.",
            param=f"messages[{index}].tool_call_id",
            code="missing_required_parameter",
        )
    if not asked:
        words = (
            "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            if rules.deepseek
            else "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'."
        )
        raise Refused(words, param=f"messages.[{index}].role")
    if id_ not in asked:
        raise Refused(
            f"Invalid parameter: 'tool_call_id' of '{id_}' not found in 'tool_calls' of previous "
            "message.",
            param=f"messages.[{index}].tool_call_id",
        )
    if id_ not in open_ids:
        raise Refused(
            f"Duplicate value for 'tool_call_id' of '{id_}' in message[{index}].",
            param=f"messages.[{index}].tool_call_id",
        )
    open_ids.remove(id_)


def unanswered(index: int, ids: list[str]) -> Refused:
    """Calls that the message at `index` should have answered."""
    return Refused(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: "
        f"{', '.join(ids)}",
        param=f"messages.[{index}].role",
    )


def check_alternation(messages: list[Json], rules: MessageRules) -> None:
    """User first, then assistant and user in turn; a call only after a user or a result."""
    spoken = [message for message in messages if message["role"] not in ("system", "developer")]
    if rules.alternation and not any(message["role"] == "user" for message in spoken):
        raise Refused(
            "<400> InternalError.Algo.InvalidParameter: The input messages do not contain elements "
            "with the role of user"
        )
    before = ""
    for message in spoken:
        role = message["role"]
        if rules.alternation:
            check_place(message, before)
        if role == "user" and before == "tool" and not rules.user_after_tool:
            raise Refused("Unexpected role 'user' after role 'tool'")
        before = role


def check_place(message: Json, before: str) -> None:
    """One message after a message of role `before`, which is empty at the start."""
    role = message["role"]
    if message.get("tool_calls") and before not in ("user", "tool"):
        raise Refused(
            "Please ensure that function call turn comes immediately after a user turn or after a "
            "function response turn."
        )
    if role in ("user", "assistant") and (role == before or (not before and role != "user")):
        raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")
