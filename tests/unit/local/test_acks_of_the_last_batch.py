"""At a stop, spouts of an exactly-once topology hear of the last committed batch, and the summary counts it (C44, J15)."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark import AsyncSpout, BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.api.state import StatefulComponent
from stormspark.local import submit
from stormspark.transactional import TransactionalTopologyBuilder
from tests.unit.transactional.components import Sum, Tens, Total, begin
from tests.unit.worker.executors.runs import Told, until

CALLS = [
    pytest.param("never", id="on the worker's thread"),
    pytest.param("always", id="on threads"),
]


class Counts(StatefulComponent, Spout):
    """Emits numbers for ever, and tells what it hears of them."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def init_state(self, state: Any) -> None:
        self.state = state

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def next_tuple(self) -> None:
        number = self.state["next"] = self.state.get("next", 0) + 1
        self.collector.emit((number,), message_id=number)

    def ack(self, message_id: Any) -> None:
        self.told("ack", message_id)

    def fail(self, message_id: Any) -> None:
        self.told("fail", message_id)

    def pre_save(self, checkpoint_id: int) -> None:
        """The state is up to date."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class RaisesLast(Counts):
    """Raises in each ack once the topology stops."""

    stops = False

    def ack(self, message_id: Any) -> None:
        super().ack(message_id)
        if RaisesLast.stops:
            self.told("raises", message_id)
            raise ValueError(f"no {message_id}")


class CountsOnLoop(AsyncSpout):
    """Emits numbers for ever."""

    def __init__(self, told: Told) -> None:
        self.told = told

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.next = collector, 0

    async def next_tuple(self) -> None:
        self.next += 1
        self.collector.emit((self.next,), message_id=self.next)

    async def ack(self, message_id: Any) -> None:
        self.told("ack", message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Adds(StatefulComponent, BasicBolt):
    """Adds up what comes."""

    def init_state(self, state: Any) -> None:
        self.state = state

    def execute(self, tup: Any, collector: Any) -> None:
        self.state["sum"] = self.state.get("sum", 0) + tup[0]

    def pre_save(self, checkpoint_id: int) -> None:
        """The state is up to date."""


def _stopped(spout: Any, told: Told, **conf: Any) -> Any:
    """Run a topology until its spout has heard of an ack, and stop it. Return what its summary says of the spout."""
    builder = TopologyBuilder()
    builder.set_spout("counts", spout)
    builder.set_bolt("adds", Adds(), 2).shuffle_grouping("counts")
    running = submit(builder.create_topology("last"), conf=conf)
    try:
        until(lambda: told.all)
    finally:
        RaisesLast.stops = True
        running.stop()
    assert running.error is None
    return running.statistics().components["counts"]


@pytest.mark.parametrize("threads", CALLS)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_summary_has_the_acks_that_a_spout_with_state_hears_at_a_stop(threads: str, workers: int) -> None:
    told = Told("acks of the last batch")
    conf = {"topology.workers": workers, "stormspark.executor.threads": threads}
    counted = _stopped(Counts(told), told, **conf)
    assert {what for what, _ in told.all} == {"ack"}
    assert (counted.emitted, counted.acked, counted.pending) == (len(told.all), len(told.all), 0)


def test_the_summary_has_the_acks_that_an_async_spout_hears_at_a_stop() -> None:
    told = Told("acks of the last batch on the loop")
    counted = _stopped(CountsOnLoop(told), told)
    assert counted.acked == len(told.all) == counted.emitted - counted.pending


def test_the_summary_has_the_error_with_which_a_spout_hears_of_the_last_batch() -> None:
    told = Told("an ack of the last batch that raises")
    RaisesLast.stops = False
    counted = _stopped(RaisesLast(told), told, **{"stormspark.executor.threads": "never"})
    # A batch that was under way when the topology was told to stop may be heard of, too, before the last one.
    raised = [message_id for what, message_id in told.all if what == "raises"]
    assert counted.errors == len(raised) in (1, 2)
    assert f"ValueError: no {raised[-1]}" in counted.last_error


@pytest.mark.parametrize("workers", [1, 2])
def test_the_summary_of_a_transactional_topology_counts_the_last_transaction(workers: int) -> None:
    """G1: and of bolts with state."""
    begin()
    builder = TransactionalTopologyBuilder("sums", "tens", Tens(1_000_000))
    builder.set_bolt("total", Total()).global_grouping("tens")
    builder.set_committer_bolt("write", Sum()).global_grouping("tens")
    running = submit(builder.create_topology(), conf={"topology.workers": workers})
    try:
        until(lambda: running.statistics().components["write"].executed)
    finally:
        running.stop()
    assert running.error is None
    spouts = [one for one in running.statistics().components.values() if one.kind == "spout"]
    assert spouts and [one.acked for one in spouts] == [one.emitted for one in spouts]
    assert not any(one.pending for one in spouts)
