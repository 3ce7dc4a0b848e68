"""Field cases (b): a request that is too long becomes shorter, once, and the person is told the truth.

Refusals are what providers really say (`tests/agent/providers/test_errors.py` holds the table), sent by
the local servers through the real SDKs. Asserted elsewhere already:

    26, 27, 29, 32, 38, 41   the class and the numbers of each wording:
        agent/providers/test_errors.py: every_known_refusal_gets_its_kind_and_its_numbers
    33  bridge/test_agent_bridge.py: an_error_is_one_sentence_and_an_id
    35  bridge/test_context.py: a_digest_stands_in_for_a_summary_that_fails[longer]
    40  bridge/test_config.py: the_reserve_for_the_answer_must_fit_the_window
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ProviderError, RefusalKind
from agent.messages import ImageBlock, Message, assistant_text, user_text
from agent.overflow import BOUNDARY
from agent.settings import MAX_OUTPUT_TOKENS, ModelSettings
from agent.tool_runner import MAX_RESULT_CHARACTERS
from bridge.log import Redactor
from bridge.models.chat_models import chat_models
from tests.agent.bed import SIZES
from tests.agent.providers import test_errors as wordings
from tests.bridge.bed import LIMITS
from tests.e2e.bed import config
from tests.field_cases.bed import KINDS, Called, Kind, Run, chat, facts, run, server_for, texts
from tests.servers.anthropic_rules import Rules as AnthropicRules
from tests.servers.llm import HttpReply, LlmRequest, Reply, Usage, tool
from tests.servers.openai import OpenAIServer, error_event
from tests.servers.openai_rules import Rules

K = RefusalKind
GO = user_text("go")
TIDES = "The tide comes in. " * 50


def turns(count: int, words: str = TIDES) -> list[Message]:
    """Questions with long answers, and the question that is asked now."""
    old = [m for n in range(count) for m in (user_text(f"q{n}"), assistant_text(f"a{n} {words}"))]
    return [*old, user_text("and now?")]


async def ask(it: Run, history: Sequence[Message]) -> tuple[str, list[LlmRequest]]:
    """One run, and the requests that it made."""
    before = len(it.requests)
    it.it.max_turns = 50
    it.it.waits.clear()
    answer = await it.it.run(history).execute()
    return answer, it.requests[before:]


def rows(kind: RefusalKind) -> list[tuple[Kind, int, Any]]:
    """The known refusals of that kind, with the API that sends them."""
    return [
        ("anthropic" if row in wordings.ANTHROPIC else "openai", row[0], row[1])
        for row in wordings.ROWS
        if row[2] is kind and row[0] is not None
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_every_wording_of_an_overflow_leads_to_one_shorter_request(kind: Kind) -> None:
    """Case 32 (and 38, 41 where a relay hides it behind a 5xx): whole turns leave, and the question
    is asked once more, without waiting."""
    known = [row for row in rows(K.OVERFLOW) if row[0] == kind]
    assert known
    async with run(kind) as it:
        for _, status, body in known:
            it.server.answer_http(status, body)
            it.server.answer("ok")
            answer, requests = await ask(it, turns(30))
            assert (answer, len(requests), it.it.waits) == ("ok", 2, []), body
            long, short = (facts(request, kind) for request in requests)
            assert len(short) < len(long), body
            assert short[-1] == ("user", "and now?"), body
            kept = [words.split()[0] for speaker, words in short if speaker == "assistant"]
            assert kept == [f"a{n}" for n in range(30)][30 - len(kept) :], "the newest stay whole"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_unknown_refusal_is_tried_once_with_less_whatever_the_window_and_then_told(
    kind: Kind,
) -> None:
    """Cases 32 and 41: also one without any body; a small prompt is not tried again."""
    bodies: list[Any] = ["400 status code (no body)", "", {"error": {"message": "нет"}}]
    async with run(kind, window=1_000_000) as it:
        it.it.max_turns = 50
        for body in bodies:
            for history, tries in ((turns(30), 2), (turns(1), 1)):
                for _ in range(tries):
                    it.server.answer_http(400, body)
                before = len(it.requests)
                with pytest.raises(ProviderError):
                    await it.it.run(history).execute()
                assert len(it.requests) - before == tries, body


async def test_a_chat_whose_window_is_configured_far_too_large_goes_on_whatever_the_words_are(
    tmp_path: Path,
) -> None:
    """Case 32: the server takes a tenth of what is configured, and says nothing that can be read."""
    async with chat(tmp_path, window=30_000, may_refuse=True) as it:

        def small(request: LlmRequest) -> HttpReply | str:
            if "<transcript>" in texts(request):
                return "minutes"
            return HttpReply(400, "") if request.size > 9_000 else f"Fine. {TIDES}"

        it.server.default = small
        for n in range(16):
            assert (await it.ask(f"q{n}")).startswith("Fine."), n
        refused = [request for request in it.server.requests if request.size > 9_000]
        assert 1 <= len(refused) <= 4, "what was tried with success is where the next one begins"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cap_of_the_answer_lowers_the_answer_and_leaves_the_history_alone(
    kind: Kind,
) -> None:
    """Case 29: `range of max_tokens` is not `range of input length`."""
    cap = "max_tokens" if kind == "anthropic" else "max_completion_tokens"
    async with run(kind, most_output=500_000, window=600_000) as it:
        it.server.rules.max_output = 10**6  # type: ignore[attr-defined]
        it.server.rules.window = 10**7  # type: ignore[attr-defined]
        for _, status, body in [row for row in rows(K.OUTPUT_CAP) if row[0] == kind]:
            it.server.answer_http(status, body)
            it.server.answer("ok")
            answer, requests = await ask(it, turns(1))
            assert (answer, len(requests), it.it.waits) == ("ok", 2, []), body
            first, second = requests
            assert second.body[cap] < first.body[cap], body
            assert second.messages == first.messages, body


async def test_the_range_of_the_answer_and_of_the_input_are_told_apart() -> None:
    """Case 29, with three short messages: the second string alone is about the input."""
    async with run(most_output=500_000, window=600_000, may_refuse=True) as it:
        it.server.rules = Rules(window=10**7, max_output=10**6)  # type: ignore[attr-defined]
        for words, cap in (
            ("Invalid max_tokens value, the valid range of max_tokens is [1, 393216]", 393_216),
            ("Range of max_tokens should be [1, 65536]", 65_536),
            ("Range of input length should be [1, 131072]", None),
        ):
            it.server.fail(400, words)
            it.server.answer("ok")
            answer, requests = await ask(it, turns(1))
            assert answer == "ok"
            first, second = requests
            if cap is None:
                assert len(second.messages) < len(first.messages)
                assert second.body["max_completion_tokens"] == 500_000
            else:
                assert second.body["max_completion_tokens"] == cap
                assert second.messages == first.messages


@pytest.mark.parametrize("how", ["413", "429", "in the stream"])
async def test_a_request_that_is_larger_than_a_minutes_quota_is_shrunk_to_it_without_waiting(
    how: str,
) -> None:
    """Case 26: the quota is no window, and what the answer may take counts."""
    words = (
        "Request too large for model `m` in organization `org_1` on tokens per minute (TPM): "
        "Limit 8000, Requested 11881, Please reduce your message size and try again."
    )
    async with run() as it:
        if how == "in the stream":
            event = error_event(words, type="tokens", code="rate_limit_exceeded")
            it.server.answer("never").insert(0, event).end_after(0)
        else:
            it.server.fail(int(how), words, type="tokens", code="rate_limit_exceeded")
        it.server.answer("ok")
        answer, (first, second) = await ask(it, turns(30))
        assert (answer, it.it.waits) == ("ok", [])
        assert second.size < first.size * (8_000 / 11_881)
        assert second.body["max_completion_tokens"] == first.body["max_completion_tokens"]
        it.server.answer("ok")
        _, (later,) = await ask(it, turns(30))
        assert later.size == first.size, "no window was learnt from it"


async def test_a_question_that_no_minutes_quota_holds_is_told(tmp_path: Path) -> None:
    """Case 26: waiting never helps, so nothing is sent again."""
    words = "Request too large for m on tokens per min (TPM): Limit 800, Requested 33926."
    async with chat(tmp_path) as it:
        it.server.fail(429, words, type="tokens", code="rate_limit_exceeded")
        assert "more than the model's provider takes in a minute" in await it.ask("x" * 3_000)
        assert len(it.server.requests) == 1


@pytest.mark.parametrize(
    ("words", "cap"),
    [
        ("on output tokens per minute (OTPM): Limit 1000, Requested 4096", 1_000),
        ("on tokens per minute (TPM): Limit 8000, Requested 9500", 2_596),
    ],
)
async def test_where_the_answer_is_what_does_not_fit_the_minute_less_is_asked_for(
    words: str, cap: int
) -> None:
    """Case 26: a quota of output, which no shorter history helps; and one question that is long."""
    async with run(most_output=4_096) as it:
        long = turns(5) if "output" in words else [user_text(TIDES * 20)]
        it.server.fail(429, f"Request too large for m {words}", code="rate_limit_exceeded")
        it.server.answer("ok")
        answer, (first, second) = await ask(it, long)
        assert (answer, it.it.waits) == ("ok", [])
        assert first.messages == second.messages
        assert second.body["max_completion_tokens"] == cap
        it.server.fail(429, f"Request too large for m {words}", code="rate_limit_exceeded")
        it.server.answer("ok")
        _, (first, _) = await ask(it, long)
        assert first.body["max_completion_tokens"] == 4_096, "nothing is learnt from it"


@pytest.mark.parametrize("kind", KINDS)
async def test_throttling_is_waited_for_whatever_it_says_of_tokens(kind: Kind) -> None:
    """Case 27: 429 comes first; the same messages are sent again."""
    async with run(kind) as it:
        bedrock = "ThrottlingException: Too many tokens, please wait before trying again."
        anthropic = (
            "This request would exceed your organization's rate limit of 40,000 input tokens per "
            "minute. Please reduce the prompt length or the maximum tokens requested."
        )
        for words in (bedrock, anthropic):
            it.server.fail(429, words)
            it.server.answer("ok")
            answer, (first, second) = await ask(it, turns(30))
            assert answer == "ok"
            assert first.messages == second.messages
            (wait,) = it.it.waits
            assert wait >= 30


@pytest.mark.parametrize("kind", KINDS)
async def test_an_overflow_that_never_ends_is_told_and_the_question_kept(
    tmp_path: Path, kind: Kind
) -> None:
    """Cases 33 and 35: each try is shorter than the one before, there are few of them, and a summary
    that is longer than what it stands for is not used."""
    words = "prompt is too long: 250000 tokens > 200000 maximum"
    async with chat(tmp_path, kind) as it:
        for n in range(8):
            it.server.answer(f"a{n} {TIDES}")
            await it.ask(f"q{n}")
        before = len(it.server.requests)

        def refuse(request: LlmRequest) -> HttpReply | str:
            if "minutes" in texts(request) and "transcript" in texts(request):
                return TIDES * 50
            return HttpReply(400, {"error": {"message": words, "type": "invalid_request_error"}})

        it.server.default = refuse
        assert "This is too long for the model" in await it.ask("and now?")
        tried = [r for r in it.server.requests[before:] if "<transcript>" not in texts(r)]
        sizes = [request.size for request in tried]
        assert sizes == sorted(set(sizes), reverse=True)
        assert 2 <= len(sizes) <= 5
        assert TIDES * 50 not in texts(it.server.requests[-1])
        said = [b["text"] for m in await it.stored() for b in m["blocks"]]
        assert "and now?" in said
        assert len([text for text in said if text.startswith("q")]) == 8, "all is stored"


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_about_to_be_sent_is_estimated_not_what_was_sent_last(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 36: 200 turns, then a restart. The server refuses what is longer than its window."""
    window = 20_000
    rules = {"anthropic": AnthropicRules(window=window), "openai": Rules(window=window)}
    for restarted in (False, True):
        server = server_for(kind)
        server.rules = rules[kind]  # type: ignore[attr-defined]
        async with chat(tmp_path, kind, server=server, window=window, max_turns=500) as it:
            if not restarted:
                await it.ask("/new")
                for n in range(200):
                    await it.remember(user_text(f"q{n}"), assistant_text(TIDES), run=f"e{n}")
                continue
            server.answer("a summary")
            server.answer("Fine.")
            assert await it.ask("and now?") == "Fine."
            summary, question = server.requests
            assert "q1" in texts(summary)
            assert facts(question, kind)[0][1].startswith("[Earlier conversation] a summary")
            assert server.rules.count(question.body) > window / 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("configured", "refused"), [(20_000, 0), (40_000, 1)])
