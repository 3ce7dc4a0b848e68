"""Message lists of both APIs: read with every fault, and written so that the API takes them."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.history import BEGINNING, LOST_RESULT, repair, violations
from agent.messages import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    user_text,
)
from agent.providers import anthropic_history, openai_history
from agent.providers.history_rows import READER, HistoryFormatError
from tests.fuzz.histories import PNG, damaged_histories
from tests.servers import anthropic_rules, openai_rules

Json = dict[str, Any]
IMAGE = base64.b64encode(PNG).decode()
NO_INPUT = {"type": "tool_use", "id": "a", "name": "read"}
X = {"type": "text", "text": "x"}


def use(id_: str | None, **more: Any) -> Json:
    return {"type": "tool_use", "id": id_, "name": "read", "input": {}, **more}


def answer(id_: str | None, content: Any = "ok", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def calls(*ids: str | None, arguments: Any = "{}") -> Json:
    """OpenAI's row of calls."""
    function = {"name": "read", "arguments": arguments}
    items = [{"id": id_, "type": "function", "function": function} for id_ in ids]
    return assistant(None, tool_calls=items)


def tool(id_: str | None, content: Any = "ok") -> Json:
    """OpenAI's row of a result."""
    return {"role": "tool", "tool_call_id": id_, "content": content}


def picture(url: str = f"data:image/png;base64,{IMAGE}") -> Json:
    """OpenAI's part of an image."""
    return {"type": "image_url", "image_url": {"url": url}}


def mended(reader: ModuleType, rows: list[Any]) -> list[Json]:
    """The rows of the repaired list, which the strict server takes."""
    history = reader.read(rows)
    written: list[Json] = reader.write(history, repair(history.messages))
    check(reader, written)
    again = reader.read(written)
    assert (violations(again.messages), again.faults) == ([], [])
    return written


def check(reader: ModuleType, rows: list[Json]) -> None:
    """By the rules of the strict servers; raises `Refused`."""
    function = {"name": "read", "description": "", "parameters": {"type": "object"}}
    body: Json = {"model": "m", "max_tokens": 10, "stream": True, "messages": rows}
    if reader is anthropic_history:
        rules = anthropic_rules.Rules(window=10**9, refuse_sum_over_window=False)
        body["tools"] = [{"name": "read", "input_schema": {"type": "object"}}]
        anthropic_rules.check_request(body, "2023-06-01", len(json.dumps(body)), rules)
    else:
        body["max_completion_tokens"] = body.pop("max_tokens")
        body["tools"] = [{"type": "function", "function": function}]
        judge = openai_rules.Rules()
        judge.window = 10**9
        openai_rules.check_request(body, judge)


def test_a_call_of_anthropics_without_its_result_gets_one_directly_after_it() -> None:
    rows = [
        user("go"),
        assistant([use("t1"), use("t2")]),
        user([answer("t1")]),
        user("and?"),
    ]
    history = anthropic_history.read(rows)
    assert history.messages[1].tool_uses[1] == ToolUseBlock("t2", "read", {})
    assert [line.split(":")[0] for line in violations(history.messages)] == [
        "message 2",
        "message 3",
    ]
    last = mended(anthropic_history, rows)[2]["content"]
    assert [block["type"] for block in last] == ["tool_result", "tool_result", "text"]
    assert last[1]["is_error"] is True
    assert last[1]["content"] == [{"type": "text", "text": LOST_RESULT}]


