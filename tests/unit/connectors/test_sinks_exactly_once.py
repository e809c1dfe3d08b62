"""Which sinks make batches transactions, and which take part where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.api.state import kind_of_state
from stormspark.connectors import DeltaBolt, FileBolt, KafkaBolt
from stormspark.errors import InvalidTopologyError
from stormspark.local import submit
from stormspark.plan import plan_topology
from tests.unit.worker.components import Script

KAFKA = KafkaBolt().with_producer_properties({"bootstrap.servers": "nowhere:1"}).with_topic_selector("t")
IN_TRANSACTIONS = (
    KafkaBolt()
    .with_producer_properties({"bootstrap.servers": "nowhere:1"})
    .with_topic_selector("t")
    .with_transactions()
)


def built(bolt: Any) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("words", Script([("a", 1)], ("key", "message")))
    builder.set_bolt("sink", bolt).fields_grouping("words", Fields("key"))
    return builder.create_topology("sinks")


@pytest.mark.parametrize(
    ("bolt", "kind"),
    [(DeltaBolt("/t"), "sink"), (FileBolt("/t"), "sink"), (KAFKA, "sink"), (IN_TRANSACTIONS, "heron")],
    ids=["delta", "file", "kafka", "kafka-transactions"],
)
def test_a_sink_has_state_where_batches_are_transactions(bolt: Any, kind: str) -> None:
    """C42, C43: and makes them so only if it is asked to write in transactions."""
    assert kind_of_state(bolt) == kind
    for conf, exactly_once in ({}, kind == "heron"), ({"stormspark.exactly.once": True}, True):
        plan = plan_topology(built(bolt), conf)
        assert plan.exactly_once == exactly_once
        assert plan.components["sink"].kind_of_state == ("heron" if exactly_once else "")


def test_kafkas_transactions_need_batches_that_are_ones() -> None:
    """J5: where that is forbidden, it is said which bolt has them."""
    with pytest.raises(
        InvalidTopologyError, match=r"bolt 'sink' has state, but stormspark\.exactly\.once is false"
    ):
        plan_topology(built(IN_TRANSACTIONS), {"stormspark.exactly.once": False})


def test_on_the_local_engine_rows_are_there_when_their_batch_is_committed(tmp_path: Path) -> None:
    """C42: the last ones when the topology ends."""
    builder = TopologyBuilder()
    builder.set_spout("words", Script([(f"w{n}", n) for n in range(20)], ("word", "n")))
    builder.set_bolt("sink", DeltaBolt(tmp_path / "t"), 2).shuffle_grouping("words")
    running = submit(
        builder.create_topology("local"), conf={"stormspark.exactly.once": True, "topology.workers": 2}
    )
    running.run_until_idle(30)
    running.stop()
    assert running.error is None
    assert sorted(deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().column("n").to_pylist()) == list(
        range(20)
    )
