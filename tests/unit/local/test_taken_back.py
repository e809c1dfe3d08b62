"""C44: a batch that fails runs again, and the summary says so, because the tuples of all attempts are counted."""

from __future__ import annotations

from typing import Any

from stormspark import BasicBolt, FailedException, Fields, StatefulBolt, TopologyBuilder
from stormspark.local import LocalCluster
from stormspark.testing import FixedTupleSpout
from stormspark.ui.summary import _footnotes

FAILED: list[str] = []


class FailsOnce(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        if not FAILED:
            FAILED.append(tup[0])
            msg = "the service is away"
            raise FailedException(msg)
        collector.emit((tup[0],))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Count(StatefulBolt[Any]):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any) -> None:
        self.state.put(tup[0], self.state.get(tup[0], 0) + 1)
        self.collector.ack(tup)


def test_the_summary_says_that_a_batch_ran_again() -> None:
    FAILED.clear()
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",), ("b",)], Fields("word")))
    builder.set_bolt("service", FailsOnce()).shuffle_grouping("words")
    builder.set_bolt("count", Count()).shuffle_grouping("service")
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology(
            "again", {"stormspark.exactly.once": True}, builder.create_topology("again")
        )
        running.run_until_idle()
        statistics = running.statistics()
        commits = running.commits()
    assert statistics.taken_back == 1
    (taken_back,) = commits.taken_back
    assert (taken_back.batch, "FailedException: the service is away" in taken_back.reason) == (0, True)
    first = commits.committed[-1]
    # What the first attempt has done counts, too. The spout emits nothing in the second one.
    assert (first.batch, first.rounds, first.emitted, first.executed) == (0, 1, 2, 3)
    # All later batches had nothing to do, so they are one entry.
    idle = commits.committed[0]
    assert (idle.emitted, idle.executed, idle.batches) == (0, 0, idle.batch)
    lines = list(_footnotes(statistics))
    assert "attempts at batches that were taken back and ran again: 1 (they count above, too)" in lines
    (last,) = (line for line in lines if line.startswith("the last attempt"))
    assert "FailedException: the service is away" in last