async def test_a_huge_result_is_capped_when_it_comes_in_and_what_still_overflows_is_made_to_fit(
    tmp_path: Path, kind: Kind, configured: int, refused: int
) -> None:
    """Case 36: one result of 500 KB, in a conversation that fills the window. A server whose window is
    the one that we know has nothing to refuse."""
    window = 20_000
    rules = {"anthropic": AnthropicRules(window=window), "openai": Rules(window=window)}
    read = Called("read", lambda _: "".join(f"line {n} of a file\n" for n in range(25_000)))
    server = server_for(kind)
    server.rules = rules[kind]  # type: ignore[attr-defined]
    async with chat(
        tmp_path, kind, server=server, window=configured, tools=[read], may_refuse=True
    ) as it:
        await it.ask("/new")
        for n in range(15):
            await it.remember(user_text(f"q{n}"), assistant_text(TIDES * 3), run=f"e{n}")
        server.answer(tool("read", {}))
        server.default = lambda request: "minutes" if "<transcript>" in texts(request) else "Read."
        assert await it.ask("read the file") == "Read."
        (result,) = [
            b for m in await it.stored() for b in m["blocks"] if b["type"] == "tool_result"
        ]
        (part,) = result["content"]
        assert MAX_RESULT_CHARACTERS <= len(part["text"]) < MAX_RESULT_CHARACTERS + 200
        assert "characters were left out here; call the tool again" in part["text"]
        assert len(read.ran) == 1
        assert len(server.refusals) == refused


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_cuts_silently_gets_no_request_that_is_larger_than_its_window(
    kind: Kind,
) -> None:
    """Cases 36 and 37: each list is estimated before it is sent, since nobody would say that it is too
    long. The turn grows to three times the window; nothing is forgotten that was executed."""
    window = 20_000
    server = server_for(kind)
    server.rules.window = 10**9  # type: ignore[attr-defined]
    read = Called("read", lambda _: TIDES * 8, side_effects=True)
    async with run(kind, server=server, tools=[read], window=window, most_output=2_000) as it:
        for n in range(25):
            server.answer(tool("read", {"n": str(n)}))
        server.answer("Done.")
        it.it.limits = replace(it.it.limits, steps=30)
        answer, requests = await ask(it, turns(40))
        assert answer == "Done."
        counts = [server.rules.count(request.body) for request in requests]  # type: ignore[attr-defined]
        assert max(counts) <= window
        assert sum(len(TIDES * 8) / 4 for _ in read.ran) > 3 * window / 2
        assert len(read.ran) == 25
        assert "and now?" in texts(requests[-1])
        assert all(f'"{n}' in texts(requests[-1]).replace("\\", "") for n in range(25))