def test_faults_of_openais_order_are_kept_by_reading_and_mended_by_repair() -> None:
    rows = [user("q"), calls("c1"), tool("c1"), tool("c2"), tool("c1", "again"), tool(None, "x")]
    history = openai_history.read([*rows, user("q2"), tool("B")])
    assert [m.role for m in history.messages] == ["user", "assistant", "user", "user"]
    results = [result.tool_use_id for result in history.messages[2].tool_results]
    assert results == ["c1", "c2", "c1", ""]
    assert history.rows == [0, 1, 2, 7]
    assert mended(openai_history, [*rows, user("q2"), tool("B")]) == [
        user("q"),
        calls("c1"),
        tool("c1"),
        user("q2"),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [user("a"), user("b")],
        [user("q"), calls("c1"), user("x")],
        [user("q"), assistant("a"), tool("c1"), user("x")],
        [user("q"), tool("c1"), tool("c2")],
        [user("q"), calls("c1"), calls("c2"), tool("c2")],
        [assistant("first"), user("q")],
        [user("q"), assistant("")],
        [user("q"), assistant(None)],
        [user("q"), calls("c1", arguments='{"path": "a'), tool("c1")],
        [user("q"), calls(None), tool(None)],
        [user("q"), calls("c", "c"), tool("c"), tool("c")],
        [user("q"), calls("c" * 90), tool("c" * 90)],
        [user("q"), calls("c1"), {"role": "system", "content": "s"}, tool("c1")],
        [user("q"), calls("c1"), tool("c1", "")],
        [user("q"), calls("c1"), tool("c1", [X, picture()])],
        [user("q"), calls("c1"), tool("c1", [picture("https://example.org/a.png")])],
        [user("q"), calls("c1", "c2"), tool("c1", [picture()]), tool("c2"), user("and?")],
    ],
)
def test_shapes_that_openais_api_refuses_are_found_and_mended(rows: list[Json]) -> None:
    history = openai_history.read(rows)
    assert violations(history.messages) + history.faults
    mended(openai_history, rows)


@pytest.mark.parametrize(
    "rows",
    [
        [user("q"), assistant([{"type": "text", "text": "\n\n"}]), user("x")],
        [user("q"), assistant([]), user("x")],
        [user("q"), assistant([use("a")]), user([{"type": "text", "text": "x"}, answer("a")])],
        [user("q"), assistant([use("a"), use("b")]), user([answer("b"), answer("a")])],
        [user("q"), assistant([use("a")]), user([answer("a"), answer("a", "2")])],
        [user("q"), assistant([use("a")]), user([answer("a", "")])],
        [user("q"), assistant([use("a")]), user([answer("a", [])])],
        [user("q"), assistant([use(None)]), user([answer(None)])],
        [user("q"), assistant([use("a", input='{"x": ')]), user([answer("a")])],
        [user("q"), assistant([use("a", input=None)]), user([answer("a")])],
        [user("q"), assistant([NO_INPUT]), user([answer("a")])],
        [user("q"), assistant([use("functions.exec:0")]), user([answer("functions.exec:0")])],
        [user("q"), assistant([use("a", name="a b")]), user([answer("a")])],
        [user([answer("a")]), assistant("x"), user("q")],
        [user("q"), assistant("half")],
        [user([use("a")])],
    ],
)
def test_shapes_that_anthropics_api_refuses_are_found_and_mended(rows: list[Json]) -> None:
    history = anthropic_history.read(rows)
    assert violations(history.messages) + history.faults
    mended(anthropic_history, rows)


