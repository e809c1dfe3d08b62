"""The benchmark table: what it makes of measurements, and that a run that was broken off goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import table
from benchmarks.measurements import MEASUREMENTS
from benchmarks.records import Records
from benchmarks.rows import ROWS, Row, Side

FASTER = Row("faster", "ours / theirs", Side("ours/a"), Side("peer/a"), first=1.5, goal=3.0)
SHORTER = Row("shorter", "how long", Side("ours/b", "ms"), first=10.0, goal=2.0, better="less", unit="ms")


def measured(figures: Mapping[str, list[dict[str, Any]]], asked: list[str]) -> Any:
    """Measurements that give these figures in turn, and write down who was asked."""
    left = {name: list(values) for name, values in figures.items()}

    def measure(name: str) -> dict[str, Any]:
        asked.append(name)
        return left[name].pop(0)

    return measure


def words(*values: float) -> list[dict[str, Any]]:
    return [
        {"words_per_s": value, "words_per_cpu_s": value / 2, "other_cpu_s": 1.0, "wall_s": 10.0}
        for value in values
    ]


def test_every_side_of_every_row_can_be_measured() -> None:
    assert {name for row in ROWS for name in row.measurements} == set(MEASUREMENTS)
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_ratios_are_of_the_same_round_and_the_median_counts(tmp_path: Path) -> None:
    records = Records(tmp_path / "results.jsonl", "code", {})
    asked: list[str] = []
    figures = {"ours/a": words(200, 300, 400), "peer/a": words(100, 200, 100)}
    table.run_rounds([FASTER], 3, records, measured(figures, asked), patience=0)
    assert asked == ["ours/a", "peer/a"] * 3
    line = table.line_of(FASTER, records, 3)
    assert sorted(line.values) == [1.5, 2.0, 4.0] and line.middle == 2.0
    text = table.markdown([line])
    assert "1.50 / 2.00 / 4.00" in text and ">= 1.5x **reached**" in text and ">= 3x **missed**" in text
    assert table.told(line)["goal_reached"] is False


def test_a_run_that_was_broken_off_goes_on_where_it_was(tmp_path: Path) -> None:
    path, asked = tmp_path / "results.jsonl", list[str]()
    figures = {"ours/a": words(200, 300), "peer/a": words(100)}
    with pytest.raises(IndexError):  # as if somebody had stopped it
        table.run_rounds([FASTER], 2, Records(path, "code", {}), measured(figures, asked), patience=0)
    asked.clear()
    again = Records(path, "code", {})
    table.run_rounds([FASTER], 2, again, measured({"peer/a": words(150)}, asked), patience=0)
    assert asked == ["peer/a"]
    assert table.line_of(FASTER, again, 2).values == [2.0, 2.0]
    assert not Records(path, "other code", {}).figures


def test_what_cannot_be_measured_says_why_and_is_asked_once_a_run(tmp_path: Path) -> None:
    records, asked = Records(tmp_path / "results.jsonl", "code", {}), list[str]()
    figures = {"ours/a": words(200, 300), "peer/a": [{"unavailable": "no Maven"}]}
    table.run_rounds([FASTER], 2, records, measured(figures, asked), patience=0)
    assert asked.count("peer/a") == 1
    line = table.line_of(FASTER, records, 2)
    assert not line.values and line.ours == [200, 300]
    assert "peer/a: no Maven" in table.markdown([line])


def test_a_row_without_a_peer_shows_its_own_figure(tmp_path: Path) -> None:
    records = Records(tmp_path / "results.jsonl", "code", {})
    table.run_rounds([SHORTER], 1, records, measured({"ours/b": [{"ms": 5.0}]}, []), patience=0)
    text = table.markdown([table.line_of(SHORTER, records, 1)])
    assert "5.00 / 5.00 / 5.00 ms" in text and "<= 10 ms **reached**" in text and "<= 2 ms **missed**" in text