@pytest.mark.parametrize("reason", ["length", "model_context_window_exceeded"])
async def test_an_answer_without_output_at_a_full_window_is_an_overflow(reason: str) -> None:
    """Case 37: some servers cut the input to fill the window, and never refuse."""
    async with run(window=1_048_576) as it:
        it.server.answer(stop=reason, usage=Usage(input=1_048_570, output=0))
        it.server.answer("ok")
        answer, (first, second) = await ask(it, turns(10))
        assert answer == "ok"
        assert len(second.messages) < len(first.messages)
        it.server.answer(stop="length", usage=Usage(input=900, output=1_000))
        it.server.answer("ok")
        answer, (first, second) = await ask(it, turns(10))
        assert len(second.messages) == len(first.messages), "reasoning that met the cap is none"


async def test_an_input_larger_than_the_window_corrects_the_next_estimate(tmp_path: Path) -> None:
    """Case 37: a server that answers all the same tells by its usage that we estimate too low."""
    server = OpenAIServer()

    def twice(request: LlmRequest) -> Reply:
        return Reply(TIDES * 8, usage=Usage(input=2 * server.rules.count(request.body), output=10))

    async with chat(tmp_path, server=server, window=8_000) as it:
        server.default = twice
        for n in range(3):
            await it.ask(f"q{n}")
        said = await it.ask("/context")
        tokens = int(said.split("Estimated tokens: ")[1].split()[0].replace(",", ""))
        plain = SIZES.messages([GO, assistant_text(TIDES * 8)] * 3)
        assert tokens > 1.3 * plain


