"""Components that wait, on the local engine and a real clock: they hold up nobody else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.local import LocalCluster
from stormspark.testing import FixedTupleSpout

#: A call that waits gives up after so many seconds, so that a test fails and does not hang.
PATIENCE = 60
EXECUTORS, TUPLES = 10, 100


class Met:
    """What the components of one test share. That is possible because the local engine is one process."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with nothing that another test has left."""
        self.all_wait = threading.Barrier(EXECUTORS)
        self.enough = threading.Event()
        self.threads: dict[int, list[int]] = {}


met = Met()


@pytest.fixture(autouse=True)
def _begin() -> Iterator[None]:
    """Let each test begin with nothing shared, and let go of all who wait at its end."""
    met.begin()
    yield
    met.all_wait.abort()
    met.enough.set()


class Meets(BasicBolt):
    """Waits in ``execute`` until all executors are there."""

    def execute(self, tup: Any, collector: Any) -> None:
        met.all_wait.wait(PATIENCE)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


class Counts(BasicBolt):
    """Lets the blocked spout go on once it has enough tuples."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.seen = 0

    def execute(self, tup: Any, collector: Any) -> None:
        self.seen += 1
        if self.seen == TUPLES:
            met.enough.set()

    def declare_output_fields(self, declarer: Any) -> None:
        pass


class Blocks(Spout):
    """Waits in ``next_tuple`` for what the others do, and emits one tuple after that."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.has_ended = collector, False

    def next_tuple(self) -> None:
        if not self.has_ended:
            self.has_ended = met.enough.wait(PATIENCE)
            self.collector.emit((self.has_ended,), message_id="late")

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("done"))


class Notes(BasicBolt):
    """Notes the threads of its calls."""

    waits = True

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.threads = [threading.get_ident()]

    def __getstate__(self) -> dict[str, Any]:
        return {"nothing": None}

    def prepare(self, conf: Any, context: Any) -> None:
        self.threads.append(threading.get_ident())
        met.threads[context.this_task_id] = self.threads

    def execute(self, tup: Any, collector: Any) -> None:
        self.threads.append(threading.get_ident())

    def cleanup(self) -> None:
        self.threads.append(threading.get_ident())

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def numbers(count: int) -> FixedTupleSpout:
    """Return a spout of so many tuples."""
    return FixedTupleSpout([(n,) for n in range(count)], Fields("n"))


def test_all_executors_of_a_bolt_wait_at_the_same_time() -> None:
    """A16, X93: a bolt that asks a service has as many questions under way as executors."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", numbers(EXECUTORS))
    builder.set_bolt("meets", Meets(), EXECUTORS).shuffle_grouping("numbers")
    with LocalCluster() as cluster:
        running = cluster.submit_topology("meeting", {}, builder.create_topology("meeting"))
        running.run_until_idle()
        assert running.statistics().components["numbers"].acked == EXECUTORS


def test_a_spout_that_blocks_holds_up_neither_bolts_nor_other_spouts() -> None:
    """B1, X63, X93: it emits when what it has waited for has happened."""
    builder = TopologyBuilder()
    builder.set_spout("blocked", Blocks())
    builder.set_spout("numbers", numbers(TUPLES))
    builder.set_bolt("counts", Counts()).shuffle_grouping("numbers").shuffle_grouping("blocked")
    with LocalCluster() as cluster:
        running = cluster.submit_topology("blocked", {}, builder.create_topology("blocked"))
        assert met.enough.wait(PATIENCE)
        running.run_until_idle()
        acked = {one: counts.acked for one, counts in running.statistics().components.items()}
    assert acked["numbers"] == TUPLES
    assert acked["blocked"] == 1


def test_an_instance_lives_on_one_thread_from_unpickling_to_cleanup() -> None:
    """A16, B1: so a connection that may be used on its own thread only works in all methods."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", numbers(TUPLES))
    builder.set_bolt("notes", Notes(), 2).shuffle_grouping("numbers")
    with LocalCluster() as cluster:
        running = cluster.submit_topology("notes", {}, builder.create_topology("notes"))
        running.run_until_idle()
    one, other = map(set, met.threads.values())
    assert len(one) == len(other) == 1
    assert len(one | other | {threading.get_ident()}) == 3
    assert all(len(calls) == 3 + TUPLES // 2 for calls in met.threads.values())
