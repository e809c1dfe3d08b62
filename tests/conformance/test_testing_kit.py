"""J25, W10: every tool of the test kit on every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stormspark import BasicBolt, Bolt, FailedException, Fields, Spout, Topology, TopologyBuilder
from stormspark.engine import RunningTopology
from stormspark.errors import TopologyAlreadyRunningError, TopologyNotCompleteError
from stormspark.testing import (
    AckTracker,
    CompletedTopology,
    FeederSpout,
    FixedTuple,
    FixedTupleSpout,
    TestAggregatesCounter,
    TestGlobalCount,
    TestWordCounter,
    TestWordSpout,
    TrackedTopology,
    complete_topology,
    multiseteq,
    wait_until_idle,
)
from tests.conformance.conftest import ENGINES, waits_of

Start = Callable[..., RunningTopology]
Complete = Callable[..., CompletedTopology]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> tuple[str, int, Any]:
    """Which engine, how many workers, and the session if it needs one."""
    name, workers = request.param
    return name, workers, request.getfixturevalue("spark") if name == "spark" else None


@pytest.fixture
def start(request: pytest.FixtureRequest, engine: tuple[str, int, Any]) -> Iterator[Start]:
    """Start a topology; what still runs at the end is stopped."""
    name, workers, session = engine
    started: list[RunningTopology] = []

    def start_topology(topology: Topology, **conf: Any) -> RunningTopology:
        settings = {"topology.workers": workers, **threads, **conf}
        if name != "spark":
            from stormspark.local import submit as submit_locally

            started.append(submit_locally(topology, conf=settings))
        else:
            from stormspark.spark import submit

            started.append(submit(topology, session, conf=settings))
        return started[-1]

    threads: dict[str, Any] = {}
    with waits_of(name, request.node.nodeid, threads):
        yield start_topology
        for running in started:
            running.stop()


@pytest.fixture
def complete(request: pytest.FixtureRequest, engine: tuple[str, int, Any]) -> Iterator[Complete]:
    """`complete_topology` on the engine."""
    name, workers, session = engine
    if name == "threads":
        pytest.skip("complete_topology runs on a simulated clock, on which no executor has a thread (J25)")

    def run(topology: Topology, mocks: Any = None, conf: Any = None, **options: Any) -> CompletedTopology:
        settings = {"topology.workers": workers, **threads, **(conf or {})}
        on = "spark" if name == "spark" else "local"
        return complete_topology(topology, mocks, settings, engine=on, spark=session, **options)

    threads: dict[str, Any] = {}
    with waits_of(name, request.node.nodeid, threads):
        yield run


class Picky(BasicBolt):
    """Fails words that begin with an x, and dies of the word "die", once a life."""

    def execute(self, tup, collector):
        if tup["word"].startswith("x"):
            raise FailedException(tup["word"])
        if tup["word"] == "die":
            raise ConnectionError(tup["word"])


def test_a_feeder_is_fed_before_and_while_the_topology_runs(start: Start) -> None:
    """J25, B15: with a tracker that hears of it all, in this process."""
    tracker = AckTracker()
    feeder = FeederSpout(Fields("word"), tracker)
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder, 2)
    builder.set_bolt("picky", Picky(), 2).shuffle_grouping("feeder")
    for word in ("before", "xenon"):
        feeder.feed((word,), message_id=word)
    tracked = TrackedTopology(start(builder.create_topology("fed")))
    tracked.tracked_wait(2)
    assert (tracker.acked, tracker.failed, tracker.num_acks) == (["before"], ["xenon"], 1)
    tracker.reset_num_acks()
    for number in range(20):
        feeder.feed((f"while {number}",), message_id=number)
    feeder.feed(("unreliable",), message_id=None)
    statistics = tracked.tracked_wait(21)
    assert tracker.num_acks == 20
    assert set(tracker.acked) == {"before", *range(20)}
    assert (feeder.fed, feeder.emitted) == (23, 23)
    assert statistics.components["picky"].executed == 23


@pytest.mark.slow
def test_a_tracked_wait_counts_on_from_the_waits_before(start: Start) -> None:
    """J25: Storm's trackedWait."""
    feeder = FeederSpout(Fields("word"))
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("count", TestWordCounter(), 2).fields_grouping("feeder", Fields("word"))
    builder.set_bolt("global", TestGlobalCount()).global_grouping("count")
    tracked = TrackedTopology(start(builder.create_topology("tracked")))
    for _ in range(3):
        feeder.feed(("a",))
    assert tracked.tracked_wait(2).components["global"].executed >= 2
    assert tracked.tracked_wait().components["global"].executed == 3
    assert tracked.spout_emitted == 3
    with pytest.raises(
        TimeoutError, match=r"not done after 0\.2 s; spouts emitted 3 of 4; 0 pending, 0 queued, 6 executed"
    ):
        tracked.tracked_wait(1, timeout=0.2)
    assert wait_until_idle(tracked.running).total("pending") == 0


