"""Statistics as a table: a row for each component, and types that do not depend on what is known."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from stormspark.backpressure import BoltPressure, Pressure, SpoutPressure
from stormspark.metrics.frames import COLUMNS, SCHEMA
from tests.unit.scripted_topology import Moment, component, snapshot


def test_a_row_for_each_component_with_units_in_the_names():
    frame = snapshot(Moment(at=10.0, emitted=120, executed=100, acked=90, failed=7, pending=23)).to_pandas()
    spout, bolt = frame.to_dict("records")
    assert (spout["component"], spout["kind"], spout["tasks"]) == ("spout", "spout", 2)
    assert (spout["acked"], spout["failed"], spout["pending"], spout["emitted_per_s"]) == (90, 7, 23, 12.0)
    assert (bolt["component"], bolt["executed"], bolt["executed_per_s"]) == ("bolt", 100, 10.0)
    assert bolt["latency_p99_ms"] > 1.9
    assert set(frame["seconds"]) == {10.0}


def test_types_stay_the_same_if_nothing_is_known():
    """So that frames of several moments can be put under each other."""
    empty = snapshot(Moment(at=0.0)).to_pandas()
    none = replace(snapshot(Moment(at=1.0)), components={}).to_pandas()
    full = snapshot(Moment(at=1.0, executed=3, acked=3)).to_pandas()
    assert dict(empty.dtypes) == dict(full.dtypes) == dict(none.dtypes)
    assert len(none) == 0
    assert len(pd.concat([empty, full])) == 4


def test_who_throttled_a_spout_is_in_its_row():
    moment = snapshot(Moment(at=2.0))
    spouts = {
        "spout": SpoutPressure(limit=5, throttled_by="bolt", throttled_ms={"bolt": 500.0, "other": 250.0})
    }
    bolts = {"bolt": BoltPressure(1, 1, 10, 10, 0.1, False)}
    frame = replace(moment, pressure=Pressure(spouts, bolts, 1, [])).to_pandas().set_index("component")
    assert frame.loc["spout", "throttled_s"] == 0.75
    assert frame.loc["spout", "throttled_by"] == "bolt"
    assert frame["throttled_s"].isna()["bolt"]


def test_spark_gets_the_same_rows_and_names():
    class Session:
        def createDataFrame(self, data, schema):  # noqa: N802 - Spark's name
            return data, schema

    rows, schema = snapshot(Moment(at=1.0, executed=3)).to_spark(Session())
    assert schema == SCHEMA
    assert [len(row) for row in rows] == [len(COLUMNS)] * 2
    assert [part.split()[0] for part in schema.split(", ")] == [column.name for column in COLUMNS]


def test_statistics_show_themselves():
    moment = snapshot(Moment(at=2.0, emitted=5, executed=4, acked=4, pending=1))
    assert repr(moment) == (
        "<TopologyStatistics 'scripted' on script: 2.0 s, 1 batches, 2 tuples/s, emitted 5, acked 4, failed 0, pending 1>"
    )
    odd = replace(moment, components={"<b>": component("bolt", errors=2)})
    assert "&lt;b&gt;" in odd._repr_html_() and "<th class='number'>errors</th>" in odd._repr_html_()
    assert "errors" not in moment._repr_html_()
