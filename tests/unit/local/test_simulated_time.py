"""E10, E28, J25, W2: time that a test drives."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormspark import Bolt, Fields, Topology, TopologyBuilder
from stormspark.local import LocalCluster, SimulatedClock
from stormspark.testing import AckTracker, FeederSpout, TestPlannerBolt


def never_acked(feeder: FeederSpout) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("never", TestPlannerBolt()).shuffle_grouping("feeder")
    return builder.create_topology("never-acked")


@pytest.mark.slow
@given(offset=st.floats(0, 20), timeout=st.integers(2, 10), workers=st.integers(1, 2))
@settings(max_examples=min(25, settings().max_examples))
def test_a_tuple_fails_between_one_and_two_timeouts_after_its_emit(offset, timeout, workers):
    """E10, E28: whenever it was emitted, counted from the emit, whatever part of the period had passed."""
    tracker = AckTracker()
    feeder = FeederSpout(Fields("n"), tracker)
    step = 0.25
    with LocalCluster(simulated_time=True, seed=1) as cluster:
        conf = {"topology.message.timeout.secs": timeout, "topology.workers": workers}
        cluster.submit_topology("t", conf, never_acked(feeder))
        cluster.advance_time(offset)
        feeder.feed((1,), message_id=1)
        cluster.advance_time(timeout - 2 * step)
        assert not tracker.failed
        cluster.advance_time(timeout + 4 * step)
        assert tracker.failed == [1]


class Clock(Bolt):
    """Notes the time of every tick."""

    seen: ClassVar[list[int]] = []

    def prepare(self, conf, context, collector):
        self.context = context
        self.began = context.now_ms()

    def execute(self, tup):
        self.seen.append(self.context.now_ms() - self.began)

    def get_component_configuration(self):
        return {"topology.tick.tuple.freq.secs": 1}


def ticking(feeder: FeederSpout) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("clock", Clock()).shuffle_grouping("feeder")
    return builder.create_topology("ticking")


def test_increments_of_up_to_the_clocks_gap_are_time_like_any_other():
    """E10, J25: Storm's advanceClusterTime(secs, increment)."""
    tracker = AckTracker()
    feeder = FeederSpout(Fields("n"), tracker)
    with LocalCluster(simulated_time=True) as cluster:
        cluster.submit_topology("t", {"topology.message.timeout.secs": 5}, never_acked(feeder))
        feeder.feed((1,), message_id=1)
        cluster.advance_cluster_time(4)
        assert not tracker.failed
        cluster.advance_cluster_time(7, increment=0.5)
        assert tracker.failed == [1]


def test_a_huge_step_is_an_outage_in_which_nothing_times_out():
    """W2, W3, E10: nobody can have worked meanwhile; a second of the jump counts, as of every gap between batches."""
    tracker = AckTracker()
    feeder = FeederSpout(Fields("n"), tracker)
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("t", {"topology.message.timeout.secs": 5}, never_acked(feeder))
        feeder.feed((1,), message_id=1)
        running.run_batch()
        cluster.advance_cluster_time(1e9, increment=1e9)
        assert not tracker.failed
        assert running.statistics().components["feeder"].pending == 1
        cluster.advance_time(11)
        assert tracker.failed == [1]


def test_timers_go_off_once_in_a_huge_step_and_then_in_their_old_rhythm():
    """A timer fires once after a huge step of time, and then at its old whole seconds (C9)."""
    Clock.seen.clear()
    with LocalCluster(simulated_time=True) as cluster:
        cluster.submit_topology("t", {}, ticking(FeederSpout(Fields("n"))))
        cluster.advance_cluster_time(3)
        assert Clock.seen == [1000, 2000, 3000]
        cluster.advance_cluster_time(1000.25, increment=1000.25)
        assert Clock.seen[3:] == [1003250]
        cluster.advance_time(1)
        assert Clock.seen[4:] == [1004000]


def test_all_topologies_of_a_cluster_live_in_the_same_time():
    """J25: ten seconds are ten seconds, however many topologies there are, in the same small steps."""
    trackers = [AckTracker() for _ in range(3)]
    feeders = [FeederSpout(Fields("n"), tracker) for tracker in trackers]
    with LocalCluster(simulated_time=True) as cluster:
        for number, feeder in enumerate(feeders):
            conf: dict[str, Any] = {"topology.message.timeout.secs": 10}
            cluster.submit_topology(f"t{number}", conf, never_acked(feeder))
            feeder.feed((1,), message_id=1)
        cluster.advance_time(9.5)
        assert [tracker.failed for tracker in trackers] == [[], [], []]
        cluster.advance_time(11)
        assert [tracker.failed for tracker in trackers] == [[1], [1], [1]]


def test_time_that_is_real_can_not_be_driven():
    """On real time, every method that advances time raises TypeError (J25)."""
    with LocalCluster() as cluster:
        running = cluster.submit_topology("t", {}, never_acked(FeederSpout(Fields("n"))))
        assert not running.is_simulated
        for advance in (cluster.advance_time, cluster.advance_cluster_time, running.advance_time):
            with pytest.raises(TypeError, match="real time"):
                advance(1)


def test_time_goes_forward_in_steps():
    """An increment must be positive, and time never goes back (J25)."""
    cluster = LocalCluster(simulated_time=True)
    with pytest.raises(ValueError, match="an increment must be more than 0 seconds, got 0"):
        cluster.advance_cluster_time(1, increment=0)
    with pytest.raises(ValueError, match="time can't go back"):
        SimulatedClock().advance(-1)