def test_a_wait_raises_what_the_topology_ended_with(start: Start) -> None:
    """`tracked_wait` raises the error that stopped the topology (J25, W22)."""
    feeder = FeederSpout(Fields("word"))
    builder = TopologyBuilder()
    builder.set_spout("feeder", feeder)
    builder.set_bolt("picky", Picky()).shuffle_grouping("feeder")
    topology = builder.create_topology("dies")
    tracked = TrackedTopology(start(topology, **{"stormspark.task.max.restarts.in.row": 0}))
    feeder.feed(("die",))
    with pytest.raises(
        Exception, match=r"raised 1 times in a row \(.* is 0\), last in execute: ConnectionError: die"
    ):
        tracked.tracked_wait(2)


def test_a_fixed_spout_counts_what_is_completed(start: Start) -> None:
    """J25, B15: acked and failed alike, as Storm's getCompleted; nothing is replayed."""
    spout = FixedTupleSpout([("a",), ("xy",), ("b",)], Fields("word"))
    builder = TopologyBuilder()
    builder.set_spout("fixed", spout, 2)
    builder.set_bolt("picky", Picky(), 2).shuffle_grouping("fixed")
    assert (spout.completed, spout.is_exhausted) == (0, False)
    statistics = wait_until_idle(start(builder.create_topology("fixed")))
    assert (spout.completed, spout.is_exhausted) == (3, True)
    assert spout.source_tuples[1] == FixedTuple(("xy",))
    fixed = statistics.components["fixed"]
    assert (fixed.emitted, fixed.acked, fixed.failed) == (3, 2, 1)


def test_storms_own_example_of_a_completed_topology(complete: Complete) -> None:
    """J25, W10: the topology and the results of Storm's TestingTest, with a mocked source."""
    builder = TopologyBuilder()
    builder.set_spout("1", TestWordSpout(), 3)
    builder.set_bolt("2", TestWordCounter(), 4).fields_grouping("1", Fields("word"))
    builder.set_bolt("3", TestGlobalCount()).global_grouping("1")
    builder.set_bolt("4", TestAggregatesCounter()).global_grouping("2")
    mocked = [("nathan",), ("bob",), ("joey",), ("nathan",)]
    done = complete(builder.create_topology("storms"), {"1": mocked})
    assert multiseteq(done.read_tuples("1"), mocked)
    assert multiseteq(done.read_tuples("2"), [("nathan", 1), ("nathan", 2), ("bob", 1), ("joey", 1)])
    assert done.read_tuples("3") == [(1,), (2,), (3,), (4,)]
    assert done.read_tuples("4") == [(1,), (2,), (3,), (4,)]


class Sides(Spout):
    """Two streams; ends after two tuples on each."""

    def open(self, conf, context, collector):
        self.collector, self.left = collector, 2

    def next_tuple(self):
        if self.left:
            self.left -= 1
            self.collector.emit((self.left,), "left")
            self.collector.emit((self.left, "r"), "right", message_id=self.left)

    def declare_output_fields(self, declarer):
        declarer.declare_stream("left", Fields("n"))
        declarer.declare_stream("right", Fields("n", "side"))


