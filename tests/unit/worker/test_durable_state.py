"""State that outlives its workers: which task gets what when a topology begins again, also in another shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.api.state import StatefulBolt
from tests.unit.worker.components import Script
from tests.unit.worker.durable_workers import DurableWorkers

WORDS = [(f"word-{n % 20}",) for n in range(100)]
COUNTS = {f"word-{n}": 5 for n in range(20)}


class Count(StatefulBolt[Any]):
    """Counts by key."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.counts = state

    def execute(self, tup: Any) -> None:
        self.counts[tup[0]] = count = self.counts.get(tup[0], 0) + 1
        self.collector.emit((tup[0], count), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word", "count"))


def counting(rows: list[tuple[Any, ...]] = WORDS, tasks: int = 4, **conf: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", Script(rows, ("word",)))
    count = builder.set_bolt("count", Count(), tasks).fields_grouping("words", Fields("word"))
    count.add_configurations({key.replace("_", "."): value for key, value in conf.items()})
    return builder.create_topology("counting")


def test_state_goes_with_its_task_to_another_number_of_workers(tmp_path: Path):
    """C36, A18: ids of tasks shift with the ackers, of which there are as many as workers; state goes by the task's index."""
    for generation, workers in enumerate((1, 3, 2)):
        run = DurableWorkers(counting(), tmp_path, {"topology.workers": workers}, generation)
        run.run_batch()
        run.close()
        assert run.state("count") == {word: count * (generation + 1) for word, count in COUNTS.items()}