async def test_a_code_in_brackets_is_no_limit_and_a_file_that_is_too_large_is_no_overflow() -> None:
    """Case 38: 2013 stands for both; also beside a true limit, which is larger."""
    async with run() as it:
        for limit in ("limit", "limit of 5000 tokens"):
            it.server.fail(400, f"invalid params, context window exceeds {limit} (2013)")
            it.server.answer("ok")
            _, (first, second) = await ask(it, turns(30))
            assert second.size > 2_013 * 4, "half of it went, not all but 2,013 tokens"
            assert second.size < first.size
        it.server.fail(400, "media exceeds size limit: max 10485760 bytes (2013)")
        with pytest.raises(ProviderError) as caught:
            await ask(it, turns(30))
        assert caught.value.refusal.kind is K.MEDIA
        assert (caught.value.refusal.limit_tokens, it.it.waits) == (None, [])


async def test_bytes_of_a_file_never_become_text_of_the_conversation() -> None:
    """Case 38: a picture of a tool's goes as a picture, or is named, never as base64 text."""
    picture = ImageBlock("audio/mpeg", b"ID3" + bytes(300_000))
    for kind in KINDS:
        async with run(kind, tools=[Called("fetch", lambda _: (picture,))]) as it:
            it.server.answer(tool("fetch", {}))
            it.server.answer("ok")
            _, (first, second) = await ask(it, [user_text("fetch it")])
            assert second.size < first.size + 1_000
            assert "image left out" in texts(second)


