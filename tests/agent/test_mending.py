"""A request that is clearly too long by our own estimate is made shorter before it is sent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent.context import Turn
from agent.errors import ProviderError, Refusal, RefusalKind
from agent.mending import CLEARLY_OVER
from agent.messages import Message, assistant_text, user_text
from agent.overflow import Rung
from agent.testing import ScriptedProvider, Step, calls
from agent.windows import CAUTIOUS
from agent.working import Renewed
from tests.agent.bed import SIZES, Fixture, result_texts

K = RefusalKind
WORDS = "The tide comes in. " * 400
STEP = calls(("a", "echo", {"say": WORDS * 4}))


def history(turns: int) -> list[Message]:
    old = [m for n in range(turns) for m in (user_text(f"q{n}"), assistant_text(f"a{n} {WORDS}"))]
    return [*old, user_text("now")]


def sent(fixture: Fixture) -> list[int]:
    """Estimated tokens of each request with the answer that it reserves."""
    return [SIZES.request(r) + r.max_output_tokens for r in fixture.provider.requests]


async def test_what_grew_too_long_within_a_run_is_compacted_before_it_is_sent() -> None:
    window = SIZES.messages(history(10)) + 1_000
    fixture = Fixture([STEP, "done"], window=window)
    assert await fixture.run(history(10)).execute() == "done"
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.COMPACT]
    assert max(sent(fixture)) <= window
    assert len(fixture.provider.requests) == 2
    assert result_texts(fixture.provider.requests[-1].messages[-1]) == [WORDS * 4]
    assert fixture.keeper.flushed, "what left is kept in memory first"


@pytest.mark.parametrize(("part", "shorter"), [(CLEARLY_OVER - 0.02, 0), (CLEARLY_OVER + 0.02, 1)])
async def test_an_estimate_that_is_a_little_too_high_shortens_nothing(
    part: float, shorter: int
) -> None:
    fixture = Fixture([STEP, "done"])
    await fixture.run(history(10)).execute()
    window = round(sent(fixture)[-1] / part)
    fixture = Fixture([STEP, "done"], window=window)
    await fixture.run(history(10)).execute()
    assert len(fixture.keeper.bounds) == shorter


async def test_a_window_that_is_only_a_guess_shortens_nothing_within_a_run() -> None:
    more = [calls((f"c{n}", "echo", {"say": f"{n} {WORDS * 4}"})) for n in range(8)]
    fixture = Fixture([*more, "done"], window=CAUTIOUS)
    await fixture.run(history(2)).execute()
    assert sent(fixture)[-1] > 1.5 * CAUTIOUS
    assert fixture.keeper.bounds == []


async def test_a_question_that_alone_is_too_long_is_sent_and_its_results_stay() -> None:
    """The estimate may be wrong, and a reset would not help: the model sees what its calls gave."""
    fixture = Fixture([STEP, STEP, "done"], window=4_000)
    run = fixture.run([*history(3)[:-1], user_text(WORDS * 8)])
    assert await run.execute() == "done"
    assert len(fixture.provider.requests) == 3
    assert min(sent(fixture)) > CLEARLY_OVER * 4_000
    for request in fixture.provider.requests[1:]:
        (result,) = result_texts(request.messages[-1])
        assert result.startswith("The tide comes in.")
    assert not run.context_was_reset
    assert fixture.keeper.snapshots == 0


async def test_where_only_the_last_rungs_help_they_are_taken_and_executed_calls_are_named() -> None:
    more = [calls((f"c{n}", "echo", {"say": f"file {n} {WORDS * 2}"})) for n in range(8)]
    fixture = Fixture([*more, "done"], window=12_000)
    run = fixture.run(history(1))
    assert await run.execute() == "done"
    assert max(sent(fixture)) <= CLEARLY_OVER * 12_000
    assert Rung.EMERGENCY in [rung for rung, _ in fixture.keeper.bounds]
    assert all(f"file {n} " in str(fixture.provider.requests[-1].messages) for n in range(8))
    assert len(fixture.tools[0].ran) == 8, "nothing ran twice"


async def test_a_window_that_the_provider_stated_counts_for_the_rest_of_the_run() -> None:
    """In tokens as we estimate them: the provider counts half as many."""
    whole = SIZES.messages(history(10))
    refused = ProviderError("scripted", Refusal(K.OVERFLOW, 400, whole // 4, whole // 2))
    fixture = Fixture([refused, *[STEP] * 4, "done"], window=1_000_000)
    assert await fixture.run(history(10)).execute() == "done"
    assert len(fixture.provider.requests) == 6, "refused once, and never again too long"
    assert max(sent(fixture)[1:]) <= CLEARLY_OVER * whole / 2 + 100
    assert sent(fixture)[1] > whole / 4, "no shorter than it has to be"


async def test_what_one_provider_stated_says_nothing_of_the_model_to_fall_back_on() -> None:
    other = ScriptedProvider([STEP, "from the other"])
    refused = ProviderError("scripted", Refusal(K.OVERFLOW, 400, 3_000, 30_000))
    down = ProviderError("scripted", Refusal(K.AUTH, 401))
    fixture = Fixture([refused, down], window=1_000_000, fallbacks=[other])
    assert await fixture.run(history(10)).execute() == "from the other"
    assert SIZES.request(other.requests[-1]) > 3_000
    assert fixture.keeper.bounds == [], "nobody has taken what made room"


@pytest.mark.parametrize("turns", [1, 3])
async def test_a_form_that_is_refused_leaves_with_the_first_question_however_short(
    turns: int,
) -> None:
    """What is refused is not its size, and a chat must not be dead until it has grown. Only when it
    is refused a second time: one refusal costs no conversation."""
    old = [m for n in range(turns) for m in (user_text(f"q{n}"), assistant_text(f"a{n}"))]
    refused = ProviderError("scripted", Refusal(K.FORMAT, 400))
    once = Fixture([refused, "done"])
    assert await once.run([*old, user_text("now")]).execute() == "done"
    assert once.keeper.bounds == []
    assert "q0" in str(once.provider.requests[-1].messages)
    fixture = Fixture([refused, refused, "done"])
    assert await fixture.run([*old, user_text("now")]).execute() == "done"
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.RESET]
    assert [m.text for m in fixture.provider.requests[-1].messages if m.text.endswith("now")]
    assert "q0" not in str(fixture.provider.requests[-1].messages)


async def test_what_did_not_fit_a_minutes_quota_even_so_stays_in_the_context() -> None:
    over = ProviderError("scripted", Refusal(K.REQUEST_TOO_LARGE, 413, 8_000, 11_881))
    fixture = Fixture([over] * 6, window=100_000)
    with pytest.raises(ProviderError):
        await fixture.run(history(10)).execute()
    sizes = sent(fixture)
    assert sizes[-1] < sizes[0], "it was tried with less"
    assert fixture.keeper.bounds == []


async def test_what_has_made_a_request_fit_a_minutes_quota_holds_on() -> None:
    over = ProviderError("scripted", Refusal(K.REQUEST_TOO_LARGE, 413, 8_000, 11_881))
    fixture = Fixture([over, "done"], window=100_000)
    assert await fixture.run(history(10)).execute() == "done"
    assert [rung for rung, _ in fixture.keeper.bounds] == [Rung.COMPACT]


def larger(steps: Sequence[Step]) -> ScriptedProvider:
    """A provider of another name, for a model with a larger window (`Fixture`)."""
    other = ScriptedProvider(steps)
    other.name = "other"
    return other


@pytest.mark.parametrize("kind", [K.OVERFLOW, K.FORMAT])
async def test_a_model_that_may_take_the_conversation_is_asked_before_it_is_given_up(
    kind: RefusalKind,
) -> None:
    other = larger(["from the other"])
    refused = ProviderError("scripted", Refusal(kind, 400))
    fixture = Fixture([refused] * 9, window=20_000, fallbacks=[other])
    run = fixture.run([user_text("q0"), assistant_text("a0"), *history(1)])
    assert await run.execute() == "from the other"
    assert not run.context_was_reset
    assert fixture.keeper.snapshots == 0
    assert len(fixture.provider.requests) <= 3


async def test_what_is_clearly_too_long_for_one_model_goes_to_the_one_that_can_hold_it() -> None:
    other = larger(["done"])
    fixture = Fixture([STEP, STEP], window=4_000, fallbacks=[other])
    run = fixture.run([user_text("now")])
    assert await run.execute() == "done"
    assert len(result_texts(other.requests[-1].messages[-1])[0]) > 10_000
    assert fixture.keeper.snapshots == 0
    assert not run.context_was_reset


def without_secret(turn: Turn) -> Turn:
    return tuple(user_text("[left out]") if "secret" in m.text else m for m in turn)


async def test_what_is_taken_back_while_a_call_is_reserved_does_not_go_out_with_it() -> None:
    fixture = Fixture(["done"])
    fixture.taken_back = [Renewed("s, renewed", without_secret)]
    old = [user_text("A secret."), assistant_text("Yes.")]
    await fixture.run([*old, user_text("now")]).execute()
    (request,) = fixture.provider.requests
    assert request.system == "s, renewed"
    assert [m.text for m in request.messages] == ["[left out]", "Yes.", "now"]


async def test_what_is_taken_back_is_not_summed_up_either() -> None:
    """What leaves a context before a call goes to a model that sums it up."""
    old = [user_text("A secret."), assistant_text(f"Yes. {WORDS}")] * 2
    asked = [*old, *history(10)]
    fixture = Fixture([STEP, "done"], window=SIZES.messages(asked) + 1_000)
    fixture.taken_back = [None, Renewed("s", without_secret)]
    await fixture.run(asked).execute()
    assert "[left out]" in [message.text for message in fixture.keeper.flushed]
    assert not any("secret" in message.text for message in fixture.keeper.flushed)