LEGAL_OPENAI = [
    {"role": "system", "content": "s"},
    {"role": "developer", "content": [{"type": "text", "text": "d"}]},
    user(
        [
            {"type": "text", "text": "q"},
            {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        ]
    ),
    {**calls("a", "b"), "content": ""},
    tool("a"),
    tool("b", [{"type": "text", "text": "2"}]),
    user("and?"),
    assistant("yes", refusal=None),
    user([{"type": "file", "file": {"file_id": "f"}}]),
]
LEGAL_ANTHROPIC = [
    user(
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}]
    ),
    assistant([{"type": "text", "text": "t"}, use("a")]),
    user(
        [answer("a", [{"type": "text", "text": "r"}], is_error=True), {"type": "text", "text": "x"}]
    ),
    assistant("yes"),
    user([{"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}}]),
]


def test_a_picture_in_a_result_moves_to_the_users_row_behind_all_results() -> None:
    """Field case 22: the API takes text alone in a tool's row."""
    web = picture("https://example.org/a.png")
    rows = [user("q"), calls("c1", "c2"), tool("c1", [X, picture(), web]), tool("c2")]
    assert openai_history.read(rows).faults == [
        "message 2: a result holds more than text, which this API refuses"
    ]
    *_, first, second, behind = mended(openai_history, rows)
    assert (first["content"], second) == ("x", tool("c2"))
    assert behind == user([picture(), web])


def test_a_call_of_the_lists_own_ends_the_answer_in_which_the_providers_tools_end() -> None:
    """The call and its result would stand in two answers of the repaired list, which is refused."""
    faults = anthropic_history.read(
        [user("q"), assistant([use("a"), SEARCH]), assistant([FOUND]), user([answer("a")])]
    ).faults
    assert [fault.partition("'")[0] for fault in faults] == [
        "message 1: content.1: ",
        "message 2: content.0: ",
    ]
    (twice,) = anthropic_history.read([user("q"), assistant([SEARCH, SEARCH, FOUND])]).faults
    assert twice.startswith("message 1: content.0: 'server_tool_use' without its result")


def test_a_persons_words_never_pass_for_what_stands_in_for_a_block() -> None:
    rows = [user("\x1a said 0 \x1a"), user([{"type": "document", "source": {"type": "url"}}])]
    history = anthropic_history.read([*rows, assistant([SEARCH, FOUND]), user("and?")])
    written, said, _ = anthropic_history.write(history, repair(history.messages))
    assert [part["type"] for part in written["content"]] == ["text", "document"]
    assert said["content"] == [SEARCH, FOUND]


def test_legal_lists_have_no_fault() -> None:
    for reader, rows in ((openai_history, LEGAL_OPENAI), (anthropic_history, LEGAL_ANTHROPIC)):
        history = reader.read(rows)
        assert (violations(history.messages), history.faults, history.notes) == ([], [], [])


def test_what_is_no_text_and_no_bytes_comes_back_as_it_was() -> None:
    broken = [*LEGAL_OPENAI, user("twice")]
    history = openai_history.read(broken)
    written = openai_history.write(history, repair(history.messages))
    assert written[:2] == LEGAL_OPENAI[:2]
    assert written[2] == LEGAL_OPENAI[2]
    assert written[-1]["content"] == [
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "text", "text": "twice"},
    ]
    history = anthropic_history.read([*LEGAL_ANTHROPIC, user("twice")])
    rows = anthropic_history.write(history, repair(history.messages))
    assert rows[0] == LEGAL_ANTHROPIC[0]
    assert rows[-1]["content"][0] == LEGAL_ANTHROPIC[-1]["content"][0]
    assert "cache_control" not in json.dumps(rows)


def test_thinking_goes_through_byte_for_byte() -> None:
    thought = {"type": "thinking", "thinking": "hm\ud83d\ude00", "signature": "seal="}
    withheld = {"type": "redacted_thinking", "data": "opaque"}
    rows = [user("q"), assistant([thought, withheld, use("a")]), user([answer("a")])]
    history = anthropic_history.read(rows)
    assert history.messages[1].blocks[:2] == (
        ThinkingBlock("hm\ud83d\ude00", READER, "seal="),
        ThinkingBlock("", READER, None, "opaque"),
    )
    assert anthropic_history.write(history, history.messages)[1]["content"][:2] == [
        thought,
        withheld,
    ]
    spoken = [user("q"), {**calls("a"), "reasoning_content": "hm"}, tool("a")]
    history = openai_history.read(spoken)
    assert openai_history.write(history, history.messages)[1]["reasoning_content"] == "hm"


def test_the_reasoning_of_an_answer_without_calls_stays_in_a_repaired_list() -> None:
    told = {**assistant("b"), "reasoning_content": "R2"}
    for before in ([], [{**calls("a"), "reasoning_content": "R"}, tool("a")]):
        history = openai_history.read([user("q"), *before, told, user("x"), user("y")])
        rows = openai_history.write(history, repair(history.messages))
        kept = [row["reasoning_content"] for row in rows if "reasoning_content" in row]
        assert kept == ["R", "R2"][-1 - bool(before) :]


def test_what_a_repaired_list_cannot_hold_is_noted() -> None:
    text = {"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}, "citations": None}
    notes = anthropic_history.read([user([text])]).notes
    assert notes == ["messages.0.content.0: 'cache_control' is left out of a repaired list"]
    rows = [{**user("q"), "name": "ann"}, {"role": "system", "content": "s", "x": 1}, user("x")]
    assert openai_history.read(rows).notes == [
        "messages.0: 'name' is left out of a repaired list",
        "messages.1: 'x' is left out of a repaired list",
    ]


def system(text: Any, role: str = "system", **more: Any) -> Json:
    return {"role": role, "content": text, **more}


S, D = system("s"), system([{"type": "text", "text": "d"}], "developer", name="ops")


@pytest.mark.parametrize(
    ("rows", "faults", "repaired"),
    [
        pytest.param(
            [user("q"), assistant("a"), S, user("x")], [], None, id="legal between two turns"
        ),
        pytest.param(
            [S, user("q"), calls("c"), tool("c"), D, user("x")], [], None, id="legal after results"
        ),
        pytest.param(
            [user("q"), calls("c"), tool("c"), D, assistant("a"), user("x")], [], None, id="legal"
        ),
        pytest.param(
            [user("q"), calls("c"), S, tool("c"), user("x")],
            ["message 2: a system message before the results"],
            [user("q"), calls("c"), tool("c"), S, user("x")],
            id="between a call and its result",
        ),
        pytest.param(
            [user("q"), calls("c", "d"), tool("c"), D, tool("d")],
            ["message 3: a developer message before the results"],
            [user("q"), D, calls("c", "d"), tool("c"), tool("d")],
            id="between two results, and nothing after them",
        ),
        pytest.param(
            [user("q"), S, D],
            [
                "message 1: a system message may not be the last",
                "message 2: a developer message may not be the last",
            ],
            [S, D, user("q")],
            id="at the end",
        ),
        pytest.param(
            [
                system(" "),
                system(None),
                user("q"),
                system([], "developer"),
                assistant("a"),
                user("x"),
            ],
            [
                "message 0: blank text in a system message",
                "message 1: blank text in a system message",
                "message 3: blank text in a developer message",
            ],
            [user("q"), assistant("a"), user("x")],
            id="empty",
        ),
        pytest.param(
            [system([{"type": "text", "text": ""}, *D["content"]]), user("q")],
            ["message 0: blank text in a system message"],
            [system(D["content"]), user("q")],
            id="half empty",
        ),
        pytest.param(
            [user("q"), S, calls("c", "c"), D, user("x")],
            [],
            [
                user("q"),
                S,
                calls("c", "c_2"),
                tool("c", LOST_RESULT),
                tool("c_2", LOST_RESULT),
                D,
                user("x"),
            ],
            id="around a call that gets its result",
        ),
        pytest.param(
            [assistant("first"), S, user("a"), D, user("b")],
            [],
            [user(BEGINNING), assistant("first"), S, D, user("a\n\nb")],
            id="between what becomes one message",
        ),
        pytest.param([S], [], [S, user(BEGINNING)], id="alone"),
        pytest.param(
            [user("q"), calls("c"), tool("c", "r"), S, tool("c", "r"), D, user("x")],
            ["message 3: a system message before the results"],
            [user("q"), calls("c"), tool("c", "r"), S, D, user("x")],
            id="around a result that came twice",
        ),
    ],
)
def test_rows_of_the_systems_are_read_and_stay_in_their_place(
    rows: list[Json], faults: list[str], repaired: list[Json] | None
) -> None:
    history = openai_history.read(rows)
    assert history.faults == faults
    legal = violations(history.messages) == [] and not faults
    assert legal == (repaired is None)
    assert mended(openai_history, rows) == (repaired or rows)


@given(
    damaged_histories(),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from([S, D])), max_size=5),
)
@settings(deadline=None, max_examples=50)
def test_rows_of_the_systems_are_all_kept_in_order_wherever_they_stood(
    messages: list[Message], added: list[tuple[int, Json]]
) -> None:
    rows = openai_history.write(openai_history.read([]), messages) if messages else []
    for number, (place, row) in enumerate(added):
        rows.insert(place, {**row, "name": f"n{number}"})
    wanted = [row["name"] for row in rows if row["role"] in ("system", "developer")]
    written = mended(openai_history, rows)
    assert [row["name"] for row in written if row["role"] in ("system", "developer")] == wanted


