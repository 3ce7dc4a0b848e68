"""Line 3: breakers. They see a run going in circles, and end it before it costs much.

One `Breaker` a run (the next question starts with fresh counters), pure and synchronous:

    cap = breaker.cap(step, seconds=..., tokens=..., cost_microusd=...)    # before model call `step`
    hint = breaker.hint()             # once a step: a sentence for that request only, never stored
    breaker.cut_off(calls)            # the answer was cut: none of its calls is judged or noted
    refusal = breaker.judge(call)     # else: each call, all of a step before the first one runs
    breaker.note(call, failed=...)    # each that was not refused, also one that tool_args refused
    if limit := breaker.tripped():    # when the step's results are stored
        raise limit

The same call means the same tool and equal arguments as canonical JSON (`signature`). Judge a call
as it will run; one that `tool_args` refuses as the model wrote it, with `raw`, or else all broken
calls of a tool would look the same.

- The same call runs at most 5 times, whatever came of it, so that polling and reading one file
  again and again end too; after 3 failures it is refused sooner. A third success brings a hint.
  Nothing asks for neighbours: A, B, A, B and longer circles are seen like A, A.
- A tool that failed 6 times, or ran 50 times, is refused for the rest of the run.
- 8 attempts of one call, or 8 failures of one tool, end the run; refused attempts count. A refusal
  comes first: a step of many calls that all fail still leaves the model a chance.
- 3 answers that were cut off in calls of one tool, with no success of it between, end the run.

Calls that are under way count as runs, and not yet as failures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agent.errors import LimitReached
from agent.messages import JsonObject, ToolUseBlock

# Issue 3, line 3.
RUNS_OF_ONE_CALL = 5
FAILURES_OF_ONE_CALL = 3
FAILURES_OF_ONE_TOOL = 6
END = 8
SUCCESSES_BEFORE_HINT = 3
# Field case 49: the third time ends it.
CUT_ANSWERS = 3
# Field case 48: arguments that only look new pass every comparison. Twice what a long honest job
# of one tool needs in one answer, and under most caps on all calls.
RUNS_OF_ONE_TOOL = 50

LONGEST_NAME = 64  # characters; a model may call a tool that nobody has by any name

Signature = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Caps of one run: model calls, tool calls, seconds since it began, tokens in and out together,
    and micro-dollars (None: the model has no price)."""

    steps: int
    tool_calls: int
    seconds: float
    tokens: int
    cost_microusd: int | None = None

    def words(self, cap: str) -> str:
        """A cap's value as a person reads it."""
        match cap:
            case "seconds":
                return f"{self.seconds:g}"
            case "cost":
                return f"{(self.cost_microusd or 0) / 1_000_000:g}"
            case "tokens":
                return f"{self.tokens:,}"
            case _:
                return str(self.tool_calls if cap == "tool_calls" else self.steps)


