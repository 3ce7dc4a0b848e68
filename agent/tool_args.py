"""A model's tool arguments: what may run, and what goes back as an error.

In this order: plain JSON runs; arguments that were cut off are refused, never repaired and never
run as `{}`; slips of syntax are mended by `json_repair`, checked against the schema and refused
when a key came in that the schema does not know; else the parser's own error goes back to the
model. A tool with side effects takes no mended arguments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import cast

import json_repair

from agent.messages import JsonObject, ToolUseBlock
from agent.tools import ToolSpec

TRUNCATED = (
    "The arguments were cut off before their end, so nothing was executed. "
    "Call the tool again with less text, in smaller pieces."
)


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call as it is stored (`raw` is gone) and, when it must not run, why."""

    call: ToolUseBlock
    problem: str | None = None


def check(call: ToolUseBlock, spec: ToolSpec | None, *, truncated: bool) -> CheckedCall:
    """Decide about one call. `truncated`: the answer met its output cap or lost its end."""
    stored = replace(call, raw=None)
    if spec is None:
        return CheckedCall(stored, f"There is no tool named {call.name!r}.")
    if truncated:
        return CheckedCall(stored, TRUNCATED)
    if call.raw is None:
        return CheckedCall(stored, _schema_problem(call.arguments, spec))
    mended = _mend(call.raw, spec)
    if isinstance(mended, str):
        return CheckedCall(stored, mended)
    return CheckedCall(replace(stored, arguments=mended))


def _mend(raw: str, spec: ToolSpec) -> JsonObject | str:
    problem = _parser_problem(raw)
    if spec.side_effects:
        return problem
    mended: object = json_repair.loads(raw, skip_json_loads=True)
    if not isinstance(mended, dict):
        return problem
    arguments = cast("JsonObject", mended)
    known = spec.parameters.get("properties")
    if not isinstance(known, dict) or not set(arguments) <= set(known):
        return problem
    if _schema_problem(arguments, spec) is not None:
        return problem
    return arguments


def _parser_problem(raw: str) -> str:
    try:
        value = json.loads(raw)
    except ValueError as error:
        return f"The arguments are not valid JSON ({error}). Nothing was executed."
    return f"The arguments must be a JSON object, not {type(value).__name__}. Nothing was executed."


def _schema_problem(arguments: JsonObject, spec: ToolSpec) -> str | None:
    # Imported here: it costs 60 ms, and the first tool call is the first to need it.
    from jsonschema import ValidationError, validate

    try:
        validate(arguments, spec.parameters)
    except ValidationError as error:
        where, why = error.json_path, error.message
        return f"The arguments do not fit the schema at {where}: {why}. Nothing was executed."
    return None