@pytest.mark.parametrize(
    ("reader", "rows", "where"),
    [
        (anthropic_history, ["hi"], "messages.0: an object"),
        (anthropic_history, [user("q"), {"role": 5}], "messages.1: a message has a role"),
        (anthropic_history, [user({"text": "q"})], "messages.0.content: a list"),
        (
            anthropic_history,
            [user([{"type": "text", "text": 5}])],
            "messages.0.content.0.text: a string",
        ),
        (openai_history, [{"role": "system", "content": 5}], "messages.0.content: a list"),
        (
            openai_history,
            [assistant(None, tool_calls=[{"id": "a"}])],
            "messages.0.tool_calls.0.function",
        ),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(
    reader: ModuleType, rows: list[Any], where: str
) -> None:
    with pytest.raises(HistoryFormatError) as caught:
        reader.read(rows)
    assert str(caught.value).startswith(where)


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
JPEG = {"type": "base64", "media_type": "image/jpeg", "data": IMAGE}
UNKNOWN = "unknown block 'dance': this API takes "
FIRST_FORM = assistant(None, function_call={"name": "read", "arguments": "{}"})


def custom(id_: str, given: Any = "any text") -> Json:
    """OpenAI's row of a custom tool's call."""
    call = {"id": id_, "type": "custom", "custom": {"name": "read", "input": given}}
    return assistant(None, tool_calls=[call])


@pytest.mark.parametrize(
    ("reader", "rows", "fault"),
    [
        (openai_history, [calls("c", arguments={}), tool("c")], "0: tool_calls.0.function: argum"),
        (openai_history, [calls("c", arguments=None), tool("c")], "0: tool_calls.0.function: argu"),
        (openai_history, [calls("c", arguments=" "), tool("c")], "0: tool_calls.0.function: argum"),
        (openai_history, [assistant("a", tool_calls=[])], "0: tool_calls is an empty list"),
        (openai_history, [user("\ud83d")], "0: half of a surrogate pair"),
        (openai_history, [system("\ud83d"), user("q")], "0: half of a surrogate pair"),
        (openai_history, [calls("c", arguments='{"a": "\udc00"}'), tool("c")], "0: half of a"),
        (openai_history, [user([{"type": "dance"}, X])], f"0: content.0: {UNKNOWN}text"),
        (
            openai_history,
            [system([{"type": "dance"}, X]), user("q")],
            f"0: content.0: {UNKNOWN}text here",
        ),
        (
            openai_history,
            [assistant("a", tool_calls=[{"type": "dance", "id": "a"}])],
            f"0: tool_calls.0: {UNKNOWN}function, custom",
        ),
        (
            openai_history,
            [user([picture(f"data:image/jpeg;base64,{IMAGE}")])],
            "0: content.0: the image is called 'image/jpeg' and is image/png",
        ),
        (
            openai_history,
            [user([picture("data:image/png;base64,!")])],
            "0: content.0.image_url.url",
        ),
        (anthropic_history, [user([{"type": "dance"}, X])], f"0: content.0: {UNKNOWN}text, image"),
        (anthropic_history, [user([{}, X])], "0: content.0: unknown block None"),
        (
            anthropic_history,
            [assistant([use("a")]), user([answer("a", [use("b")])])],
            "1: content.0.content.0: unknown block 'tool_use'",
        ),
        (anthropic_history, [user("\ud83d")], "0: half of a surrogate pair"),
        (
            anthropic_history,
            [
                user(
                    [{"type": "document", "title": "\udc00", "source": {"type": "url", "url": "u"}}]
                )
            ],
            "0: half of a surrogate pair",
        ),
        (
            anthropic_history,
            [assistant([{"type": "thinking", "thinking": "hm"}, X])],
            "0: content.0: thinking without its signature",
        ),
        (
            anthropic_history,
            [user([{"type": "image", "source": JPEG}])],
            "0: content.0: the image is called 'image/jpeg' and is 'image/png'",
        ),
        (
            anthropic_history,
            [user([{"type": "image", "source": {**JPEG, "data": "aGk="}}])],
            "0: content.0: an image that this API refuses: it is no PNG",
        ),
        (
            anthropic_history,
            [user([{"type": "image", "source": {**JPEG, "data": "!"}}])],
            "0: content.0.source.data: no base64",
        ),
        (anthropic_history, [{"role": "system", "content": "s"}, user("q")], "0: role 'system' is"),
        (openai_history, [{"role": "model", "content": "s"}, user("q")], "0: role 'model' is none"),
        (anthropic_history, [user([SEARCH, X])], "0: content.0: 'server_tool_use' can only be in"),
        (
            anthropic_history,
            [assistant([SEARCH, X])],
            "0: content.0: 'server_tool_use' without its result",
        ),
        (anthropic_history, [assistant([FOUND, X])], "0: content.0: 'web_search_tool_result' with"),
        (
            openai_history,
            [user([{"type": "refusal", "refusal": "no"}])],
            "0: content.0: 'refusal' can only be in assistant messages",
        ),
    ],
)
def test_what_the_api_refuses_in_a_row_is_one_fault_and_a_repaired_list_is_without_it(
    reader: ModuleType, rows: list[Json], fault: str
) -> None:
    before = [user("q")] if rows[0]["role"] == "assistant" else []
    after = [] if rows[-1]["role"] in ("user", "tool") else [user("q")]
    (found,) = reader.read([*before, *rows, *after]).faults
    number = int(fault[0]) + len(before)
    assert found.startswith(f"message {number}{fault[1:]}")
    mended(reader, [*before, *rows, *after])


@pytest.mark.parametrize(
    ("reader", "rows"),
    [
        (anthropic_history, [user("q"), assistant([SEARCH, FOUND, X]), user("x")]),
        (
            anthropic_history,
            [user([{"type": "container_upload", "file_id": "f"}, X]), assistant("a"), user("x")],
        ),
        (openai_history, [user("q"), custom("c"), tool("c")]),
        (
            openai_history,
            [user("q"), FIRST_FORM, {"role": "function", "name": "read", "content": "r"}],
        ),
        (openai_history, [user("q"), assistant(None, audio={"id": "a"}), user("x")]),
    ],
)
def test_what_our_messages_do_not_know_is_judged_by_the_apis_rules(
    reader: ModuleType, rows: list[Json]
) -> None:
    history = reader.read(rows)
    assert (violations(history.messages), history.faults) == ([], [])


def test_blocks_of_the_providers_own_tools_come_back_as_they_were() -> None:
    rows = [user("q"), assistant([SEARCH, FOUND, X]), user("x"), user("y")]
    history = anthropic_history.read(rows)
    written = anthropic_history.write(history, repair(history.messages))
    assert written[1]["content"] == [SEARCH, FOUND, X]


def test_calls_of_custom_tools_come_back_and_those_of_the_first_form_in_that_of_today() -> None:
    history = openai_history.read([user("q"), custom("c"), user("x")])
    written = openai_history.write(history, repair(history.messages))
    assert written[1:3] == [custom("c"), tool("c", LOST_RESULT)]
    orphan = {"role": "function", "name": "other", "content": "r"}
    first, second = mended(openai_history, [user("q"), FIRST_FORM, orphan])[1:]
    assert first["tool_calls"][0]["function"] == FIRST_FORM["function_call"]
    assert second == tool(first["tool_calls"][0]["id"], LOST_RESULT)


# Laws -------------------------------------------------------------------------------------------

ROLES = st.sampled_from(["user", "assistant", "tool", "function", "system", "dance", None])
SCRAP = st.none() | st.booleans() | st.integers(0, 3) | st.text(max_size=3)
KEYS = st.sampled_from(
    ["type", "text", "id", "content", "source", "tool_calls", "function", "input"]
)
BLOCKS = st.dictionaries(KEYS, SCRAP | st.sampled_from(["text", "tool_use", "image"]), max_size=4)
ROWS = st.fixed_dictionaries(
    {"role": ROLES, "content": SCRAP | st.lists(SCRAP | BLOCKS, max_size=3)}
)


@given(st.lists(SCRAP | ROWS, max_size=4))
@settings(deadline=None)
def test_any_json_is_read_or_refused(rows: list[Any]) -> None:
    for reader in (anthropic_history, openai_history):
        with suppress(HistoryFormatError):
            history = reader.read(rows)
            assert len(history.rows) == len(history.messages)


@given(damaged_histories())
@settings(deadline=None, max_examples=50)
def test_a_damaged_conversation_is_written_as_the_api_takes_it(messages: list[Message]) -> None:
    """Rendered without repair it keeps its faults, which a reader must hand to repair."""
    for reader in (anthropic_history, openai_history):
        if not messages:
            continue
        faulty = reader.write(reader.read([]), messages)
        mended(reader, faulty)


def test_words_and_results_are_the_same_after_reading() -> None:
    messages = [
        user_text("q"),
        Message("assistant", (TextBlock("let me see"), ToolUseBlock("a", "read", {"x": [1]}))),
        Message("user", (ToolResultBlock("a", (TextBlock("r"),)), TextBlock("and?"))),
    ]
    for reader in (anthropic_history, openai_history):
        history = reader.read(reader.write(reader.read([]), messages))
        assert history.messages == messages
