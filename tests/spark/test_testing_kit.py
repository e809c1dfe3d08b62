"""J25: what the test kit does on Spark alone; what it does everywhere is in tests/conformance."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter

import pytest

from stormspark import Bolt, Fields, TopologyBuilder
from stormspark.errors import ComponentError, TopologyNotCompleteError
from stormspark.testing import (
    AckTracker,
    FeederSpout,
    FixedTupleSpout,
    TestPlannerBolt,
    TestWordCounter,
    TrackedTopology,
    complete_topology,
)
from tests.waiting import PATIENCE_SECS, worker_processes

pytestmark = pytest.mark.spark


@pytest.mark.faults
def test_a_feeder_whose_worker_was_killed_goes_on_behind_what_it_had_emitted(start):
    """J25, B10: nothing is emitted twice, and the test's process has forgotten nothing."""
    tracker = AckTracker()
    feeder = FeederSpout(Fields("word"), tracker)
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("count", TestWordCounter(), 2).shuffle_grouping("feeder")
    running = start(builder.create_topology("fed-and-killed"), conf={"topology.workers": 2})
    tracked = TrackedTopology(running)
    for number in range(10):
        feeder.feed((str(number),), message_id=number)
    tracked.tracked_wait(10, PATIENCE_SECS)
    (task,) = running.plan.components["feeder"].tasks
    os.kill(worker_processes("fed-and-killed")[running.plan.tasks[task].worker].pid, signal.SIGKILL)
    for number in range(10, 20):
        feeder.feed((str(number),), message_id=number)
    tracked.tracked_wait(10, PATIENCE_SECS)
    assert feeder.emitted == 20
    assert Counter(tracker.acked) == Counter(range(20))
    running.stop()
    assert running.error is None


class Locked(Bolt):
    """Emits what can't be pickled."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.emit((threading.Lock(),), anchors=tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("lock"))


def locking():
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
    builder.set_bolt("locked", Locked()).shuffle_grouping("words")
    return builder.create_topology("locking")


def test_what_can_not_be_recorded_is_an_error_of_its_component(spark):
    """J25, C8: values come to the test's process by pickle."""
    with pytest.raises(
        ComponentError,
        match=r"component 'locked', task \d+, stream 'default': complete_topology can't record",
    ):
        complete_topology(
            locking(), conf={"stormspark.task.max.restarts.in.row": 0}, engine="spark", spark=spark
        )


def test_what_is_not_done_in_time_is_reported_and_the_topology_is_killed(spark):
    """J25, E10: time is real here, so nobody waits for a timeout of half a minute."""
    builder = TopologyBuilder()
    builder.set_spout("words", FixedTupleSpout([("a",), ("b",)], Fields("word")))
    builder.set_bolt("never", TestPlannerBolt()).shuffle_grouping("words")
    topology = builder.create_topology("never-done")
    conf = {"topology.message.timeout.secs": 1000}
    for timeout in (3, 10, 30, 100):  # the first batch takes longer on a busy machine
        with pytest.raises(TopologyNotCompleteError, match=f"after {timeout} s: ") as told:
            complete_topology(topology, conf=conf, engine="spark", spark=spark, timeout=timeout)
        assert worker_processes("never-done") == {}
        if "waits" in str(told.value):
            break
    assert "spout 'words' waits for the end of 2 trees" in str(told.value)