class Tagged(Bolt):
    """Emits what it gets with its task's id, on the stream it came by; acks."""

    def prepare(self, conf, context, collector):
        self.collector, self.task = collector, context.this_task_id

    def execute(self, tup):
        self.collector.emit((self.task, *tup.values[:1]), tup.source_stream, anchors=tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        for stream in ("left", "right"):
            declarer.declare_stream(stream, Fields("task", "n"))


def sided() -> Topology:
    builder = TopologyBuilder()
    for name in ("mocked", "real"):
        builder.set_spout(name, Sides())
    tagged = builder.set_bolt("tagged", Tagged(), 3)
    for name in ("mocked", "real"):
        tagged.shuffle_grouping(name, "left").shuffle_grouping(name, "right")
    return builder.create_topology("sided")


def test_one_spout_is_mocked_on_several_streams_and_the_other_runs(complete: Complete) -> None:
    """J25, A10: the results also by task."""
    done = complete(sided(), {"mocked": [FixedTuple((7,), "left"), FixedTuple((8, "r"), "right")]})
    assert done.read_tuples("mocked", "left") == [(7,)]
    assert done.read_tuples("mocked", "right") == [(8, "r")]
    assert done.read_tuples("real", "left") == [(1,), (0,)]
    assert sorted(n for _, n in done.read_tuples("tagged", "left")) == [0, 1, 7]
    assert sorted(n for _, n in done.read_tuples("tagged", "right")) == [0, 1, 8]
    tasks = {task for task, _ in done.read_tuples("tagged", "left")}
    for task in tasks:
        mine = done.read_tuples("tagged", "left", task=task)
        assert mine and all(by == task for by, _ in mine)
    assert done.statistics.components["real"].acked == 2


def test_each_run_starts_from_nothing(complete: Complete) -> None:
    """J25: nothing is left of the one before."""
    topology = sided()
    first, second = (complete(topology, {"mocked": []}) for _ in range(2))
    assert first.read_tuples("real", "left") == second.read_tuples("real", "left") == [(1,), (0,)]
    assert first.read_tuples("mocked", "left") == []


@pytest.mark.parametrize("acked", [True, False])
def test_a_spout_that_goes_on_is_named_on_every_engine(complete: Complete, acked: bool) -> None:
    """A spout that never ends is named in the error of `complete_topology`, and a spout that ended is not (J25)."""
    builder = TopologyBuilder()
    builder.set_spout("endless", TestWordSpout(reliable=acked))
    builder.set_spout("ends", TestWordSpout(limit=3))
    count = builder.set_bolt("count", TestWordCounter())
    count.shuffle_grouping("endless").shuffle_grouping("ends")
    with pytest.raises(
        TopologyNotCompleteError, match=r"spout 'endless' still emits, \d+ tuples so far"
    ) as caught:
        complete(builder.create_topology("goes-on"), most=500, conf={"topology.max.spout.pending": 100})
    assert "'ends'" not in str(caught.value)


def test_a_tried_tuple_is_pickled_on_every_engine(complete: Complete) -> None:
    """C8: topology.testing.always.try.serialize changes nothing for what can be pickled."""
    conf = {"topology.testing.always.try.serialize": True}
    done = complete(sided(), conf=conf)
    assert done.statistics.total("acked", "spout") == 4
    assert done.statistics.total("errors") == 0


def test_two_topologies_of_one_name_do_not_run(start: Start) -> None:
    """A14, J5: Storm's AlreadyAliveException."""
    builder = TopologyBuilder()
    builder.set_spout("feeder", FeederSpout(Fields("word")))
    topology = builder.create_topology("only-one")
    first = start(topology)
    with pytest.raises(TopologyAlreadyRunningError, match=r"a topology named 'only-one' is already running"):
        start(topology)
    first.stop()
    assert wait_until_idle(start(topology)).batches > 0
