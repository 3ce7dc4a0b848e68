"""Field cases (a): whatever a history went through, no provider refuses it.

Conversations that are stored in a broken form are sent through both real SDKs, and the strict servers
judge. Asserted elsewhere already:

    1   agent/providers/test_histories.py: a_call_of_anthropics_without_its_result_gets_one_directly
    7   agent/test_history.py: repairs[an orphan at the tail goes and the question stays]; that no
        question is ever lost: every_word_stays_with_its_speaker_and_in_its_place
    8   agent/providers/test_histories.py: faults_of_openais_order_are_kept_by_reading_and_mended
    9   agent/providers/test_bodies.py: shapes_that_broke_chats_are_taken_by_every_api
    15  agent/providers/test_bodies.py: an_empty_system_prompt_is_left_out
    18  agent/providers/test_bodies.py: ids_of_another_provider_fit_on_both_halves_and_stay_as_stored
    20  agent/test_history.py: repairs[the whole conversation stored twice]; that storing twice adds
        nothing: memory/test_stores.py
    22  agent/providers/test_bodies.py: an_image_of_a_tool_is_a_row_of_the_users_in_chat_completions
    24  agent/test_history.py: a_window_cut_anywhere_in_a_long_tool_loop_keeps_every_pair
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from agent.history import BEGINNING, LOST_RESULT, NO_CONTENT
from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    assistant_text,
    user_text,
)
from agent.overflow import BOUNDARY
from bridge.runs.loading import INTERRUPTED_MARK
from channels.base import Attachment
from tests.field_cases.bed import KINDS, Called, Kind, chat, facts, run, server_for, texts
from tests.servers.llm import LlmRequest, Reply, thinking, tool
from tests.servers.openai import OpenAIServer
from tests.servers.openai_rules import Rules, alternating, deepseek, mistral
from tests.servers.pictures import noise_png, png, sent_sizes

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
READ = Called("read", side_effects=True)
TIDES = "The tide comes in. " * 500


def asks(*ids: str) -> Message:
    return Message("assistant", tuple(ToolUseBlock(id_, "read", {}) for id_ in ids))


def answers(*ids: str, text: str = "ok", failed: bool = False) -> Message:
    content = (TextBlock(text),) if text else ()
    return Message("user", tuple(ToolResultBlock(id_, content, failed) for id_ in ids))


GO, AND = user_text("go"), user_text("and?")
INTERRUPTED = ("assistant", INTERRUPTED_MARK)


def called(*ids: str) -> list[tuple[str, str]]:
    return [("assistant", f"call {id_}") for id_ in ids]


def answered(*ids: str, text: str = "ok") -> list[tuple[str, str]]:
    return [("user", f"result {id_}: {text}") for id_ in ids]


# What is stored of an earlier run, and what goes to the model of it before the next question.
STORED: dict[str, tuple[list[Message], list[tuple[str, str]]]] = {
    "1 a lost parallel result is replaced directly after its call": (
        [GO, asks("t1", "t2"), answers("t1"), AND],
        [
            ("user", "go"),
            *called("t1", "t2"),
            *answered("t1"),
            *answered("t2", text=LOST_RESULT),
            ("user", "and?"),
            INTERRUPTED,
        ],
    ),
    "1 a result at a later position is moved to its call and stays no orphan": (
        [GO, asks("t1"), AND, assistant_text("wait"), answers("t1")],
        [
            ("user", "go"),
            *called("t1"),
            *answered("t1"),
            ("user", "and?"),
            ("assistant", "wait"),
            INTERRUPTED,
        ],
    ),
    "4 a result whose call was removed goes too": (
        [GO, answers("t1", text="raw required", failed=True), assistant_text("sorry")],
        [("user", "go"), ("assistant", "sorry")],
    ),
    "7 an orphan at the tail goes and the question stays": (
        [GO, asks("A"), answers("A"), AND, answers("B")],
        [("user", "go"), *called("A"), *answered("A"), ("user", "and?"), INTERRUPTED],
    ),
    "8 of several results for one call the first stays": (
        [GO, asks("c1"), answers("c1", "c2"), answers("c1", text="again"), answers("", text="x")],
        [("user", "go"), *called("c1"), *answered("c1"), INTERRUPTED],
    ),
    "9 calls, then a question": (
        [GO, asks("c1"), AND],
        [
            ("user", "go"),
            *called("c1"),
            *answered("c1", text=LOST_RESULT),
            ("user", "and?"),
            INTERRUPTED,
        ],
    ),
    "9 an answer, then a result, then a question": (
        [GO, assistant_text("a"), answers("c1"), AND],
        [("user", "go"), ("assistant", "a"), ("user", "and?"), INTERRUPTED],
    ),
    "9 results first": (
        [answers("c1"), answers("c2"), AND],
        [("user", "and?"), INTERRUPTED],
    ),
    "9 two messages with calls and one result": (
        [GO, asks("c1"), asks("c2"), answers("c2")],
        [
            ("user", "go"),
            *called("c1"),
            *answered("c1", text=LOST_RESULT),
            *called("c2"),
            *answered("c2"),
            INTERRUPTED,
        ],
    ),
    "13 an answer of line feeds, alone": (
        [GO, assistant_text("\n\n")],
        [("user", "go")],
    ),
    "13 an answer of line feeds beside a call": (
        [GO, Message("assistant", (TextBlock("\n\n"), *asks("a").blocks)), answers("a")],
        [("user", "go"), *called("a"), *answered("a"), INTERRUPTED],
    ),
    "14 an assistant that speaks first, after words that have letters": (
        [assistant_text("Good morning.")],
        [("user", BEGINNING), ("assistant", "Good morning.")],
    ),
    "14 an empty result has letters, also among others": (
        [
            GO,
            asks("a", "b"),
            Message("user", (*answers("a", text="").blocks, *answers("b").blocks)),
        ],
        [
            ("user", "go"),
            *called("a", "b"),
            *answered("a", text=NO_CONTENT),
            *answered("b"),
            INTERRUPTED,
        ],
    ),
    "16 an answer without any content": ([GO, Message("assistant", ())], [("user", "go")]),
    "17 a call whose arguments are no JSON, with its error": (
        [
            GO,
            Message("assistant", (replace(ToolUseBlock("a", "read", {}), raw='{"path": "a.py'),)),
            answers("a", text="not JSON", failed=True),
        ],
        [("user", "go"), *called("a"), *answered("a", text="not JSON"), INTERRUPTED],
    ),
    "20 one id in two turns": (
        [
            *(GO, asks("call_0"), answers("call_0"), assistant_text("x")),
            *(AND, asks("call_0"), answers("call_0", text="2"), assistant_text("y")),
        ],
        [
            ("user", "go"),
            *called("call_0"),
            *answered("call_0"),
            ("assistant", "x"),
            ("user", "and?"),
            *called("call_0_2"),
            *answered("call_0_2", text="2"),
            ("assistant", "y"),
        ],
    ),
    "20 one step stored twice": (
        [GO, *[asks("a"), answers("a")] * 2, assistant_text("x")],
        [
            ("user", "go"),
            *called("a"),
            *answered("a"),
            *called("a_2"),
            *answered("a_2"),
            ("assistant", "x"),
        ],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", STORED)
async def test_a_conversation_that_is_stored_broken_goes_on(
    tmp_path: Path, case: str, kind: Kind
) -> None:
    """Cases 1, 4, 7, 8, 9, 13, 14, 16, 17, 20: legal on the wire, nothing that was said is lost, and
    the store is not touched."""
    messages, expected = STORED[case]
    async with chat(tmp_path, kind, tools=[READ]) as it:
        await it.ask("/new")
        await it.remember(*messages)
        before = await it.stored()
        it.server.answer("It goes on.")
        assert await it.ask("next") == "It goes on."
        said = facts(it.server.requests[-1], kind)
        assert said == [*expected, ("user", "next")]
        assert (await it.stored())[: len(before)] == before


@pytest.mark.parametrize("rules", [alternating, deepseek, mistral])
async def test_servers_with_rules_of_their_own_take_every_stored_shape(
    tmp_path: Path, rules: Callable[[], Rules]
) -> None:
    """Case 9: Gemini's compatible endpoint wants turns that alternate; so do others."""
    server = OpenAIServer(rules())
    async with chat(tmp_path, server=server, tools=[READ], may_refuse=True) as it:
        for messages, _ in STORED.values():
            await it.ask("/new")
            await it.remember(*messages, run=f"earlier {len(server.requests)}")
            server.answer("It goes on.")
            assert await it.ask("next") == "It goes on."
        learnt = [words for words in server.refusals if "reasoning_content" not in words]
        assert len(learnt) <= 2, "a dialect is learnt once, and no shape is refused after that"
        assert len(server.requests) == len(STORED) + len(server.refusals)