def canonical(arguments: JsonObject) -> str:
    """Arguments as one text that is the same for the same JSON: keys sorted, 1.0 and 1e0 as 1.

    Strings are compared as they are: two file names may differ in nothing but Unicode's form.
    """
    try:
        same = json.loads(json.dumps(arguments), parse_float=_number)
        return json.dumps(same, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return "nested too deeply"  # no tool takes it (`agent.tool_args`)


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def signature(call: ToolUseBlock) -> Signature:
    """What makes two calls the same. Of broken arguments the text decides."""
    return call.name, canonical(call.arguments) if call.raw is None else f"raw:{call.raw}"


class Breaker:
    """The counters of one run."""

    def __init__(self, limits: RunLimits) -> None:
        self._limits = limits
        self._under_way: dict[str, Signature] = {}  # by the call's id
        self._attempts = Counter[Signature]()
        self._runs = Counter[Signature]()
        self._failures = Counter[Signature]()
        self._successes = Counter[Signature]()
        self._runs_of = Counter[str]()  # these four by the tool's name
        self._failures_of = Counter[str]()
        self._refusals_of = Counter[str]()
        self._cuts_of = Counter[str]()
        self._repeated: dict[Signature, None] = {}  # since the last hint, in order
        self._invented = 0
        self._tripped: LimitReached | None = None

    def judge(self, call: ToolUseBlock) -> str | None:
        """None: the call may run, and counts as under way until it is noted. Else the error for
        the model; the call is not executed and not noted."""
        capped = self._capped(call.name)
        if capped is not None:
            return f"Not executed: {capped}"
        key = signature(call)
        self._attempts[key] += 1
        circling = self._circling(key)
        if circling is not None:
            self._refusals_of[call.name] += 1
            self._end_if_hopeless(key)
            return f"Not executed: {circling}"
        self._under_way[call.id] = key
        self._runs[key] += 1
        self._runs_of[call.name] += 1
        return None

    def note(self, call: ToolUseBlock, *, failed: bool) -> None:
        """A call ended. It is known by its id: its arguments may have been mended since it was
        judged. One that was never judged is judged here."""
        if call.id not in self._under_way and self.judge(call) is not None:
            return
        key = self._under_way.pop(call.id)
        if failed:
            self._failures[key] += 1
            self._failures_of[call.name] += 1
            self._end_if_hopeless(key)
            return
        self._cuts_of.pop(call.name, None)
        self._successes[key] += 1
        if self._successes[key] >= SUCCESSES_BEFORE_HINT:
            self._repeated[key] = None

    def invented(self, call: ToolUseBlock) -> None:
        """A call of a tool that does not exist: it counts with those of other such tools."""
        self._invented += 1
        if self._invented >= END:
            self._end("tool_failing", call.name)

    def cut_off(self, calls: Iterable[ToolUseBlock]) -> None:
        """An answer was cut, so that none of its calls was executed."""
        for name in {call.name: None for call in calls}:
            self._cuts_of[name] += 1
            if self._cuts_of[name] >= CUT_ANSWERS:
                self._end("cut_off", name)

    def hint(self) -> str | None:
        """What to tell the model of calls that worked again and again, told once."""
        repeated, self._repeated = list(self._repeated), {}
        if not repeated:
            return None
        tools = ", ".join(dict.fromkeys(name for name, _ in repeated))
        times = max(self._successes[key] for key in repeated)
        how = "the same call" if len(repeated) == 1 else f"{len(repeated)} calls in turn"
        return (
            f"You have made {how} ({tools}) {times} times with the same arguments, and each gave a "
            f"result. Use the results that you have, do something else, or answer now; after "
            f"{RUNS_OF_ONE_CALL} times the call is refused."
        )

    def tripped(self) -> LimitReached | None:
        """What ends the run, to be raised: `repeating`, `tool_failing` or `cut_off`, each with the
        value `tool`."""
        return self._tripped

    def cap(self, step: int, *, seconds: float, tokens: int, cost_microusd: int) -> str | None:
        """The first cap that is met before model call `step` (from 1): `steps`, `tool_calls`,
        `seconds`, `tokens`, `cost`. The values are those of the run so far."""
        limits = self._limits
        met = {
            "steps": step > limits.steps,
            "tool_calls": self._runs_of.total() >= limits.tool_calls,
            "seconds": seconds >= limits.seconds,
            "tokens": tokens >= limits.tokens,
            "cost": limits.cost_microusd is not None and cost_microusd >= limits.cost_microusd,
        }
        return next((name for name, is_met in met.items() if is_met), None)

    def _capped(self, tool: str) -> str | None:
        """Why no call of this tool may run any more, however good it is. Ends no run: a step may
        hold many calls."""
        if self._runs_of.total() >= self._limits.tool_calls:
            return (
                f"all {self._limits.tool_calls} tool calls that one answer may use are used up. "
                "Answer with what you have, and say what is left to do."
            )
        if self._runs_of[tool] >= RUNS_OF_ONE_TOOL:
            return (
                f"{tool} has run {self._runs_of[tool]} times and is switched off until the user "
                "writes again. Answer with what you have, and say what is left to do."
            )
        return None

    def _circling(self, key: Signature) -> str | None:
        tool = key[0]
        if self._failures_of[tool] >= FAILURES_OF_ONE_TOOL:
            return (
                f"{tool} has failed {self._failures_of[tool]} times and is switched off until the "
                "user writes again. Go on without it, or tell the user what does not work."
            )
        if self._failures[key] >= FAILURES_OF_ONE_CALL:
            return (
                f"this same call has failed {self._failures[key]} times. Read its errors and "
                "change the arguments, use another tool, or tell the user what does not work."
            )
        if self._runs[key] >= RUNS_OF_ONE_CALL:
            return (
                f"the same call was made {self._runs[key]} times already. Even if its results "
                "differ, waiting for a change like this leads nowhere: use the results that you "
                "have, do something else, or tell the user what is still open."
            )
        return None

    def _end_if_hopeless(self, key: Signature) -> None:
        tool = key[0]
        warned = self._refusals_of[tool]
        troubles = self._failures_of[tool] + warned
        if warned and max(troubles, self._attempts[key]) >= END:
            failing = self._failures_of[tool] >= FAILURES_OF_ONE_CALL
            self._end("tool_failing" if failing else "repeating", tool)

    def _end(self, limit: str, tool: str) -> None:
        if self._tripped is None:
            self._tripped = LimitReached(limit, tool=tool[:LONGEST_NAME])
