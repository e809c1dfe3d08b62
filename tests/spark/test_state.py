"""State on Spark: goes on from its checkpoint in another shape, and can be read as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import stormspark
from stormspark import Fields, OutputCollector, Topology, TopologyBuilder, TopologyContext, Tuple
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.checkpoint.plain_state import plain_value
from stormspark.errors import CheckpointError
from stormspark.grouping.hashing import fields_task_index
from stormspark.operations.page.state_keys import keys_of
from tests.conformance.state_components import Sequence
from tests.waiting import wait_until_idle

pytestmark = pytest.mark.spark


class Sums(StatefulBolt[KeyValueState[int, Any]]):
    """By number modulo ten: how many came; and beside, what has no common type."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector

    def init_state(self, state: KeyValueState[int, Any]) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        key = tup["key"]
        self.state[key] = self.state.get(key, 0) + 1
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


class Mixed(Sums):
    def execute(self, tup: Tuple) -> None:
        key = tup["key"]
        self.state[key] = key if key % 2 else (str(key), [key])
        self.collector.ack(tup)


class Keys(Sequence):
    """Numbers, and their keys."""

    def next_tuple(self) -> None:
        if self.next < self.n:
            self.collector.emit((self.next, self.next % 10), message_id=self.next)
            self.next += self.step

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n", "key"))


def topology(n: int, tasks: int, **conf: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Keys(n))
    for name, bolt in (("sums", Sums()), ("mixed", Mixed())):
        declared = builder.set_bolt(name, bolt, tasks).fields_grouping("numbers", Fields("key"))
        declared.add_configurations(conf)
    return builder.create_topology("sums")


BY_KEYS = {"stormspark.state.keys": "grouping"}


@pytest.mark.parametrize(
    ("writer", "shapes"),
    [
        ("delta-rs", [(100, 2, 4), (200, 3, 4), (300, 1, 5)]),
        pytest.param("spark", [(100, 2, 4), (300, 3, 5)], marks=pytest.mark.long),
        pytest.param("driver", [(100, 2, 4), (300, 3, 5)], marks=pytest.mark.long),
    ],
)
def test_state_goes_on_in_another_shape_and_is_read_as_a_frame(
    writer: str, shapes: list[tuple[int, int, int]], spark, start, tmp_path: Path
):
    """C36, A18, D17: with other workers, with other numbers of tasks, and then in Spark's DataFrames and pandas'."""
    conf = {"test.effects": str(tmp_path), "stormspark.state.table": writer}
    checkpoint = tmp_path / "checkpoint"
    for n, workers, tasks in shapes:
        running = start(
            topology(n, tasks, **BY_KEYS), checkpoint=checkpoint, conf={"topology.workers": workers, **conf}
        )
        wait_until_idle(running)
        assert running.state_table == (f"{checkpoint}/stormspark/state", writer == "spark")
        if writer != "spark":
            found = {one["component"]: one for one in keys_of(running.state_table.location)["components"]}
            assert (found["sums"]["tasks"], found["sums"]["keys"], found["mixed"]["keys"]) == (tasks, 10, 10)
            assert {one["value"] for one in found["sums"]["first"]} == {str(n // 10)}
        running.stop()
        assert running.error is None
        commits = running.commits()
        # No batch is left out, and none is counted twice.
        assert sum(one.executed for one in commits.committed) == running.statistics().total("executed")
        assert (commits.taken_back, all(one.rounds for one in commits.committed)) == ((), True)
        rows = stormspark.state(checkpoint, "sums").to_dict("records")
        assert {row["key"]: (row["task"], row["value"]) for row in rows} == {
            key: (fields_task_index((key,), tasks), n // 10) for key in range(10)
        }
    by_name = stormspark.state("sums", "sums", spark=spark)
    assert by_name.dtypes == [("task", "int"), ("key", "bigint"), ("value", "bigint")]
    assert by_name.groupBy().sum("value").first()[0] == shapes[-1][0]
    mixed = stormspark.state(str(checkpoint), "mixed", spark=spark)
    assert mixed.dtypes == [("task", "int"), ("key", "bigint"), ("value", "binary")]
    values = {row["key"]: plain_value(bytes(row["value"])) for row in mixed.collect()}
    assert values == {key: key if key % 2 else (str(key), [key]) for key in range(10)}
    last = stormspark.state(checkpoint, "sums").attrs["txid"]
    before = stormspark.state(checkpoint, "sums", txid=last - 1, spark=spark)
    assert before.count() == 10
    with pytest.raises(CheckpointError, match=r"has 2 tasks, .* is of 5"):
        start(topology(400, 2), checkpoint=checkpoint, conf=conf)