async def test_deepseek_gets_its_reasoning_of_earlier_turns_with_calls_back(tmp_path: Path) -> None:
    """Its documentation: of turns with calls in all later requests, else it refuses; others not."""
    server = OpenAIServer(deepseek())
    async with chat(tmp_path, server=server, tools=[READ]) as it:
        server.answer(thinking("I read it."), tool("read", {}))
        server.answer(thinking("It says x."), "It says x.")
        await it.ask("what does it say?")
        server.answer(thinking("He thanks me."), "You are welcome.")
        await it.ask("thanks")
        server.answer("Bye.")
        await it.ask("bye")
        rows = [row for row in server.requests[-1].messages if row["role"] == "assistant"]
        assert [row.get("reasoning_content") for row in rows] == ["I read it.", None, None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "words",
    [
        "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: t1",
        "messages.62.content.1: unexpected tool_use_id found in tool_result blocks: t1",
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "messages 参数非法。请检查文档。",
    ],
)
async def test_what_is_sent_again_after_a_refusal_of_form_has_its_calls_and_results_in_pairs(
    tmp_path: Path, words: str, kind: Kind
) -> None:
    """Case 4: whatever leaves for the second try leaves with its other half, and nothing runs twice."""
    reader = Called("read", lambda _: "the file", side_effects=True)
    async with chat(tmp_path, kind, tools=[reader]) as it:
        for n in range(3):
            it.server.answer(tool("read", {}, id=f"old{n}"))
            it.server.answer(f"Answer {n}.")
            await it.ask(f"question {n}")
        it.server.answer(tool("read", {}, id="t1"))
        it.server.fail(400, words)
        it.server.answer("Here is what the file says.")
        said = await it.ask("read it again")
        assert "Here is what the file says." in said
        assert len(reader.ran) == 4
        assert ("user", "read it again") in facts(it.server.requests[-1], kind)
        assert it.server.refusals == [], "the strict server took the second try"
        assert len(it.server.requests) == 9, "it was tried again once"