async def test_a_limit_that_nobody_stated_is_not_learnt(tmp_path: Path) -> None:
    """Case 39: not in this process, and not by the next one."""
    budgets: list[str] = []
    for _ in range(2):
        async with chat(tmp_path, window=50_000) as it:
            for n in range(4):
                it.server.answer(f"a{n} {TIDES}")
                await it.ask(f"q{n}")
            for _ in range(2):
                it.server.fail(400, "Context size has been exceeded.")
                it.server.answer("ok")
                it.server.answer("ok")
                assert await it.ask("and now?") == "ok"
            said = await it.ask("/context")
            budgets.append(said.split(" of ")[1].split()[0])
            rows = await it.database.read("SELECT name FROM sqlite_master WHERE type = 'table'")
            assert not [row[0] for row in rows if "limit" in row[0] or "window" in row[0]]
    assert budgets == ["49000"] * 2, "the window of the configuration, without the answer"


async def test_a_reserve_for_the_answer_is_small_and_always_fits(tmp_path: Path) -> None:
    """Case 40: only `context_tokens` is configured; the server refuses input and answer together."""
    entry = ModelSettings.model_validate({"provider": "p", "id": "m", "context_tokens": 65_536})
    assert entry.max_output_tokens == MAX_OUTPUT_TOKENS < 65_536 / 10
    server = OpenAIServer(Rules(window=65_536))
    async with chat(
        tmp_path,
        server=server,
        window=entry.window,
        most_output=entry.max_output_tokens,
        max_turns=500,
    ) as it:
        await it.ask("/new")
        for n in range(40):
            question, answer = user_text(f"q{n} {TIDES * 4}"), assistant_text(TIDES * 4)
            await it.remember(question, answer, run=f"earlier {n}")
        server.default = lambda _: "ok"
        assert await it.ask("and now?") == "ok"
        assert server.rules.count(server.requests[-1].body) > 10_000, "not all is forgotten"
    with pytest.raises(ValueError, match=r"max_output_tokens\s.* leaves 0 of context_tokens"):
        ModelSettings.model_validate(
            {"provider": "p", "id": "m", "context_tokens": 4_000, "max_output_tokens": 4_000}
        )


