"""`galata debug`: the classifier and the repair, as an operator calls them."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.__main__ import main
from tests.bridge.cli.scripted import environ, piped


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def give(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    """Standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body)))


OVERFLOW = b'{"error": {"message": "prompt is too long: 208,310 tokens > 200,000 maximum"}}'


@pytest.mark.parametrize(
    ("words", "body", "verdict"),
    [
        (["--status", "400"], OVERFLOW, ("overflow", 200_000, 208_310, None)),
        ([], OVERFLOW, ("overflow", 200_000, 208_310, None)),
        (["--status", "429"], b"slow down, retry in 3s", ("rate_limit", None, None, 3.0)),
        (
            ["--status", "429", "--header", "Retry-After: 20"],
            b"",
            ("rate_limit", None, None, 20.0),
        ),
        (
            ["--status", "429", "--header", "retry-after-ms: 250", "--header", "X: y"],
            b"",
            ("rate_limit", None, None, 0.25),
        ),
        (
            ["--status", "429", "--provider", "DashScope"],
            b"You exceeded your current quota, please check your plan and billing details.",
            ("rate_limit", None, None, None),
        ),
        (["--status", "400"], b"\xff\xfe\x00", ("unknown", None, None, None)),
        (["--status", "502"], b"<html>Bad Gateway</html>", ("transient", None, None, None)),
    ],
)
def test_the_verdict_on_a_refusal_is_json(
    words: list[str], body: bytes, verdict: Any, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, body)
    assert main(["debug", "refusal", *words]) == 0
    shown = json.loads(capsys.readouterr().out)
    keys = ("class", "limit_tokens", "requested_tokens", "retry_after_s")
    assert shown == dict(zip(keys, verdict, strict=True))


def test_a_header_without_a_name_is_wrong_use(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, b"")
    assert main(["debug", "refusal", "--header", "20"]) == 2
    assert "Name: value" in capsys.readouterr().err


LEGAL = [{"role": "user", "content": "q"}]
LOST = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "你好"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}
        ],
    },
    {"role": "user", "content": "and?"},
]


def test_a_legal_list_ends_with_0_and_is_printed_as_it_is(capsys) -> None:
    Path("h.json").write_text(json.dumps({"model": "m", "messages": LEGAL}))
    for form in ("anthropic", "openai"):
        assert main(["debug", "history", "h.json", "--format", form]) == 0
        assert capsys.readouterr().out == ""
        assert main(["debug", "history", "h.json", "--format", form, "--repair"]) == 0
        shown = capsys.readouterr()
        assert json.loads(shown.out) == LEGAL
        assert "nothing is wrong" in shown.err


def test_faults_end_with_1_and_are_told_with_their_place_in_the_file(capsys) -> None:
    Path("h.json").write_text(json.dumps(LOST))
    assert main(["debug", "history", "h.json", "--format", "openai"]) == 1
    fault = "message 3: calls ['a'] are answered by results []"
    assert capsys.readouterr().out.splitlines() == [fault]


def test_a_repaired_list_goes_to_output_and_its_faults_to_errors(capsys) -> None:
    Path("h.json").write_text(json.dumps(LOST))
    assert main(["debug", "history", "h.json", "--format", "openai", "--repair"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("message 3: ")
    assert "你好" in shown.out
    rows = json.loads(shown.out)
    assert rows[:3] == LOST[:3]
    assert rows[3]["role"] == "tool"
    assert rows[4] == LOST[3]
    Path("h.json").write_text(shown.out)
    assert main(["debug", "history", "h.json", "--format", "openai"]) == 0


def test_rows_of_the_systems_are_judged_and_stay_where_they_stood(capsys) -> None:
    later = {"role": "developer", "content": "be brief"}
    rows = [{"role": "system", "content": " "}, *LOST[1:3], later, LOST[3]]
    Path("h.json").write_text(json.dumps(rows))
    assert main(["debug", "history", "h.json", "--format", "openai", "--repair"]) == 1
    shown = capsys.readouterr()
    assert "message 0: blank text in a system message" in shown.err.splitlines()
    roles = [row["role"] for row in json.loads(shown.out)]
    assert roles == ["user", "assistant", "tool", "developer", "user"]


def test_what_a_repaired_list_cannot_hold_is_told(capsys) -> None:
    rows = [{"role": "user", "content": "a", "name": "ann"}, {"role": "user", "content": "b"}]
    Path("h.json").write_text(json.dumps(rows))
    assert main(["debug", "history", "h.json", "--format", "openai", "--repair"]) == 1
    assert "note: messages.0: 'name' is left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("{", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("5", "the messages: a list is expected"),
        ('{"model": "m"}', "the messages: a list is expected"),
    ],
)
def test_what_is_no_list_of_messages_is_wrong_use(text: str | None, why: str, capsys) -> None:
    if text is not None:
        Path("h.json").write_text(text)
    assert main(["debug", "history", "h.json", "--format", "anthropic"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("h.json: ")
    assert why in shown.err


@pytest.mark.parametrize("form", ["anthropic", "openai"])
def test_a_row_that_is_no_message_is_a_fault_of_its_own_and_the_rest_is_repaired(
    form: str, capsys
) -> None:
    odd = [{"role": "user", "content": 5}, {"role": None, "content": "a"}, "b"]
    Path("h.json").write_text(json.dumps([{"role": "user", "content": "q"}, *odd]))
    assert main(["debug", "history", "h.json", "--format", form, "--repair"]) == 1
    shown = capsys.readouterr()
    assert "message 1: content: a list is expected here, not 5" in shown.err
    assert "message 2: a message has a role, and this has null" in shown.err
    assert "message 3: an object is expected here, not a string" in shown.err
    Path("r.json").write_text(shown.out)
    assert main(["debug", "history", "r.json", "--format", form]) == 0


def test_half_of_a_surrogate_pair_is_a_fault_also_where_the_output_has_escapes(
    capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b'[{"role": "user", "content": "\\ud83d"}]')
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(shown := io.BytesIO(), "ascii"))
    assert main(["debug", "history", "-", "--format", "openai", "--repair"]) == 1
    sys.stdout.flush()
    assert json.loads(shown.getvalue()) == [{"role": "user", "content": "\ufffd"}]
    assert "message 0: half of a surrogate pair" in capsys.readouterr().err


def test_a_block_that_the_api_does_not_know_is_a_fault_that_says_what_to_do(capsys) -> None:
    Path("h.json").write_text('[{"role": "user", "content": [{"type": "dance"}]}]')
    assert main(["debug", "history", "h.json", "--format", "anthropic"]) == 1
    told = capsys.readouterr().out
    assert "message 0: content.0: unknown block 'dance'" in told
    assert "leave it out" in told


def test_the_format_has_to_be_said(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["debug", "history", "h.json"])
    assert ended.value.code == 2
    assert "--format" in capsys.readouterr().err


def put(path: Path) -> None:
    path.write_text(json.dumps(LOST))


async def test_on_pipes_it_needs_no_library_of_a_provider(tmp_path: Path) -> None:
    put(tmp_path / "h.json")
    env = environ(tmp_path, PYTHONPROFILEIMPORTTIME="1")
    words = ("debug", "history", "h.json", "--format", "openai", "--repair")
    code, shown, errors = await piped(*words, cwd=tmp_path, env=env)
    assert code == 1
    assert json.loads(shown)[0] == LOST[0]
    imported = {line.rpartition("|")[2].strip() for line in errors.splitlines()}
    assert "agent.history" in imported
    assert imported.isdisjoint({"telegram", "slack_sdk", "anthropic", "openai", "aiosqlite"})