@pytest.mark.parametrize("kind", KINDS)
async def test_the_question_of_a_giant_turn_is_never_trimmed_away(kind: Kind) -> None:
    """Cases 6 and 24: a question and 21 steps are larger than the window: the results become shorter,
    the oldest first, and every call keeps its result. A fallback model gets the same."""
    steps = [m for n in range(21) for m in (asks(f"c{n}"), answers(f"c{n}", text=TIDES))]
    async with (
        run(kind, window=40_000, tools=[READ]) as it,
        run(kind, window=40_000, tools=[READ]) as other,
    ):
        it.it.models = (*it.it.models, *other.it.models)
        it.server.fail(401, "invalid x-api-key")
        other.server.answer("Done.")
        history = [user_text("old " * 400), assistant_text("older"), user_text("the task"), *steps]
        assert await it.it.run(history).execute() == "Done."
        for request in (it.requests[0], other.requests[0]):
            said = facts(request, kind)
            assert ("user", "the task") in said
            assert [words for _, words in said if words.startswith("call ")] == [
                f"call c{n}" for n in range(21)
            ]
            lengths = [len(words) for _, words in said if words.startswith("result ")]
            assert lengths == sorted(lengths), "the oldest are the shortest"
            assert lengths[-1] >= len(TIDES)
            assert request.size < 4 * 40_000


