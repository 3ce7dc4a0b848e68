"""What a run of the benchmark found, as a table and as a file."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

LATEST = Path(__file__).parent / "results" / "latest.json"


@dataclass(frozen=True, slots=True)
class Measure:
    """A number and what it should be: at most `goal`, or anything when that is None."""

    value: float
    unit: str
    goal: float | None = None

    @property
    def missed(self) -> bool:
        """Whether the goal is not met."""
        return self.goal is not None and self.value > self.goal


Measures = dict[str, Measure]


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that `percent` of a hundred are not above."""
    if len(values) < 2:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def write(measures: Mapping[str, Measure], path: Path) -> None:
    """`{"name": {"value": …, "unit": …, "goal": …}}`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = {name: asdict(measure) for name, measure in measures.items()}
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def table(measures: Mapping[str, Measure]) -> str:
    """One line for each measure; those that miss their goal are marked."""
    width = max(map(len, measures), default=0)
    return "\n".join(_line(name.ljust(width), measure) for name, measure in measures.items())


def _line(name: str, measure: Measure) -> str:
    goal = "" if measure.goal is None else f"goal {measure.goal:g}"
    mark = "  MISSED" if measure.missed else ""
    return f"{name}  {measure.value:>9.3f} {measure.unit:<8} {goal:<10}{mark}".rstrip()
