"""The local engine: simulated time, timeouts, activation, names, errors (E10, B13, A14)."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from stormspark import Bolt, Fields, Spout, Topology, TopologyBuilder
from stormspark.errors import ComponentError, InvalidTopologyError
from stormspark.local import LocalCluster
from stormspark.testing import FixedTupleSpout, TestWordCounter, TestWordSpout


class Keep(Bolt):
    """Never acks; asks for more time when told so."""

    def __init__(self, reset: bool = False) -> None:
        self.reset = reset

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.first: Any = None

    def execute(self, tup: Any) -> None:
        if self.first is None:
            self.first = tup
        elif self.reset:
            self.collector.reset_timeout(self.first)


class Steady(Spout):
    """One tuple for each call; remembers what it hears (in the class: the task works on a copy of the
    instance).
    """

    heard: ClassVar[list[tuple[str, Any]]] = []

    def __init__(self, n: int) -> None:
        self.n = n

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.heard.clear()

    def next_tuple(self) -> None:
        if self.n:
            self.n -= 1
            self.collector.emit((self.n,), message_id=self.n)

    def ack(self, message_id: Any) -> None:
        self.heard.append(("ack", message_id))

    def fail(self, message_id: Any) -> None:
        self.heard.append(("fail", str(self.collector.verdict)))

    def activate(self) -> None:
        self.heard.append(("activate", None))

    def deactivate(self) -> None:
        self.heard.append(("deactivate", None))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def kept(n: int, reset: bool = False) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("steady", Steady(n))
    builder.set_bolt("keep", Keep(reset)).global_grouping("steady")
    return builder.create_topology("kept")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_not_acked_times_out_between_one_and_two_timeouts(workers: int) -> None:
    """E10, E28, W4: the reason and its own counter."""
    with LocalCluster(simulated_time=True, seed=1) as cluster:
        conf = {"topology.message.timeout.secs": 10, "topology.workers": workers}
        running = cluster.submit_topology("kept", conf, kept(3))
        cluster.advance_time(9.5)
        assert running.statistics().components["steady"].pending == 3
        cluster.advance_time(11)
        steady = running.statistics().components["steady"]
        assert (steady.pending, steady.failed, steady.timed_out, steady.failed_by_bolt) == (0, 3, 3, 0)
        fails = [text for what, text in Steady.heard if what == "fail"]
        assert len(fails) == 3
        assert all(text.startswith("timed out: not fully processed within 10 s: ") for text in fails)


def test_timeouts_can_be_switched_off() -> None:
    with LocalCluster(simulated_time=True) as cluster:
        conf = {"topology.message.timeout.secs": 1, "topology.enable.message.timeouts": False}
        running = cluster.submit_topology("kept", conf, kept(3))
        cluster.advance_time(20)
        assert running.statistics().components["steady"].pending == 3


def test_a_deactivated_spout_is_asked_for_nothing_and_still_hears_of_timeouts() -> None:
    """A deactivated spout emits nothing, and still hears that its pending message timed out (B13)."""
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("kept", {"topology.message.timeout.secs": 2}, kept(1))
        cluster.advance_time(0.5)
        cluster.deactivate("kept")
        cluster.advance_time(5)
        assert Steady.heard[:2] == [("activate", None), ("deactivate", None)]
        ((what, text),) = Steady.heard[2:]
        assert what == "fail" and text is not None
        assert text.startswith("timed out: not fully processed within 2 s: keep[0] has held 1 tuple for ")
        cluster.activate("kept")
        cluster.advance_time(0.5)
        assert Steady.heard[-1] == ("activate", None)
        assert running.error is None


def test_real_time_runs_by_itself() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(limit=1000))
    builder.set_bolt("count", TestWordCounter(), 2).fields_grouping("words", Fields("word"))
    with LocalCluster() as cluster:
        running = cluster.submit_topology("real", {}, builder.create_topology("real"))
        running.run_until_idle()
        words = running.statistics().components["words"]
        assert (words.acked, words.failed, words.pending) == (1000, 0, 0)
        assert words.latency.mean is not None


def test_a_name_that_runs_already_is_refused() -> None:
    """A name that runs already is rejected, and so is killing a name that does not run (A14)."""
    with LocalCluster(simulated_time=True) as cluster:
        cluster.submit_topology("kept", {}, kept(1))
        with pytest.raises(InvalidTopologyError, match="'kept' is already running"):
            cluster.submit_topology("kept", {}, kept(1))
        with pytest.raises(
            LookupError, match="no topology named 'other' runs here; the running topologies are: 'kept'"
        ):
            cluster.kill_topology("other")


class Bad(TestWordCounter):
    def prepare(self, conf: Any, context: Any) -> None:
        raise ConnectionError("no database")


def test_a_bolt_that_raises_in_prepare_stops_all_with_its_name_and_line() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
    builder.set_bolt("bad", Bad()).shuffle_grouping("words")
    topology = builder.create_topology("bad")
    with LocalCluster() as cluster:
        pattern = r"bolt 'bad', task 2 \(bad\[0\]\), declared at .*test_local_cluster\.py:\d+, raised in prepare: ConnectionError"
        with pytest.raises(ComponentError, match=pattern):
            cluster.submit_topology("bad", {}, topology)
