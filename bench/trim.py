"""How long it takes to trim a long conversation to a model's budget."""

from __future__ import annotations

import time

from agent.context import Budget, Working, size, turns
from agent.context import trim as trimmed
from agent.estimate import Estimator, Family
from bench.repair import MESSAGES, history
from bench.report import Measure, Measures

REPEATS = 15
# As many turns as fit: with `max_turns` at its default of 20 all but ten are dropped unmeasured.
BUDGET = Budget(tokens=100_000, max_turns=MESSAGES)


def trim() -> Measures:
    """10,000 messages, by tokens alone; as in `bench.repair` the least CPU time of some trims. `fresh`:
    the estimator has seen none of the messages; `warm`: it remembers the size of each, as in the
    next run."""
    working = Working(tuple(turns(history(MESSAGES))))
    warm = Estimator(Family.UNKNOWN)
    assert size(working, warm) > BUDGET.tokens
    assert size(trimmed(working, BUDGET, warm).working, warm) <= BUDGET.tokens
    fresh_ms = min(_ms(working, Estimator(Family.UNKNOWN)) for _ in range(REPEATS))
    warm_ms = min(_ms(working, warm) for _ in range(REPEATS))
    return {
        "trim_fresh_ms": Measure(fresh_ms, "ms", 50),
        "trim_warm_ms": Measure(warm_ms, "ms", 50),
    }


def _ms(working: Working, sizes: Estimator) -> float:
    since = time.process_time()
    trimmed(working, BUDGET, sizes)
    return 1000 * (time.process_time() - since)
