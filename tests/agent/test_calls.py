"""A model call gets through, or says why not: retries, fallbacks, and what each refusal wants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from agent.calls import raise_if_silently_full
from agent.context import Working
from agent.errors import ProviderDown, ProviderError, Refusal, RefusalKind
from agent.events import Retrying, TextShown
from agent.images import NO_IMAGE
from agent.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    assistant_text,
    user_text,
)
from agent.overflow import Rung
from agent.provider import Completed, ModelRequest, StopReason, Usage
from agent.providers.errors import classify
from agent.retry import MOST_RETRIES, wait_s
from agent.testing import ScriptedProvider, calls
from tests.agent.bed import SIZES, Fixture, Keeper, model

K = RefusalKind


def refused(kind: RefusalKind, **numbers: float) -> ProviderError:
    return ProviderError("scripted", Refusal(kind, 400, **numbers))  # type: ignore[arg-type]


def before(question: str) -> list[Message]:
    """Some turns, and a question."""
    old = [m for i in range(6) for m in (user_text(f"q{i}"), assistant_text("word " * 900))]
    return [*old, user_text(question)]


async def test_a_transient_failure_is_tried_again_after_2_4_and_6_seconds() -> None:
    fixture = Fixture([refused(K.TRANSIENT)] * 3 + ["done"])
    assert await fixture.run().execute() == "done"
    for wait, base in zip(fixture.waits, (2, 4, 6), strict=True):
        assert base < wait <= base * 1.25, "so that not all chats come back at once"
    assert [call.outcome for call in fixture.booked] == ["failed"] * 3 + ["completed"]


async def test_a_rate_limit_is_waited_for_as_long_as_the_provider_says() -> None:
    fixture = Fixture([refused(K.RATE_LIMIT), refused(K.RATE_LIMIT, retry_after_s=7.0), "done"])
    assert await fixture.run().execute() == "done"
    first, second = fixture.waits
    assert 30 <= first <= 37.5
    assert 7 <= second <= 8.75


async def test_after_three_retries_the_failure_is_told() -> None:
    fixture = Fixture([refused(K.TRANSIENT)] * 9)
    with pytest.raises(ProviderError):
        await fixture.run().execute()
    assert len(fixture.provider.requests) == 1 + MOST_RETRIES


@pytest.mark.parametrize("kind", [K.AUTH, K.QUOTA, K.CONTENT_FILTER, K.UNKNOWN])
async def test_what_no_repetition_helps_is_not_repeated(kind: RefusalKind) -> None:
    fixture = Fixture([refused(kind)] * 2)
    with pytest.raises(ProviderError):
        await fixture.run().execute()
    assert len(fixture.provider.requests) == 1
    assert fixture.waits == []


def test_a_wait_that_is_longer_than_a_run_lasts_is_not_waited_for() -> None:
    waits = [wait_s(Refusal(K.RATE_LIMIT, 429, retry_after_s=s), 0, lambda: 0) for s in (120, 121)]
    assert waits == [120, None]


async def test_a_wait_between_tries_ends_with_a_cancel() -> None:
    fixture = Fixture([refused(K.RATE_LIMIT)] * 4)
    waiting = asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    run = fixture.run(sleep=sleep)
    task = asyncio.ensure_future(run.execute())
    fixture.token.bind(task)
    await waiting.wait()
    fixture.token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_text_that_was_shown_is_never_silently_begun_again() -> None:
    fixture = Fixture(["first half, second half", "the whole answer"])
    fixture.provider.break_after_text = refused(K.TRANSIENT)
    assert await fixture.run().execute() == "the whole answer"
    kinds = [type(event) for event in fixture.events[:3]]
    assert kinds == [TextShown, Retrying, TextShown]


@pytest.mark.parametrize(
    "kind",
    [K.OVERFLOW, K.OUTPUT_CAP, K.REQUEST_TOO_LARGE, K.FORMAT, K.MEDIA, K.UNKNOWN],
)
async def test_a_refusal_in_mid_answer_that_is_mended_is_told_too(kind: RefusalKind) -> None:
    """Some servers answer 200 and put their refusal into the stream, behind the first words."""
    picture = Message("user", (ImageBlock("image/png", b"png"), TextBlock("q")))
    history = [picture, assistant_text("a"), *before("now")]
    fixture = Fixture(["first half, second half", "the whole answer"])
    fixture.provider.break_after_text = refused(kind, limit_tokens=600, requested_tokens=700)
    assert await fixture.run(history).execute() == "the whole answer"
    assert [type(event) for event in fixture.events[:3]] == [TextShown, Retrying, TextShown]


async def test_a_refusal_before_the_first_word_is_mended_without_a_sentence() -> None:
    fixture = Fixture([refused(K.OVERFLOW), "done"])
    await fixture.run(before("now")).execute()
    assert not [event for event in fixture.events if isinstance(event, Retrying)]


async def test_the_log_tells_of_each_call_that_failed_and_holds_no_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = ProviderError("scripted", Refusal(K.OVERFLOW, 400, detail="the words now"))
    caplog.set_level("INFO", "agent.calls")
    fixture = Fixture([refused(K.TRANSIENT), broken, "done"])
    await fixture.run(before("now")).execute()
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "call 1 of m, " in told
    assert "overflow (HTTP 400)" in told
    assert "changed and made again" in told
    assert "words" not in told


async def test_a_fallback_answers_when_the_first_model_cannot() -> None:
    other = ScriptedProvider(["from the other"])
    fixture = Fixture([refused(K.AUTH)], fallbacks=[other])
    assert await fixture.run().execute() == "from the other"
    assert other.requests[0].model == "f0-1"
    assert fixture.booked[-1].model.name == "f0"


async def test_a_fallback_is_not_asked_what_is_wrong_with_the_request_itself() -> None:
    other = ScriptedProvider()
    fixture = Fixture([refused(K.CONTENT_FILTER)], fallbacks=[other])
    with pytest.raises(ProviderError):
        await fixture.run().execute()
    assert other.requests == []


async def test_a_provider_that_is_down_is_not_asked() -> None:
    down = ProviderDown("scripted", K.AUTH, datetime.now(UTC))
    fixture = Fixture([])
    fixture.health.down["scripted"] = down
    with pytest.raises(ProviderDown):
        await fixture.run().execute()
    assert fixture.provider.requests == []


async def test_how_each_call_went_is_noted() -> None:
    fixture = Fixture([refused(K.TRANSIENT), "done"])
    await fixture.run().execute()
    kinds = [refusal.kind if refusal else None for _, refusal in fixture.health.notes]
    assert kinds == [K.TRANSIENT, None]


async def test_an_output_cap_is_lowered_to_what_is_allowed_and_the_history_stays() -> None:
    fixture = Fixture([refused(K.OUTPUT_CAP, limit_tokens=600), "done"], most_output=2_000)
    assert await fixture.run().execute() == "done"
    first, second = fixture.provider.requests
    assert (first.max_output_tokens, second.max_output_tokens) == (2_000, 600)
    assert first.messages == second.messages


async def test_where_no_useful_answer_has_room_the_input_becomes_smaller() -> None:
    history = [m for i in range(6) for m in (user_text(f"q{i}"), assistant_text("word " * 900))]
    fixture = Fixture([refused(K.OUTPUT_CAP, limit_tokens=5), "done"], most_output=2_000)
    assert await fixture.run([*history, user_text("now")]).execute() == "done"
    first, second = fixture.provider.requests
    assert len(second.messages) < len(first.messages)


async def test_an_output_cap_that_is_never_low_enough_is_told() -> None:
    fixture = Fixture([refused(K.OUTPUT_CAP)] * 9, most_output=2_000)
    with pytest.raises(ProviderError):
        await fixture.run().execute()
    asked = [request.max_output_tokens for request in fixture.provider.requests]
    assert asked == [2_000, 1_000, 500]


def at_least(window: int, request: ModelRequest) -> ProviderError:
    out = request.max_output_tokens
    body = (
        f"This model's maximum context length is {window} tokens. However, you requested {out} "
        f"output tokens and your prompt contains at least {window - out + 1} input tokens, for a "
        f"total of at least {window + 1} tokens. Please reduce the length of the input prompt or "
        "the number of requested output tokens."
    )
    return ProviderError("vllm", classify(400, body))


def room_left(window: int, request: ModelRequest) -> ProviderError:
    left = window - SIZES.request(request)
    body = (
        f"`max_tokens` must be less than or equal to `{left}`, the maximum value for `max_tokens`"
    )
    return ProviderError("groq", classify(400, body))


@pytest.mark.parametrize("wording", [at_least, room_left])
@pytest.mark.parametrize("part", [0.97, 1.02, 1.5, 4.0])  # of the window, by the input alone
async def test_a_refused_answer_that_no_shorter_one_mends_makes_the_input_shorter(
    wording: Callable[[int, ModelRequest], ProviderError], part: float
) -> None:
    """Such a chat was refused for ever, as each message only added to the same history."""
    history = [m for i in range(16) for m in (user_text(f"q{i}"), assistant_text("word " * 900))]
    history.append(user_text("now"))
    window = round(SIZES.messages(history) / part)

    def server(request: ModelRequest) -> Message:
        if SIZES.request(request) + request.max_output_tokens > window:
            raise wording(window, request)
        return assistant_text("done")

    fixture = Fixture([server] * 20, most_output=1_000)
    run = fixture.run(history)
    assert await run.execute() == "done"
    last = fixture.provider.requests[-1]
    assert last.messages[-1].text.endswith("now")
    assert last.max_output_tokens >= 256
    assert not run.context_was_reset
    assert len(fixture.provider.requests) <= 7


async def test_answers_are_as_long_as_before_once_less_input_was_what_helped() -> None:
    fixture = Fixture([*[refused(K.OUTPUT_CAP)] * 3, "done"], most_output=2_000)
    assert await fixture.run(before("now")).execute() == "done"
    asked = [request.max_output_tokens for request in fixture.provider.requests]
    assert asked == [2_000, 1_000, 500, 2_000]
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.COMPACT]


async def test_a_refused_image_becomes_a_line_of_text_once() -> None:
    picture = Message("user", (ImageBlock("image/png", b"png"), TextBlock("what is it?")))
    fixture = Fixture([refused(K.MEDIA), "done"])
    assert await fixture.run([picture]).execute() == "done"
    assert NO_IMAGE in fixture.provider.requests[1].messages[0].text
    with pytest.raises(ProviderError):
        await Fixture([refused(K.MEDIA)] * 2).run([user_text("no image")]).execute()


@pytest.mark.parametrize(
    ("named", "sent"),
    [
        (None, ["photo odd chart", "photo odd less chart", "photo odd", "less photo odd", ""]),
        (b"odd", ["photo odd chart", "photo chart", "photo less chart", "photo", "less photo", ""]),
        (b"photo", ["photo odd chart", "less photo odd chart", "less photo odd less chart"]),
    ],
)
async def test_a_refused_image_is_sent_smaller_then_left_out_and_the_others_stay_while_they_can(
    named: bytes | None, sent: list[str]
) -> None:
    """The one that is named, while it is, else those of the newest message that has any."""
    photo, chart, odd = (ImageBlock("image/png", name) for name in (b"photo", b"chart", b"odd"))

    async def shrink(image: ImageBlock) -> ImageBlock | None:
        return None if image == odd else ImageBlock("image/jpeg", b"less " + image.data)

    asked = Message("user", (photo, odd, TextBlock("what is it?")))
    result = Message("user", (ToolResultBlock("c", (TextBlock("a chart"), chart)),))
    history = [asked, calls(("c", "draw", {})), result, assistant_text("A."), user_text("and?")]
    refusal = ProviderError("p", Refusal(K.MEDIA, 400, image=named))
    fixture = Fixture([*[refusal] * (len(sent) - 1), "done"], shrink=shrink)
    assert await fixture.run(history).execute() == "done"
    images = [sent_images(request.messages) for request in fixture.provider.requests]
    assert [b" ".join(names).decode() for names in images] == sent
    assert fixture.keeper.flushed == [], "nothing is compacted"


def sent_images(messages: Sequence[Message]) -> list[bytes]:
    blocks = [block for message in messages for block in message.blocks]
    inner = [part for b in blocks if isinstance(b, ToolResultBlock) for part in b.content]
    return [block.data for block in (*blocks, *inner) if isinstance(block, ImageBlock)]


async def test_a_refusal_of_form_leaves_thinking_out_then_resets_then_gives_up() -> None:
    thought = ThinkingBlock("hm", "p/m", signature="s")
    step = calls(("a", "echo", {"say": "x"}))
    thinking = Message("assistant", (thought, *step.blocks))
    fixture = Fixture([thinking, *[refused(K.FORMAT)] * 2, "done"])
    old = [m for i in range(3) for m in (user_text(f"q{i}"), assistant_text("a " * 900))]
    run = fixture.run([*old, user_text("now")])
    assert await run.execute() == "done"
    _, with_thinking, without, last = fixture.provider.requests
    assert "hm" in str(with_thinking.messages)
    assert "hm" not in str(without.messages)
    assert len(without.messages) == len(with_thinking.messages)
    assert len(last.messages) == 1
    assert run.context_was_reset
    with pytest.raises(ProviderError):
        await Fixture([refused(K.FORMAT)] * 5).run().execute()


async def test_an_unknown_refusal_is_tried_once_with_less_and_what_helped_is_kept() -> None:
    """Whatever window is configured: it may be wrong."""
    fixture = Fixture([refused(K.UNKNOWN), "done"], window=1_000_000)
    assert await fixture.run(before("now")).execute() == "done"
    first, second = (SIZES.request(request) for request in fixture.provider.requests)
    assert second <= first / 2 + 200
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.COMPACT]
    assert fixture.keeper.flushed, "what left is kept in memory first"


async def test_an_answer_that_a_stop_overtakes_before_it_is_kept_is_booked_all_the_same() -> None:
    begun = asyncio.Event()

    class Slow(Keeper):
        async def bound(self, rung: Rung | None, working: Working) -> None:
            begun.set()
            await asyncio.Event().wait()

    fixture = Fixture([refused(K.UNKNOWN), "done"])
    fixture.keeper = Slow()
    run = fixture.run(before("now"))
    task = asyncio.ensure_future(run.execute())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.outcome for call in run.calls] == ["failed", "completed"]


async def test_a_smaller_request_that_does_not_help_either_costs_the_chat_nothing() -> None:
    fixture = Fixture([refused(K.UNKNOWN)] * 3)
    with pytest.raises(ProviderError):
        await fixture.run(before("now")).execute()
    assert len(fixture.provider.requests) == 2
    assert fixture.keeper.bounds == []


async def test_a_model_to_fall_back_on_gets_all_that_another_may_have_refused_for_its_size() -> (
    None
):
    other = ScriptedProvider(["from the other"])
    fixture = Fixture([refused(K.UNKNOWN)] * 2, fallbacks=[other])
    assert await fixture.run(before("now")).execute() == "from the other"
    whole, less = fixture.provider.requests
    assert len(less.messages) < len(whole.messages) == len(other.requests[0].messages)
    assert fixture.keeper.bounds == []


async def test_one_turn_with_long_results_is_tried_with_shorter_ones() -> None:
    long = calls(("a", "echo", {"say": "word " * 9_000}))
    fixture = Fixture([long, refused(K.UNKNOWN), "done"])
    assert await fixture.run().execute() == "done"
    _, whole, less = (SIZES.request(request) for request in fixture.provider.requests)
    assert less < whole
    assert fixture.keeper.bounds == [], "nothing has left"


async def test_a_mistake_of_ours_is_not_tried_again_with_less() -> None:
    ours = ProviderError("scripted", Refusal(K.UNKNOWN, None, detail="TypeError"))
    fixture = Fixture([ours] * 2)
    with pytest.raises(ProviderError):
        await fixture.run(before("now")).execute()
    assert len(fixture.provider.requests) == 1


@pytest.mark.parametrize(
    ("stop", "usage", "blocks", "overflow"),
    [
        ("length", Usage(1_048_570, 0), (), True),  # whatever the window is that we know of
        ("length", Usage(99_000, 800), (ThinkingBlock("hm", "p/m"),), True),
        ("length", Usage(95_000, 0), (ThinkingBlock("hm", "p/m"),), True),
        ("length", Usage(93_000, 800), (ThinkingBlock("hm", "p/m"),), False),
        ("length", Usage(2_000, 800), (ThinkingBlock("hm", "p/m"),), False),
        ("length", None, (), False),
        ("window", None, (), True),
        ("end", Usage(99_000, 0), (), False),
    ],
)
def test_an_answer_without_words_is_an_overflow_where_the_input_fills_the_window(
    stop: StopReason, usage: Usage | None, blocks: tuple[ThinkingBlock, ...], overflow: bool
) -> None:
    """Field case 37: servers that cut the input to their window say so in no other way."""
    chat = model(ScriptedProvider(), window=100_000)
    completed = Completed(Message("assistant", blocks), stop, usage)
    with pytest.raises(ProviderError) if overflow else nullcontext() as caught:
        raise_if_silently_full(chat, completed)
    if caught is not None:
        assert caught.value.refusal.kind is K.OVERFLOW
