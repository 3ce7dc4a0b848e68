"""Whether a process grows: its samples over a long time, by thirds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at a moment. `at_s`: seconds since the load began; `asked`, `answered`: questions so
    far; `rss_mb` in units of 1024² bytes; `files`: open handles."""

    at_s: float
    asked: int
    answered: int
    rss_mb: float
    tasks: float
    files: float


@dataclass(frozen=True, slots=True)
class _Watched:
    """A value that may grow by `share` of itself and by `plus`, which is what the load's own ups and
    downs come to, without being said to grow."""

    name: str
    of: Callable[[Sample], float]
    share: float
    plus: float


_WATCHED = (
    _Watched("memory (MB)", lambda sample: sample.rss_mb, 0.03, 2.0),
    _Watched("tasks", lambda sample: sample.tasks, 0.25, 6.0),
    _Watched("open files", lambda sample: sample.files, 0.25, 6.0),
)
LEAST = 6  # samples, two in each third


def middle(samples: Sequence[Sample]) -> Sample:
    """Of several samples the median in everything."""
    columns = zip(
        *((s.at_s, s.asked, s.answered, s.rss_mb, s.tasks, s.files) for s in samples), strict=True
    )
    at_s, asked, answered, rss_mb, tasks, files = map(statistics.median, columns)
    return Sample(at_s, int(asked), int(answered), rss_mb, tasks, files)


def growth(samples: Sequence[Sample]) -> list[str]:
    """What is larger in the last third of the time than in the middle one, a line each; the first
    third is for getting warm. Raises `ValueError` when there are fewer than `LEAST` samples."""
    if len(samples) < LEAST:
        raise ValueError(f"{len(samples)} samples say nothing about growth")
    third = len(samples) // 3
    before, after = middle(samples[-2 * third : -third]), middle(samples[-third:])
    return [
        f"{one.name}: from {one.of(before):.1f} in the middle third to {one.of(after):.1f} in the last"
        for one in _WATCHED
        if one.of(after) > one.of(before) * (1 + one.share) + one.plus
    ]


def table(samples: Sequence[Sample]) -> str:
    """One line for each sample."""
    lines = ["  time   asked  answered  memory MB  tasks  files"]
    lines += [
        f"{s.at_s / 60:5.1f}m  {s.asked:6}  {s.answered:8}  {s.rss_mb:9.1f}  {s.tasks:5.0f}"
        f"  {s.files:5.0f}"
        for s in samples
    ]
    return "\n".join(lines)
