"""A model's tool arguments: what may run, and what goes back as an error.

In this order:

1. Plain JSON runs when it fits the schema. No text at all and `null` are `{}`, and like any other
   `{}` run only where the schema asks for no argument.
2. An answer that was cut off (`cut_off`) runs none of its calls, not even one that looks whole, is
   never repaired and never run as `{}`; the model is told to send less.
3. Slips of syntax (quotes, a trailing comma, a comment, `True`, a code fence) are mended by
   `json_repair`, which also guesses. The result runs only if it is what a reader without guesses
   finds in the text (`agent.lenient_json`), so that no key, no value and no letter of a string was
   invented, lost or changed, and if it fits the schema with no key, at any depth, that the schema
   does not name.
4. Else the parser's own error goes back to the model.

A tool with side effects takes no mended arguments. What is stored of a call that does not run is
always an object that any provider takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent import lenient_json
from agent.messages import JsonObject, JsonValue, ToolUseBlock
from agent.provider import Completed
from agent.tools import Toolbox, ToolSpec

TRUNCATED = (
    "The arguments were cut off before their end, so nothing was executed. "
    "Call the tool again with less text, in smaller pieces."
)
NOT_EXECUTED = "Nothing was executed."
LONGEST_MENDED = 2_000  # characters; json_repair takes at most 0.1 s for them, on the event loop
DEEPEST = 64  # levels of nesting; far below where Python's own JSON gives up
LONGEST_QUOTE = 200  # characters of head and of tail: a validator's message quotes the arguments


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call as it is stored (`raw` is gone) and, when it must not run, why."""

    call: ToolUseBlock
    problem: str | None = None


def parse(text: str) -> JsonValue:
    """Plain JSON that every provider takes back, so without NaN and numbers beyond all bounds.
    Raises `ValueError`, and `RecursionError` for nesting without end."""
    value: JsonValue = json.loads(
        text, parse_float=lenient_json.finite, parse_constant=lenient_json.finite
    )
    return value


def cut_off(completed: Completed, toolbox: Toolbox, max_output_tokens: int) -> bool:
    """Whether the answer ended before its calls did, whatever its stop reason says.

    Servers report `tool_calls` for calls that met the cap, and close what was cut by themselves, so
    that half a text looks whole (field cases 143 and 144); others have a cap of their own. A missing
    end of the stream is a failed call already (`agent.provider`).
    """
    calls = completed.message.tool_uses
    if not calls:
        return False
    if completed.stop_reason in ("length", "window"):
        return True
    if any(call.raw is not None and lenient_json.ends_early(call.raw) for call in calls):
        return True
    spent = completed.usage.output_tokens if completed.usage else 0
    if spent == max_output_tokens:
        return True
    # More than the cap: the server counts reasoning beside it.
    return spent > max_output_tokens and not all(_is_whole(call, toolbox) for call in calls)


def check(call: ToolUseBlock, spec: ToolSpec | None, *, truncated: bool) -> CheckedCall:
    """Decide about one call. `truncated`: its answer was cut off (`cut_off`)."""
    stored = replace(call, raw=None)
    sendable = _can_be_sent(call.arguments)
    if not sendable:
        stored = replace(stored, arguments={})
    if truncated:
        return CheckedCall(stored, TRUNCATED)
    if not sendable:
        problem = f"The arguments hold a number too large or are nested too deeply. {NOT_EXECUTED}"
        return CheckedCall(stored, problem)
    if spec is None:
        return CheckedCall(stored, f"There is no tool named {_short(call.name)!r}.")
    if call.raw is None or call.raw.strip() in ("", "null"):
        return CheckedCall(stored, _schema_problem(call.arguments, spec.parameters))
    mended = _mend(call.raw, spec)
    if mended is None:
        return CheckedCall(stored, _parser_problem(call.raw))
    return CheckedCall(replace(stored, arguments=mended))


def _is_whole(call: ToolUseBlock, toolbox: Toolbox) -> bool:
    tool = toolbox.find(call.name)
    return (
        tool is not None
        and call.raw is None
        and _schema_problem(call.arguments, tool.spec.parameters) is None
    )


def _can_be_sent(arguments: JsonObject) -> bool:
    """Whether every provider takes them back, whoever has read them."""
    level: list[JsonValue] = [arguments]
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            break
    else:
        return False
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # no finite number, or half a surrogate pair
        return False
    return True


def _inside(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


# Mending ----------------------------------------------------------------------------------------


def _mend(raw: str, spec: ToolSpec) -> JsonObject | None:
    """The arguments that `raw` spells with a slip of syntax, or None when they may not run."""
    if spec.side_effects or len(raw) > LONGEST_MENDED:
        return None
    text = raw.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text[3:-3].removeprefix("json")
    written = lenient_json.read(text)
    # json_repair comes second: over text that is no JSON at all it takes seconds.
    if written is None or not _can_be_sent(written) or not _is_mended(text, written):
        return None
    return None if _schema_problem(written, _closed(spec.parameters)) else written


def _is_mended(text: str, written: JsonObject) -> bool:
    """Whether `json_repair` reads the text alike, down to the order of keys and every letter."""
    import json_repair  # with the first slip: most models make none, and it takes a megabyte

    try:
        mended: object = json_repair.loads(text, skip_json_loads=True)
        # Through JSON, as json_repair leaves the halves of a surrogate pair apart.
        return json.dumps(json.loads(json.dumps(mended))) == json.dumps(written)
    except (ValueError, RecursionError):
        return False


def _closed(schema: JsonObject) -> JsonObject:
    """The schema without room for keys that it does not name."""
    closed = {key: _closed_inside(inner) for key, inner in schema.items()}
    if isinstance(schema.get("properties"), dict):
        closed["additionalProperties"] = False
    return closed


def _closed_inside(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_closed_inside(inner) for inner in value]
    return _closed(value) if isinstance(value, dict) else value


# What is wrong ----------------------------------------------------------------------------------


def _parser_problem(raw: str) -> str:
    try:
        value = parse(raw)
    except RecursionError:
        return f"The arguments are nested too deeply. {NOT_EXECUTED}"
    except ValueError as error:
        return f"The arguments are not valid JSON ({error}). {NOT_EXECUTED}"
    kind = "an array" if isinstance(value, list) else "a string"
    if isinstance(value, bool | int | float):
        kind = "a number or a boolean"
    return f"The arguments must be a JSON object, not {kind}. {NOT_EXECUTED}"


def _schema_problem(arguments: JsonObject, schema: JsonObject) -> str | None:
    # Imported here: it costs 60 ms, and the first tool call is the first to need it.
    from jsonschema import ValidationError, validate

    try:
        validate(arguments, schema)
    except ValidationError as error:
        where, why = error.json_path, _short(error.message)
        return f"The arguments do not fit the schema at {where}: {why}. {NOT_EXECUTED}"
    return None


def _short(text: str) -> str:
    if len(text) <= 2 * LONGEST_QUOTE:
        return text
    return f"{text[:LONGEST_QUOTE]} … {text[-LONGEST_QUOTE:]}"