async def test_a_page_of_a_gateway_is_tried_again_as_it_is_and_never_shown(tmp_path: Path) -> None:
    """Case 41."""
    page = "<!doctype html><html><title>context length exceeded</title><body>nginx</body></html>"
    async with chat(tmp_path) as it:
        it.server.answer_http(502, page)
        it.server.answer("Fine.")
        assert await it.ask("hi") == "Fine."
        first, second = it.server.requests
        assert first.messages == second.messages
        for _ in range(4):
            it.server.answer_http(502, page)
        said = await it.ask("again")
        assert "cannot be reached right now" in said
        assert "nginx" not in said
        assert "context length" not in said


@pytest.mark.parametrize("kind", KINDS)
async def test_what_an_overflow_leaves_has_its_calls_and_results_in_pairs(kind: Kind) -> None:
    """Case 42: one overflow after the other, in a turn of many steps; the strict server judges."""
    async with run(kind, tools=[Called("read", lambda _: TIDES * 12, side_effects=True)]) as it:
        for n in range(9):
            it.server.answer(tool("read", {"n": str(n)}), tool("read", {"m": str(n)}))
        for _ in range(4):
            it.server.fail(400, "prompt is too long")
        it.server.answer("Done.")
        answer, requests = await ask(it, turns(6))
        assert (answer, len(requests)) == ("Done.", 14)
        assert "and now?" in texts(requests[-1])
        assert BOUNDARY in texts(requests[-1])
        assert len(it.it.tools[0].ran) == 18, "nothing ran twice"


async def test_a_result_that_was_cut_says_so_and_reading_it_again_and_again_ends(
    tmp_path: Path,
) -> None:
    """Case 43: a model that asks for the same file until it sees all of it."""
    read = Called("read_file", lambda _: "x" * 2_000_000, required=["path"])
    limits = replace(LIMITS, steps=20)
    async with chat(tmp_path, tools=[read], limits=limits) as it:
        it.server.default = lambda request: (
            tool("read_file", {"path": "a"}) if request.body.get("tools") else "a summary"
        )
        said = await it.ask("read the file")
        assert "went in circles: the same call of `read_file`" in said
        assert len(read.ran) <= 5
        marker = "characters were left out here; call the tool again for a part of them"
        assert marker in texts(it.server.requests[1])
        assert len(it.server.requests) < 12


async def test_a_budget_that_is_larger_than_the_window_is_warned_of_and_does_not_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 44: budget 200,000, window 32,768, 40 long turns."""
    server = OpenAIServer(Rules(window=32_768))
    made = config(server, kind="openai")
    made = made.model_copy(
        update={
            "context": made.context.model_copy(update={"budget_tokens": 200_000}),
            "models": {
                "main": made.models["main"].model_copy(update={"context_tokens": 32_768}),
            },
        }
    )
    with caplog.at_level(logging.WARNING):
        async with chat_models(made, Redactor()):
            pass
    assert "budget_tokens (200000) is larger than the window of main (32768)" in caplog.text
    async with chat(tmp_path, server=server, window=32_768, budget=200_000, max_turns=500) as it:
        await it.ask("/new")
        for n in range(40):
            await it.remember(user_text(f"q{n} {TIDES * 6}"), assistant_text("a"), run=f"e{n}")
        server.default = lambda _: "ok"
        assert await it.ask("and now?") == "ok"
