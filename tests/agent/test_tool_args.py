"""Tool arguments: what runs is what the model wrote, whole, and what the tool asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import validate

from agent.messages import JsonObject, JsonValue, Message, TextBlock, ToolUseBlock, decode, encode
from agent.provider import Completed, StopReason, Usage
from agent.providers.wire import parse_arguments
from agent.tool_args import TRUNCATED, CheckedCall, check, cut_off
from agent.tools import Toolbox, ToolContext, ToolOutput, ToolSpec

FREE: JsonObject = {"type": "object"}
WRITE: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
}
FIND: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "exact": {"type": ["boolean", "null"]},
        "where": {
            "type": "object",
            "properties": {"folder": {"type": "string"}, "tags": {"type": "array"}},
        },
    },
    "required": ["text"],
}


def spec(schema: JsonObject, *, side_effects: bool = False) -> ToolSpec:
    return ToolSpec("tool", "Does it.", schema, side_effects=side_effects)


class Named:
    def __init__(self, schema: JsonObject) -> None:
        self.spec = spec(schema)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        raise AssertionError("nothing runs here")


def streamed(text: str, name: str = "tool") -> ToolUseBlock:
    """A call as the providers make it of the text that came in."""
    return ToolUseBlock("c", name, *parse_arguments(text))


def ask(
    text: str, schema: JsonObject = FIND, *, truncated: bool = False, side_effects: bool = False
) -> CheckedCall:
    checked = check(streamed(text), spec(schema, side_effects=side_effects), truncated=truncated)
    stored = Message("assistant", (checked.call,))
    assert checked.call.raw is None
    assert decode(encode(stored)) == stored  # whatever came in, the history stays legal
    encode(stored).encode()
    return checked


def ran(text: str, schema: JsonObject = FIND) -> JsonObject | None:
    """The arguments that the tool gets, or None."""
    checked = ask(text, schema)
    return None if checked.problem else checked.call.arguments


# Plain JSON -------------------------------------------------------------------------------------


def test_plain_json_that_fits_runs_as_it_is() -> None:
    assert ran('{"text": "a  \\n", "limit": 3}') == {"text": "a  \n", "limit": 3}


def test_what_does_not_fit_the_schema_goes_back_with_the_place_and_the_reason() -> None:
    problem = ask('{"text": "a", "limit": "3"}').problem
    assert problem is not None
    assert "$.limit" in problem
    assert "'3' is not of type 'integer'" in problem


def test_a_long_argument_is_not_sent_back_whole() -> None:
    problem = ask(json.dumps({"text": "a", "limit": "x" * 50_000})).problem
    assert problem is not None
    assert len(problem) < 600
    assert "is not of type 'integer'" in problem


@pytest.mark.parametrize("text", ["", " ", "\n\t", "null", " null "])
def test_no_arguments_run_only_where_none_are_required(text: str) -> None:
    optional: JsonObject = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    assert ran(text, optional) == {}
    problem = ask(text, WRITE).problem
    assert problem is not None
    assert "'path' is a required property" in problem


@pytest.mark.parametrize("text", ['{"text": 1e999}', '{"text": [-1e999]}', "{text: 1e999}"])
def test_a_number_that_no_provider_takes_back_is_refused_and_not_stored(text: str) -> None:
    assert streamed(text).raw == text
    checked = ask(text, FREE)
    assert checked.problem is not None
    assert checked.call.arguments == {}
    read = ToolUseBlock(
        "c", "tool", {"text": float("inf")}
    )  # as a provider that reads itself has it
    assert "too large" in str(check(read, spec(FREE), truncated=False).problem)
    assert ask(text, FREE, truncated=True) == CheckedCall(checked.call, TRUNCATED)


@pytest.mark.parametrize("depth", [100, 900, 5_000, 100_000])
@pytest.mark.parametrize("end", ["", ","])
def test_nesting_beyond_reason_is_refused_without_a_crash(depth: int, end: str) -> None:
    text = '{"a":' * depth + "1" + "}" * depth + end
    checked = ask(text, FREE)
    assert checked.problem is not None
    assert checked.call.arguments == {}


def test_an_unknown_tool_is_named_shortly() -> None:
    problem = check(streamed("{}", "x" * 9_000), None, truncated=False).problem
    assert problem is not None
    assert problem.startswith("There is no tool named 'xxx")
    assert len(problem) < 600


# Cut off ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"content":"#!/usr/bin',
        '{"path":"a","con',
        '{"path":"x.jac"}',
        '{"path":"a","content":"whole"}',
        "",
        "{}",
        "null",
    ],
)
def test_a_cut_call_is_refused_with_the_advice_to_send_less(text: str) -> None:
    for schema in (WRITE, FREE):
        for side_effects in (False, True):
            checked = ask(text, schema, truncated=True, side_effects=side_effects)
            assert checked.problem == TRUNCATED
    assert "smaller pieces" in TRUNCATED


def test_a_cut_name_is_not_called_an_unknown_tool() -> None:
    assert check(streamed("", "writ"), None, truncated=True).problem == TRUNCATED


def answer(
    texts: Sequence[str], stop: StopReason = "tool_use", tokens: int | None = 10, name: str = "tool"
) -> bool:
    calls = tuple(streamed(text, name) for text in texts)
    usage = None if tokens is None else Usage(5, tokens)
    message = Message("assistant", (TextBlock("I write."), *calls))
    return cut_off(Completed(message, stop, usage), Toolbox([Named(WRITE)]), 300)


WHOLE = '{"path":"a","content":"b"}'


def test_a_stop_reason_of_a_cap_makes_every_call_a_cut_one() -> None:
    assert answer([WHOLE], "length")
    assert answer([WHOLE], "window")


@pytest.mark.parametrize("text", ['{"path":"a', '{"path":"a"}', "", "{'path': 'a'", "null", WHOLE])
def test_tokens_equal_to_the_cap_decide_whatever_the_reason_and_the_call_look_like(
    text: str,
) -> None:
    """Field case 144: a server that closes the strings itself would have half a file written."""
    assert answer([WHOLE, text], tokens=300)
    assert answer([text], "end", tokens=300)
    assert not answer([WHOLE], tokens=299)


def test_a_whole_call_beside_much_reasoning_runs() -> None:
    assert not answer([WHOLE], tokens=2_000)  # servers that count reasoning beside the cap
    assert answer([WHOLE, '{"path":"a"}'], tokens=2_000)


def test_a_name_cut_at_the_cap_is_a_cut() -> None:
    assert answer([WHOLE], tokens=301, name="too")


def test_calls_that_end_early_were_cut_by_a_cap_that_nobody_told() -> None:
    assert answer([WHOLE, '{"path":"a","con'], tokens=None)
    assert not answer(["{'path': 'a', 'content': 'b'}"], tokens=None)
    assert not answer(['{"path": "5" tall"}'], tokens=None)


def test_an_answer_of_text_alone_cuts_no_calls() -> None:
    assert not answer([], "length", tokens=300)


# Slips of syntax --------------------------------------------------------------------------------

SLIPS = {
    "trailing comma": '{"text": "a", "limit": 3,}',
    "single quotes": "{'text': 'a', 'limit': 3}",
    "bare keys": '{text: "a", limit: 3}',
    "missing comma": '{"text": "a" "limit": 3}',
    "comments": '{"text": "a", // why\n "limit": 3 /* few */}',
    "code fence": '```json\n{"text": "a", "limit": 3,}\n```',
    "a bracket too many": '{"text": "a", "limit": 3}}',
    "byte order mark": '\ufeff{"text": "a", "limit": 3}',
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_of_syntax_are_mended(slip: str) -> None:
    assert ran(SLIPS[slip]) == {"text": "a", "limit": 3}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"text": "a\nb\tc",}', "a\nb\tc"),
        ("{'text': 'say \"hi\" \\\\ it\\'s'}", 'say "hi" \\ it\'s'),
        ('{"text": "it\\\'s  ",}', "it's  "),
        ('{"text": "\\ud83d\\ude00 \\u00e9",}', "😀 é"),
        ('{"text": "// no comment, {x: 1},",}', "// no comment, {x: 1},"),
        ("{'text': ''}", ""),
    ],
)
def test_mending_keeps_every_letter_of_a_string(text: str, meant: str) -> None:
    assert ran(text) == {"text": meant}


def test_python_spelling_is_mended() -> None:
    assert ran("{'text': 'a', 'exact': True}") == {"text": "a", "exact": True}
    assert ran("{'text': 'None', 'exact': None}") == {"text": "None", "exact": None}


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "say "hi" now"}',  # where does the string end?
        "{'text': 'don't'}",
        '{"text": "a" + "b"}',
        '{"text": "C:\\new\\dir",}',  # one escape is wrong: were the others meant?
        '{"text": "\\u12",}',
        '{"text": "\\ud83d",}',
        '{"text": hello}',
        '{"text": , "limit": 3}',
        '{"text": "a", "limit": 007}',
        '{"text": "a", "limit": 1_000}',
        '{"text": "a", "limit": 3-1}',
        '{"text": "a", "text": "b",}',  # which one?
        '{"text": "a",} {"limit": 3}',
        'Here it is: {"text": "a"}',
        '{"text": "a"}}, "limit": 3}',
        '{"text": ["a"}',
        "{'text': 'a'",
        '{"text": "a",',
        "text: a",
        "['a']",
    ],
)
def test_what_would_have_to_be_guessed_does_not_run(text: str) -> None:
    problem = ask(text).problem
    assert problem is not None
    assert "not valid JSON" in problem
    assert ask(text, FREE).problem == problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"text": "a" x}', "Expecting ',' delimiter: line 1 column 14 (char 13)"),
        ('{"text": NaN}', "NaN is no JSON number"),
        ('{"text": -1e999}', "-1e999 is no JSON number"),
        ("[1]", "not an array"),
        ('"{}"', "not a string"),
        ("3", "not a number"),
        ('{"text": ' + "1" * 5_000 + "}", "Exceeds the limit"),
    ],
)
def test_the_parsers_own_error_goes_back(text: str, said: str) -> None:
    problem = ask(text).problem
    assert problem is not None
    assert said in problem
    assert "Nothing was executed." in problem


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "a", "extra": 1,}',
        '{"text": "a", "where": {"folder": "x", "extra": 1},}',
        '{"text": "a", "limit": 0,}',
        '{"limit": 3,}',
    ],
)
def test_mended_arguments_must_fit_and_hold_no_key_that_the_schema_does_not_name(text: str) -> None:
    assert ran(text) is None


def test_keys_of_a_free_map_are_the_models_own() -> None:
    schema: JsonObject = {"type": "object", "properties": {"map": {"type": "object"}}}
    assert ran("{'map': {'any': 1}}", schema) == {"map": {"any": 1}}


@pytest.mark.parametrize("slip", SLIPS)
def test_tools_with_side_effects_take_nothing_mended(slip: str) -> None:
    problem = ask(SLIPS[slip], side_effects=True).problem
    assert problem is not None
    assert "not valid JSON" in problem


def test_long_broken_arguments_are_not_mended() -> None:
    assert ran('{"text": "' + "x" * 1_900 + '",}') is not None
    assert ran('{"text": "' + "x" * 2_100 + '",}') is None


# Laws -------------------------------------------------------------------------------------------

strings = st.text(max_size=12) | st.text(alphabet="ab\"'\\/{}[]:, \n1", max_size=12)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=8,
)
sendable = st.dictionaries(strings, values, min_size=1, max_size=4).filter(
    lambda arguments: "Infinity" not in json.dumps(arguments)
)


def _place(key: str, value: str) -> JsonValue:
    return {key: value}


limits: st.SearchStrategy[JsonValue] = st.integers(-2, 9)
exacts: st.SearchStrategy[JsonValue] = st.none() | st.booleans()
texts: st.SearchStrategy[JsonValue] = strings
places = st.builds(_place, st.sampled_from(["folder", "x"]), strings)
finds: st.SearchStrategy[JsonObject] = st.fixed_dictionaries(
    {"text": texts}, optional={"limit": limits, "exact": exacts, "where": places}
)


@given(sendable, st.data(), st.booleans())
def test_a_beginning_of_json_never_runs_whether_it_is_known_to_be_cut_or_not(
    arguments: JsonObject, data: st.DataObject, known: bool
) -> None:
    whole = json.dumps(arguments, ensure_ascii=data.draw(st.booleans()))
    part = whole[: data.draw(st.integers(1, len(whole) - 1))]
    assert ask(part, FREE, truncated=known).problem is not None
    assert answer([part])


@given(sendable)
def test_whole_json_is_never_taken_for_a_cut(arguments: JsonObject) -> None:
    text = json.dumps(arguments)
    assert ran(text, FREE) == arguments
    assert not cut_off(
        Completed(Message("assistant", (streamed(text),)), "tool_use", None),
        Toolbox([Named(FREE)]),
        300,
    )


@given(finds, st.data())
def test_what_runs_after_any_slip_fits_the_schema_and_says_what_was_written(
    arguments: JsonObject, data: st.DataObject
) -> None:
    text = json.dumps(arguments, ensure_ascii=False)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        wide = data.draw(st.integers(0, 2))
        text = (
            text[:at] + data.draw(st.text("\"'{}[]:,\\ \n\t/*a1", max_size=2)) + text[at + wide :]
        )
    checked = ask(text)
    if checked.problem is None:
        validate(checked.call.arguments, FIND)
        if streamed(text).raw not in (None, "null"):
            assert _letters(checked.call.arguments) == _written(text)


def _letters(value: JsonValue) -> str:
    """All letters and digits, in order."""
    if isinstance(value, dict):
        return "".join(_letters(key) + _letters(inner) for key, inner in value.items())
    if isinstance(value, list):
        return "".join(map(_letters, value))
    return "".join(filter(str.isalnum, value if isinstance(value, str) else json.dumps(value)))


def _written(text: str) -> str:
    """The same of a text, with its escapes undone and its comments gone."""
    piece = re.compile(
        r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|//[^\n]*|/\*.*?\*/|[^"'/]+|.""", re.DOTALL
    )
    found = ""
    for match in piece.finditer(text):
        if match[1] is not None:
            found += re.sub(r"\\(u[0-9a-f]{4}|.)", _undone, match[1], flags=re.DOTALL)
        elif not match[0].startswith(("//", "/*")):
            found += match[0]
    return "".join(filter(str.isalnum, found))


def _undone(escape: re.Match[str]) -> str:
    name = escape[1]
    return chr(int(name[1:], 16)) if name[1:] else "" if name in "nrtbf" else name


@given(finds)
def test_slips_give_what_was_meant_or_nothing(arguments: JsonObject) -> None:
    text = json.dumps(arguments, ensure_ascii=False)
    for slip in (text[:-1] + ",}", f"```json\n{text}\n```", text + "}", f"/* x */{text}"):
        assert ran(slip) in (arguments, None)
    assert ran(repr(arguments)) in (arguments, None)


@given(st.text(max_size=80) | st.text("\"'{}[]:,\\ntrue1e", max_size=40), st.booleans())
def test_no_text_at_all_raises(text: str, cut: bool) -> None:
    ask(text, FREE, truncated=cut)
    answer([text])
