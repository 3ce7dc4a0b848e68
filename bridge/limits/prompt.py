"""What of a policy the model is told."""

from __future__ import annotations

from bridge.limits.keys import INSTRUCTIONS, LANGUAGE, LONGEST_ANSWER
from bridge.limits.policy import Policy


def instructions_of(operators: str, policy: Policy) -> str:
    """The operator's instructions, then those of the chat: they add to them and replace nothing."""
    parts = [operators]
    if policy[INSTRUCTIONS]:
        parts.append(f"Those who run this chat add:\n{policy[INSTRUCTIONS]}")
    if policy[LANGUAGE] != "auto":
        parts.append(f"Answer in the language with the code `{policy[LANGUAGE]}`.")
    longest = policy[LONGEST_ANSWER]
    if longest is not None:
        parts.append(f"An answer may have at most {longest} characters here; the rest is cut off.")
    return "\n\n".join(parts)
