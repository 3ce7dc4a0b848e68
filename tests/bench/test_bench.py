"""The benchmark itself: that it runs, and what it writes. Never how fast anything is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.__main__ import run
from bench.measures import SMALLEST
from bench.report import Measure, percentile, table, write
from tests.bench.forked import MODULES, Forked
from tests.bridge.cli.processes import Forks


@pytest.fixture
def forking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    forks = Forks(MODULES)

    def start(args: list[str], **_pipes: object) -> Forked:
        return Forked(forks, args)

    monkeypatch.setattr("bench.processes.Popen", start)
    yield
    forks.close()


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("forking")
def test_the_smallest_run_writes_each_measure_with_value_unit_and_goal(tmp_path: Path) -> None:
    measures = run(SMALLEST)
    write(measures, tmp_path / "results" / "latest.json")
    rows = json.loads((tmp_path / "results" / "latest.json").read_text())
    assert {"ready_s", "rss_ready_mb", "in_p99_ms", "out_p50_ms", "turns_per_s"} <= rows.keys()
    assert {"load_others_cpu", "load_idle_late_p99_ms", "load_gc_longest_ms"} <= rows.keys()
    assert {"stream_openai_beyond_s", "stream_anthropic_linear"} <= rows.keys()
    assert {"cancel_stream_p99_ms", "cancel_tool_p50_ms"} <= rows.keys()
    assert {"inbound_per_s", "restart_ready_s", "idle_sessions_mb"} <= rows.keys()
    assert {"search_index_s", "search_p50_ms", "search_two_han_p50_ms"} <= rows.keys()
    assert {"limits_check_p50_ms", "limits_beyond_steps"} <= rows.keys()
    assert {"memory_recall_missing", "memory_rough_lost", "memory_nights_s"} <= rows.keys()
    assert {"repair_broken_ms", "trim_fresh_ms", "trim_warm_ms"} <= rows.keys()
    for row in rows.values():
        assert row.keys() == {"value", "unit", "goal"}
        assert isinstance(row["value"], float | int)
        assert row["goal"] is None or isinstance(row["goal"], float | int)


def test_a_missed_goal_is_marked() -> None:
    lines = table({"a": Measure(2, "s", 1), "b": Measure(2, "s", 3), "c": Measure(2, "s")})
    assert ["MISSED" in line for line in lines.splitlines()] == [True, False, False]


def test_a_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 99) == 7.0
