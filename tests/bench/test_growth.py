"""Growth is told from a process that gets warm and from one that goes up and down."""

from __future__ import annotations

import pytest

from bench.growth import LEAST, Sample, growth, table


def samples(*, rss_mb: list[float], tasks: list[float], files: list[float]) -> list[Sample]:
    rows = zip(rss_mb, tasks, files, strict=True)
    return [Sample(60.0 * n, 0, 0, *row) for n, row in enumerate(rows)]


def test_a_process_that_gets_warm_and_stays_so_does_not_grow() -> None:
    warm = samples(
        rss_mb=[90, 120, 130, 131, 130, 131, 132, 131, 131],
        tasks=[20, 20, 30, 25, 30, 28, 26, 32, 27],
        files=[20, 25, 25, 26, 24, 25, 25, 27, 25],
    )
    assert growth(warm) == []


@pytest.mark.parametrize("what", ["rss_mb", "tasks", "files"])
def test_what_grows_from_third_to_third_is_named(what: str) -> None:
    values = {"rss_mb": [130.0] * 9, "tasks": [20.0] * 9, "files": [25.0] * 9}
    values[what] = [value * (1 + 0.5 * n) for n, value in enumerate(values[what])]
    (line,) = growth(samples(**values))
    assert line.startswith({"rss_mb": "memory", "tasks": "tasks", "files": "open files"}[what])


def test_a_peak_alone_is_no_growth() -> None:
    values = {"rss_mb": [130.0] * 9, "tasks": [20.0] * 8 + [90.0], "files": [25.0] * 9}
    assert growth(samples(**values)) == []


def test_too_few_samples_say_nothing() -> None:
    few = samples(rss_mb=[1.0] * 5, tasks=[1.0] * 5, files=[1.0] * 5)
    with pytest.raises(ValueError, match="5 samples"):
        growth(few)
    assert len(few) < LEAST


def test_each_sample_is_a_line_of_the_table() -> None:
    lines = table(samples(rss_mb=[90.5], tasks=[20], files=[25])).splitlines()
    assert len(lines) == 2
    assert lines[1].split() == ["0.0m", "0", "0", "90.5", "20", "25"]
