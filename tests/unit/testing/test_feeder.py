"""J25, B15: FeederSpout and AckTracker, off any engine and on the local one."""

from __future__ import annotations

import itertools
import pickle
import threading
from collections.abc import Hashable
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormspark import BasicBolt, FailedException, Fields, Topology, TopologyBuilder
from stormspark.errors import (
    ComponentError,
    EmitError,
    SerializationError,
    StormsparkError,
    UnsupportedEnvironmentError,
)
from stormspark.local import LocalCluster, submit
from stormspark.testing import (
    AckTracker,
    FeederSpout,
    RecordingSpoutCollector,
    TestWordCounter,
    complete_topology,
    make_context,
    wait_until_idle,
)
from stormspark.testing.spool import Spool


def task_of(feeder: FeederSpout, index: int = 0, parallelism: int = 1) -> tuple[FeederSpout, Any]:
    """A copy of the feeder, opened as a task of it is."""
    task = pickle.loads(pickle.dumps(feeder))
    collector = RecordingSpoutCollector(task)
    task.open({}, make_context("feeder", task, parallelism=parallelism, index=index), collector)
    return task, collector


def ask(task: FeederSpout, times: int = 20) -> None:
    for _ in range(times):
        task.next_tuple()


class Picky(BasicBolt):
    """Fails what begins with an x."""

    def execute(self, tup, collector):
        if tup[0].startswith("x"):
            raise FailedException("x")


def fed_topology(feeder: FeederSpout, tasks: int = 1) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder, tasks)
    builder.set_bolt("picky", Picky(), 2).shuffle_grouping("feeder")
    return builder.create_topology("fed")


def test_threads_that_count_emitted_tuples_wait_for_each_other():
    """J25: a thread that reads the spool while another one adds to the count would make the count wrong."""
    feeder = FeederSpout(Fields("word"))
    locked = []

    class Taken(Spool):
        def read(self) -> list[int]:
            locked.append(feeder._lock is not None and feeder._lock.locked())
            return [0]

    feeder._taken = Taken()
    assert (feeder.emitted, feeder.emitted) == (1, 2)
    assert locked == [True, True]


def test_what_is_fed_before_and_after_the_opening_is_emitted_once_in_order():
    """Tuples fed before and after the spout is opened are emitted once, in order (J25, B15)."""
    feeder = FeederSpout(Fields("word"))
    feeder.feed(("a",), message_id=1)
    task, collector = task_of(feeder)
    ask(task)
    feeder.feed(["b"], message_id=2)
    feeder.feed(("c",), message_id=3)
    ask(task)
    assert [(e.values, e.message_id) for e in collector.emitted] == [(("a",), 1), (("b",), 2), (("c",), 3)]
    assert (feeder.fed, feeder.emitted) == (3, 3)


def test_without_an_id_one_is_made_and_none_means_unreliable():
    """B5, B6, J25: as Storm's feed(tuple) and feed(tuple, null)."""
    feeder = FeederSpout(Fields("word"))
    made = feeder.feed(("a",))
    assert feeder.feed(("b",), message_id=None) is None
    task, collector = task_of(feeder)
    ask(task)
    assert made is not None
    assert [e.message_id for e in collector.emitted] == [made, None]
    assert collector.pending == [made]


@given(tasks=st.integers(1, 4), fed=st.integers(0, 12))
@settings(max_examples=30)
def test_tasks_share_out_what_is_fed(tasks, fed):
    """J25: each tuple goes to one task, to each task as many."""
    feeder = FeederSpout(Fields("n"))
    for number in range(fed):
        feeder.feed((number,))
    opened = [task_of(feeder, index, tasks) for index in range(tasks)]
    for task, _ in opened:
        ask(task)
    shares = [[values[0] for values in collector.values()] for _, collector in opened]
    assert sorted(itertools.chain.from_iterable(shares)) == list(range(fed))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert all(share == sorted(share) for share in shares)


def test_a_restarted_task_goes_on_where_its_predecessor_ended():
    """B10, J25: what the old one had open is forgotten, nothing is emitted twice."""
    feeder = FeederSpout(Fields("n"))
    for number in range(4):
        feeder.feed((number,))
    first, seen = task_of(feeder)
    ask(first, 2)
    _, other = again = task_of(feeder)
    ask(again[0])
    assert (seen.values(), other.values()) == ([(0,), (1,)], [(2,), (3,)])


def test_a_feeder_with_several_streams():
    """A feeder can feed several streams (A10, J25)."""
    feeder = FeederSpout(Fields("word"), streams={"numbers": Fields("n", "m")})
    feeder.feed(("a",))
    feeder.feed((1, 2), stream="numbers")
    task, collector = task_of(feeder)
    ask(task)
    assert (collector.values(), collector.values("numbers")) == ([("a",)], [(1, 2)])