async def test_a_tool_loop_that_outgrows_the_window_keeps_its_question_and_runs_nothing_twice() -> (
    None
):
    """Case 24: the server itself refuses what is too long, after any number of steps. Its model reads
    what, by the request, it has not read yet."""
    server = OpenAIServer(Rules(window=6_000))
    reader = Called("read", lambda a: f"file {a['n']}: {TIDES}", required=["n"], side_effects=True)
    numbers = [str(n) for n in range(20)]

    def next_one(request: LlmRequest) -> Reply | str:
        known = texts(request).replace("\\", "")
        missing = next((n for n in numbers if f'"n": "{n}"' not in known), None)
        return "All 20 are read." if missing is None else Reply(tool("read", {"n": missing}))

    server.default = next_one
    async with run(server=server, window=20_000, tools=[reader], may_refuse=True) as it:
        it.it.limits = replace(it.it.limits, steps=40)
        assert await it.it.run([user_text("read all twenty")]).execute() == "All 20 are read."
        assert [a["n"] for a in reader.ran] == numbers
        assert BOUNDARY in texts(it.requests[-1]), "calls have left the context"
        for request in it.requests:
            assert "read all twenty" in facts(request, "openai")[0][1] or any(
                words == "read all twenty" for _, words in facts(request, "openai")
            )
        assert server.refusals
        assert all("maximum context length" in words for words in server.refusals)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_of_line_feeds_is_asked_for_once_more_and_never_stored(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 13: alone, and next to a call; the chat stays usable."""
    async with chat(tmp_path, kind, tools=[READ]) as it:
        it.server.answer("\n\n", tool("read", {}))
        it.server.answer("\n\n")
        it.server.answer(" \n")
        assert "The model gave no answer" in await it.ask("go")
        assert len(it.server.requests) == 3
        it.server.answer("Fine.")
        assert await it.ask("and?") == "Fine."
        words = [b["text"] for m in await it.stored() for b in m["blocks"] if b["type"] == "text"]
        assert all(text.strip() for text in words[-2:])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", ["", (), (TextBlock(""), TextBlock(" "))])
async def test_an_empty_result_of_a_tool_says_that_it_is_empty(
    kind: Kind, content: str | tuple[TextBlock, ...]
) -> None:
    """Case 15; a message of nothing but calls has no empty text either."""
    async with run(kind, tools=[Called("read", lambda _: content)]) as it:
        it.server.answer(tool("read", {}, id="c1"))
        it.server.answer("It is empty.")
        assert await it.it.run([GO]).execute() == "It is empty."
        assert facts(it.requests[1], kind)[1:] == [*called("c1"), *answered("c1", text="(empty)")]
        assistant = next(m for m in it.requests[1].messages if m["role"] == "assistant")
        assert "" not in (assistant["content"], str(assistant["content"]))
        if kind == "openai":
            assert assistant["content"] is None


@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_without_content_after_a_tool_with_effects_is_no_error(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 16: one nudge, no retry, the tool runs once, no empty message is stored. (No tool of ours
    delivers anything by itself, so that there is no run that may end without a word.)"""
    send = Called("send_photo", lambda _: "sent", side_effects=True)
    async with chat(tmp_path, kind, tools=[send]) as it:
        it.server.answer(tool("send_photo", {}))
        it.server.answer()
        it.server.answer("The photo is sent.")
        assert await it.ask("send it") == "The photo is sent."
        assert (len(send.ran), len(it.server.requests)) == (1, 3)
        assert all(message["blocks"] for message in await it.stored())
        outcomes = await it.database.read("SELECT DISTINCT outcome FROM usage")
        assert [row[0] for row in outcomes] == ["completed"]


@pytest.mark.parametrize("kind", KINDS)
async def test_broken_arguments_never_poison_the_conversation(tmp_path: Path, kind: Kind) -> None:
    """Case 17: not executed, stored as an object with an error beside it, and legal ever after."""
    write = Called("write", required=["path", "content"], side_effects=True)
    async with chat(tmp_path, kind, tools=[write]) as it:
        broken = '{"path":"a.py","content":"print('
        it.server.answer(tool("write", broken), stop="tool_use" if kind == "anthropic" else "stop")
        it.server.answer("I could not write it.")
        assert await it.ask("write it") == "I could not write it."
        it.server.answer("Fine.")
        assert await it.ask("go on") == "Fine."
        assert write.ran == []
        (call,) = [b for m in await it.stored() for b in m["blocks"] if b["type"] == "tool_use"]
        assert (call["arguments"], call["raw"]) == ({}, None)
        (result,) = [
            r for m in await it.stored() for r in m["blocks"] if r["type"] == "tool_result"
        ]
        assert result["is_error"] is True
        assert "print(" not in texts(it.server.requests[-1])


async def test_a_conversation_goes_from_one_provider_to_the_other_and_back(tmp_path: Path) -> None:
    """Case 18: ids of either are rewritten on the wire, on both halves, and stay as they are stored."""
    ids = ["functions.exec:0", "call_x|fc_y", "Bash:12", "tööl 😀 " + "x" * 90]
    kinds: list[Kind] = ["openai", "anthropic", "openai", "anthropic"]
    for turn, kind in enumerate(kinds):
        async with chat(tmp_path, kind, tools=[READ]) as it:
            it.server.answer(tool("read", {}, id=ids[turn]))
            it.server.answer(f"Answer {turn}.")
            assert await it.ask(f"question {turn}") == f"Answer {turn}."
            said = [words for _, words in facts(it.server.requests[-1], kind)]
            made = [words.removeprefix("call ") for words in said if words.startswith("call ")]
            results = [words[7:-4] for words in said if words.startswith("result ")]
            assert made == results
            assert len(set(made)) == turn + 1
            uses = [b for m in await it.stored() for b in m["blocks"] if b["type"] == "tool_use"]
            assert [use["id"] for use in uses] == ids[: turn + 1]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_provider_that_counts_its_calls_from_zero_in_each_answer_is_understood(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 20: over steps and turns, and for parallel calls of one id."""
    reader = Called("read", lambda a: f"file {a['n']}", required=["n"])
    async with chat(tmp_path, kind, tools=[reader]) as it:
        for turn in ("a", "b"):
            for step in "12":
                same = [tool("read", {"n": f"{turn}{step}{i}"}, id="call_0") for i in "xy"]
                it.server.answer(*same)
            it.server.answer("Read.")
            assert await it.ask(f"turn {turn}") == "Read."
        said = [words for _, words in facts(it.server.requests[-1], kind)]
        ids = [words[5:] for words in said if words.startswith("call ")]
        assert len(set(ids)) == 8
        wanted = [f"file {turn}{step}{i}" for turn in "ab" for step in "12" for i in "xy"]
        results = [words.split(": ") for words in said if words.startswith("result ")]
        assert results == [[f"result {id_}", words] for id_, words in zip(ids, wanted, strict=True)]


UNREADABLE = (
    "not json",
    "[]",
    '{"role": "system", "blocks": []}',
    '{"role": "assistant", "blocks": [{"type": "hologram"}]}',
    '{"role": "user", "blocks": [{"type": "text", "text": null}]}',
    '{"role": "assistant", "blocks": [{"type": "tool_use", "id": "a", "name": "b", "arguments": [1]}]}',
)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stored_message_that_cannot_be_read_takes_nothing_else_with_it(
    tmp_path: Path, kind: Kind
) -> None:
    """One row broken by hand, or by another version: its chat goes on, and others notice nothing."""
    echo = Called("echo", lambda arguments: (TextBlock(str(arguments)),))
    async with chat(tmp_path, kind, tools=[echo]) as it:
        it.server.answer(tool("echo", {"n": 1}))
        it.server.answer("Echoed.")
        assert await it.ask("first") == "Echoed."
        rows = await it.database.read("SELECT id, body FROM messages ORDER BY id")
        assert len(rows) == 4
        for id_, body in rows:
            for broken in UNREADABLE:
                await it.database.write(partial(put_body, id_=id_, body=broken))
                it.server.answer("Still here.")
                assert await it.ask("next") == "Still here."
            await it.database.write(partial(put_body, id_=id_, body=body))
        assert it.server.refusals == []


def put_body(connection: sqlite3.Connection, id_: int, body: str) -> None:
    connection.execute("UPDATE messages SET body = ? WHERE id = ?", (body, id_))


@pytest.mark.parametrize("kind", KINDS)
async def test_half_an_answer_is_no_beginning_for_the_next_try(tmp_path: Path, kind: Kind) -> None:
    """Case 21: after a cut stream, and after a stop, the list ends with the user's words."""
    async with chat(tmp_path, kind) as it:
        it.server.answer("Half an answer, then silence.").cut_after(1)
        it.server.answer("The whole answer.")
        assert (await it.ask("go")).endswith("The whole answer.")
        it.server.answer("Another long answer, begun.").stall_after(1)
        await it.send("and?")
        await it.until(lambda: it.channel.replies[1:] and it.channel.replies[1].preview)
        await it.send("/cancel")
        await it.bridge.idle()
        it.server.fail(503, "overloaded")
        it.server.answer("Fine.")
        assert (await it.ask("next")).endswith("Fine.")
        for request in it.server.requests:
            assert request.messages[-1]["role"] == "user"
        assert "Another long" in texts(it.server.requests[-1]), "what was shown is kept"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_picture_that_a_tool_gives_reaches_every_api(kind: Kind) -> None:
    """Case 22: where a tool's row must be a string the picture follows in a row of the user's."""
    content = (TextBlock("a chart"), ImageBlock("image/png", PNG))
    server = server_for(kind)
    if isinstance(server, OpenAIServer):
        server.rules.messages.tool_content_strings = True
    async with run(kind, server=server, tools=[Called("draw", lambda _: content)]) as it:
        it.server.answer(tool("draw", {}, id="c1"))
        it.server.answer("It rises.")
        assert await it.it.run([GO]).execute() == "It rises."
        *_, last = it.requests[1].messages
        if kind == "openai":
            row = it.requests[1].messages[-2]
            assert (row["role"], row["content"]) == ("tool", "a chart")
            assert [part["type"] for part in last["content"]] == ["image_url"]
        else:
            assert [part["type"] for part in last["content"][0]["content"]] == ["text", "image"]


WIDE_REFUSED: dict[Kind, str] = {
    "anthropic": "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum",
    "openai": "Invalid image: it is too large.",  # as a rule none is named
}
OLD_REFUSED: dict[Kind, str] = {
    "anthropic": (
        "messages.4.content.0.tool_result.content.1.image.source.base64.data: At least one of the "
        "image dimensions exceed max allowed size: 80 pixels"
    ),
    "openai": "Invalid 'messages[6].content[0].image_url.url'. Image exceeds 80 pixels.",
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_picture_that_is_too_large_spoils_no_later_turn(tmp_path: Path, kind: Kind) -> None:
    """Case 23: what is larger than the provider takes comes down before it is sent; what it refuses
    all the same is sent once more at half the size, then left out, and that is remembered. Other
    pictures stay, and nothing is compacted."""
    async with chat(tmp_path, kind) as it:
        it.channel.files = {"large": noise_png(2_300, 1_800), "wide": noise_png(8_100, 20)}
        for ref in it.channel.files:
            message = it.channel.message(f"what is on the {ref} one?")
            attachment = Attachment("image", ref, f"{ref}.png", "image/png")
            if ref == "wide":
                it.server.fail(400, WIDE_REFUSED[kind])
                it.server.fail(400, WIDE_REFUSED[kind])
            it.server.answer(f"Answer about {ref}.")
            await it.bridge.receive(replace(message, attachments=(attachment,)))
            await it.bridge.idle()
        it.server.answer("Later.")
        assert await it.ask("and now?") == "Later."
        assert it.channel.finals[:2] == ["Answer about large.", "Answer about wide."]
        large = (1_568, 1_227)
        assert list(map(sent_sizes, it.server.requests)) == [
            [large],
            [large, (1_568, 4)],
            [large, (784, 2)],
            [large],
            [large],
        ]
        assert "An image was here" in texts(it.server.requests[-1])
        assert "Answer about large." in texts(it.server.requests[-1]), "nothing was compacted"


@pytest.mark.parametrize(
    "words",
    [
        "At most 2 image(s) may be provided in one prompt.",
        "Too many images in this request: the maximum is 2.",
        "Too many images: 3 > 2",
    ],
)
async def test_of_more_pictures_than_a_server_takes_the_newest_stay(
    tmp_path: Path, words: str
) -> None:
    """Case 23: the one that is asked about was left out, in every later turn too."""
    async with chat(tmp_path) as it:
        it.channel.files = {f"{n}": png(10 * n, 10) for n in range(1, 5)}
        for ref in it.channel.files:
            if ref in "34":
                it.server.fail(400, words)
            message = it.channel.message(f"what is on picture {ref}?")
            attachment = Attachment("image", ref, f"{ref}.png", "image/png")
            await it.bridge.receive(replace(message, attachments=(attachment,)))
            await it.bridge.idle()
        widths = [[width for width, _ in sent_sizes(r)] for r in it.server.requests]
        assert widths == [[10], [10, 20], [10, 20, 30], [20, 30], [20, 30, 40], [30, 40]]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_old_picture_that_is_named_is_remembered_as_the_smaller_one_that_was_taken(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 23, after a change of the provider's limits; also one that a tool gave."""
    old, new = ImageBlock("image/png", png(90, 60)), ImageBlock("image/png", png(40, 20))
    asked = Message("assistant", (ToolUseBlock("t1", "read", {}),))
    given = Message("user", (ToolResultBlock("t1", (TextBlock("a chart"), old)),))
    shown = Message("user", (new, TextBlock("and this?")))
    async with chat(tmp_path, kind, tools=[READ]) as it:
        await it.ask("hi")
        await it.remember(GO, asked, given, assistant_text("A chart."), run="r1")
        await it.remember(shown, assistant_text("A picture."), run="r2")
        it.server.fail(400, OLD_REFUSED[kind])
        assert await it.ask("which is larger?") == "which is larger?"
        await it.ask("sure?")
        sizes = list(map(sent_sizes, it.server.requests))[1:]
        assert sizes == [[(90, 60), (40, 20)], [(45, 30), (40, 20)], [(45, 30), (40, 20)]]
