"""What happens to conversations in use: turns with tools, cancels at any await, crashes, overflows,
trims, resets, model switches, and rows that were lost or doubled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from hypothesis import strategies as st

from agent.errors import RefusalKind
from agent.messages import Block, ImageBlock, JsonObject, TextBlock
from tests.fuzz.histories import PNG, arguments, ids, words

Ending = Literal["stored", "crashed", "crashed and resumed"]


@dataclass(frozen=True)
class Call:
    """A call that a model makes; `raw`: arguments as they came when they are no JSON object."""

    id: str
    name: str
    arguments: JsonObject
    raw: str | None = None


@dataclass(frozen=True)
class Step:
    """One answer of a model, or a failure of its server after some text."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinks: Literal["no", "openly", "withheld"] = "no"
    author: int | None = None  # another model takes over for this answer
    cut: bool = False  # the answer met its cap
    failure: RefusalKind | None = None


@dataclass(frozen=True)
class Turn:
    """A question and what becomes of it. `cancel_at`: at which await it is stopped."""

    question: tuple[Block, ...]
    steps: tuple[Step, ...]
    author: int
    cancel_at: int | None = None
    ending: Ending = "stored"
    most_turns: int = 20


@dataclass(frozen=True)
class Damage:
    """Rows that were lost, doubled, moved or changed."""

    kind: int
    place: int
    by: int


@dataclass(frozen=True)
class Cut:
    """Only a part of the rows is loaded."""

    start: int
    end: int


@dataclass(frozen=True)
class Reset:
    """The conversation begins anew."""


Operation = Turn | Damage | Cut | Reset


FAILURES = (
    RefusalKind.TRANSIENT,
    RefusalKind.RATE_LIMIT,
    RefusalKind.AUTH,
    RefusalKind.FORMAT,
    RefusalKind.MEDIA,
    RefusalKind.OUTPUT_CAP,
    RefusalKind.UNKNOWN,
)


def _alone(step: Step) -> list[Step]:
    return [step]


def often(weights: dict[st.SearchStrategy[Any], int]) -> st.SearchStrategy[Any]:
    """One of these, each as often as its weight (`one_of` takes doubles out)."""
    each = [strategy for strategy, weight in weights.items() for _ in range(weight)]
    return st.sampled_from(each).flatmap(lambda strategy: strategy)


calls = st.builds(
    Call,
    ids,
    st.sampled_from(["now", "write", "look", "fail", "slow", "nothing", "no.such tool", ""]),
    st.fixed_dictionaries({"text": words}) | arguments,
    st.sampled_from([None, None, None, '{"text": "a', "[1]", "{'text': 'slip',}"]),
)
_thinks = st.sampled_from(["no", "no", "openly", "withheld"])
_takes_over = st.none() | st.none() | st.integers(0, 5)
_few = st.sampled_from([False, False, False, True])
asking = st.builds(
    Step,
    words,
    st.lists(calls, min_size=1, max_size=3).map(tuple),
    _thinks,
    _takes_over,
    _few,
)
speaking = st.builds(Step, words, thinks=_thinks, author=_takes_over, cut=_few)
failing = st.builds(
    Step,
    words,
    failure=st.sampled_from([*[RefusalKind.OVERFLOW] * 4, *FAILURES]),
)
circles = asking.flatmap(lambda step: st.integers(2, 5).map(lambda n: [step] * n))
some_steps = often(
    {asking.map(_alone): 8, speaking.map(_alone): 2, failing.map(_alone): 1, circles: 1}
)
all_steps = st.lists(some_steps, max_size=5).map(lambda parts: tuple(chain.from_iterable(parts)))
questions: st.SearchStrategy[tuple[Block, ...]] = st.one_of(
    words.map(lambda text: (TextBlock(text),)),
    st.just((ImageBlock("image/png", PNG), TextBlock("what is it?"))),
)
_authors, _most_turns = st.integers(0, 5), st.sampled_from([1, 2, 3, 20])
turns = st.builds(
    Turn,
    questions,
    all_steps,
    _authors,
    st.none() | st.integers(1, 60),
    most_turns=_most_turns,
)
crashes = st.builds(
    Turn,
    questions,
    all_steps,
    _authors,
    st.integers(1, 60),
    st.sampled_from(["crashed", "crashed and resumed"]),
    _most_turns,
)
damages = st.builds(Damage, st.integers(0, 5), st.integers(0, 30), st.integers(0, 5))
cuts = st.builds(Cut, st.integers(0, 30), st.integers(0, 30))
operations: st.SearchStrategy[Sequence[Operation]] = st.lists(
    often({turns: 8, crashes: 3, damages: 2, cuts: 1, st.builds(Reset): 1}), min_size=2, max_size=7
)