@pytest.mark.parametrize(
    ("values", "stream", "says"),
    [
        (("a", "b"), "default", r"takes a tuple or list of 1 values \(word\), got \('a', 'b'\)"),
        ("a", "default", "takes a tuple or list"),
        (("a",), "other", r"feed to stream 'other': this feeder has 'default'"),
    ],
)
def test_what_does_not_fit_is_refused_where_it_is_fed(values, stream, says):
    """`feed` rejects values that do not fit the stream, and unknown streams (A12, B9)."""
    with pytest.raises(EmitError, match=says):
        FeederSpout(Fields("word")).feed(values, stream=stream)


def test_what_can_not_be_pickled_is_refused_where_it_is_fed():
    """`feed` rejects a value that can't be pickled (C8)."""
    feeder = FeederSpout(Fields("lock"))
    with pytest.raises(SerializationError, match="can't be pickled"):
        feeder.feed((threading.Lock(),))
    assert feeder.fed == 0


def test_copies_are_not_fed_and_delegates_come_before_the_pickling():
    """A3: the topology has copies of the spout."""
    feeder = FeederSpout(Fields("word"))
    feeder.set_ack_fail_delegate(AckTracker())
    task, _ = task_of(feeder)
    with pytest.raises(StormsparkError, match="feed the one that the topology was built with"):
        task.feed(("a",))
    with pytest.raises(StormsparkError, match="before create_topology"):
        feeder.set_ack_fail_delegate(AckTracker())


class Ledger:
    """A delegate of one's own, which writes into the test's list."""

    heard: ClassVar[list[tuple[str, Hashable]]] = []

    def ack(self, message_id: Hashable) -> None:
        self.heard.append(("ack", message_id))

    def fail(self, message_id: Hashable) -> None:
        self.heard.append(("fail", message_id))


def test_a_delegate_hears_of_every_ack_and_fail():
    """J25: Storm's AckFailDelegate."""
    Ledger.heard.clear()
    feeder = FeederSpout(Fields("word"), Ledger())
    feeder.feed(("a",), message_id="a")
    feeder.feed(("x",), message_id="x")
    complete_topology(fed_topology(feeder))
    assert sorted(Ledger.heard) == [("ack", "a"), ("fail", "x")]


def test_a_tracker_counts_from_its_last_reset_and_remembers_all():
    """J25: Storm's AckTracker and AckFailMapTracker; what failed is not fed again (E11)."""
    tracker = AckTracker()
    feeder = FeederSpout(Fields("word"), tracker)
    with LocalCluster(simulated_time=True) as cluster:
        running = cluster.submit_topology("fed", {}, fed_topology(feeder, tasks=2))
        for word in ("a", "x", "b"):
            feeder.feed((word,), message_id=word)
        running.run_until_idle()
        assert (tracker.num_acks, set(tracker.acked), tracker.failed) == (2, {"a", "b"}, ["x"])
        assert tracker.is_acked("a") and not tracker.is_acked("x") and tracker.is_failed("x")
        tracker.reset_num_acks()
        feeder.feed(("c",), message_id="c")
        running.run_until_idle()
        assert (tracker.num_acks, tracker.is_acked("a")) == (1, True)
        assert running.statistics().components["feeder"].failed == 1


def test_a_topology_on_real_time_is_fed_from_any_thread_while_it_runs():
    """Threads feed a topology that runs on real time, and every tuple is acked (J25)."""
    tracker = AckTracker()
    feeder = FeederSpout(Fields("word"), tracker)
    running = submit(fed_topology(feeder, tasks=3))
    try:
        threads = [
            threading.Thread(target=lambda: [feeder.feed((str(n),)) for n in range(100)]) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until_idle(running)
        assert tracker.num_acks == 300
    finally:
        running.stop()


def test_a_host_without_the_folder_is_named(tmp_path):
    """J25: a feeder works on one host only, and says so before anything runs."""
    feeder = FeederSpout(Fields("word"))
    task = pickle.loads(pickle.dumps(feeder))
    task._fed = type(feeder._fed)(str(tmp_path / "elsewhere"))
    builder = TopologyBuilder()
    builder.set_spout("feeder", task)
    builder.set_bolt("count", TestWordCounter()).shuffle_grouping("feeder")
    with pytest.raises(
        ComponentError, match=r"FeederSpout 'feeder': the folder .*elsewhere can't be reached on host"
    ):
        submit(builder.create_topology("elsewhere"))
    with pytest.raises(UnsupportedEnvironmentError):
        task.open({}, make_context("feeder", task), RecordingSpoutCollector(task))
