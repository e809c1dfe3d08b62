"""Topologies whose input has an end, on Spark: what windows hold comes out, and they end by themselves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stormspark import (
    Duration,
    Topology,
    TopologyBuilder,
)
from stormspark.connectors import DeltaBolt, FileSpout
from tests.finite_components import Lines, Parse, PerWindow
from tests.waiting import wait_for_acks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 20_000
WAIT_SECS = 600.0


def topology(folder: Path, **conf: Any) -> Topology:
    """The topology of issue 24: files -> parse -> windows of 10 s in event time -> a Delta table."""
    builder = TopologyBuilder()
    builder.set_spout("lines", FileSpout(folder / "files"))
    builder.set_bolt("parse", Parse(), 2).shuffle_grouping("lines")
    windows = PerWindow().with_tumbling_window(Duration.seconds(10)).with_timestamp_field("at")
    builder.set_bolt("windows", windows.with_lag(Duration.seconds(1))).global_grouping("parse")
    builder.set_bolt("table", DeltaBolt(folder / "table")).global_grouping("windows")
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return builder.create_topology("finite", settings)


def write(folder: Path, name: str, rows: range) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"_{name}").write_text("".join(f"{1_000_000 + n * 25} {n}\n" for n in rows))
    (folder / f"_{name}").rename(folder / name)


def per_window(folder: Path) -> Counter[int]:
    from deltalake import DeltaTable

    table = DeltaTable(str(folder / "table")).to_pyarrow_table()
    found: Counter[int] = Counter()
    for until, rows in zip(table["until"].to_pylist(), table["rows"].to_pylist(), strict=True):
        found[until] += rows
    return found


def expected(rows: range) -> Counter[int]:
    return Counter(-(-(1_000_000 + n * 25) // 10_000) * 10_000 for n in rows)


def test_20000_of_20000_come_out_of_windows(spark: SparkSession, tmp_path: Path) -> None:
    """Three workers, at least once."""
    from stormspark.spark import submit

    write(tmp_path / "files", "all", range(ROWS))
    running = submit(topology(tmp_path, topology_workers=3), spark, trigger="available-now")
    assert running.wait(WAIT_SECS)
    assert running.error is None
    assert per_window(tmp_path) == expected(range(ROWS))
    statistics = running.statistics()
    assert statistics.components["lines"].acked == ROWS
    assert statistics.total("late") == statistics.total("failed") == statistics.total("pending") == 0


def test_exactly_once_a_later_run_goes_on_with_new_files(spark: SparkSession, tmp_path: Path) -> None:
    """Each run ends with its windows fired. The window that the first end has cut gets a second result, of the new rows."""
    from stormspark.spark import submit

    made = topology(tmp_path, topology_workers=1, stormspark_exactly_once=True)
    middle = 1_150
    for name, rows in (("first", range(middle)), ("second", range(middle, 2_000))):
        write(tmp_path / "files", name, rows)
        running = submit(made, spark, trigger="available-now", checkpoint=tmp_path / "checkpoint")
        assert running.wait(WAIT_SECS)
        assert running.error is None
        assert running.statistics().total("late") == 0
        assert per_window(tmp_path) == expected(range(rows.stop))


def test_an_end_that_the_user_names_needs_no_stop(spark: SparkSession, tmp_path: Path) -> None:
    """A spout with a thread of its own may emit between any two batches. That does not keep the last batch from ending."""
    from stormspark.spark import submit

    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(range(300)), 2)
    builder.set_bolt("parse", Parse(), 2).shuffle_grouping("lines")
    running = submit(builder.create_topology("endless", {"topology.workers": 2}), spark)
    wait_for_acks(running, "lines", 600)
    running.end_input()
    assert running.wait(WAIT_SECS)
    assert running.error is None
    statistics = running.statistics()
    assert statistics.total("failed") == statistics.total("pending") == 0
