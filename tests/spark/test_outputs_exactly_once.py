"""Sinks of topologies whose batches are transactions, on Spark: each row once, also over stops and poison."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

from stormspark import BasicBolt, Fields, TopologyBuilder
from stormspark.connectors import DeltaBolt, FileSpout
from tests.waiting import PATIENCE_SECS

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Number(BasicBolt):
    """A line as a number; the poison stays a text, which the table has no room for."""

    def execute(self, tup: Any, collector: Any) -> None:
        line = tup["line"]
        collector.emit((int(line) if line.isdigit() else line, line[-1]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n", "digit"))


@pytest.mark.long  # tests/faults/outputs has these sinks, and kills
def test_lines_to_a_table_and_the_newest_of_each_digit_to_another(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    """C42, C44, W23: a restart goes on where the table is; a row that does not fit becomes a dead letter, alone."""
    lines, dead = tmp_path / "lines", tmp_path / "dead"
    lines.mkdir()
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(lines))
    builder.set_bolt("number", Number(), 2).shuffle_grouping("lines")
    builder.set_bolt("all", DeltaBolt(tmp_path / "all"), 2).shuffle_grouping("number")
    builder.set_bolt("newest", DeltaBolt(tmp_path / "newest", merge_on="digit")).global_grouping("number")
    topology = builder.create_topology("outputs-exactly-once")
    conf = {
        "topology.workers": 2,
        "stormspark.exactly.once": True,
        "stormspark.dead.letter.dir": str(dead),
        "stormspark.batch.target.ms": 200,
    }
    for part in range(2):
        text = [str(n) for n in range(part * 100, part * 100 + 100)] + (["poison"] if part else [])
        (lines / f"{part}.txt").write_text("\n".join(text) + "\n")
        running = start(topology, conf=conf, checkpoint=tmp_path / "checkpoint", trigger="available-now")
        assert running.wait(PATIENCE_SECS) and running.error is None
        numbers = deltalake.DeltaTable(tmp_path / "all").to_pyarrow_table().column("n").to_pylist()
        assert sorted(numbers) == list(range(part * 100 + 100))
    newest = deltalake.DeltaTable(tmp_path / "newest").to_pyarrow_table().to_pylist()
    assert sorted(row["digit"] for row in newest) == list("0123456789")
    assert all(row["n"] >= 100 and str(row["n"])[-1] == row["digit"] for row in newest)
    assert "poison" in "".join(file.read_text() for file in dead.rglob("*") if file.is_file())
