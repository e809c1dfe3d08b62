"""J25, W10: running a topology to its end on the local engine. What both engines do is in tests/conformance."""

from __future__ import annotations

import itertools
import threading
from typing import Any, ClassVar

import pytest

from stormspark import Bolt, Fields, Spout, TaskHook, TopologyBuilder
from stormspark.errors import EmitError, InvalidTopologyError, TopologyNotCompleteError
from stormspark.testing import (
    FixedTuple,
    FixedTupleSpout,
    IdentityBolt,
    TestPlannerBolt,
    TestPlannerSpout,
    TestWordCounter,
    TestWordSpout,
    complete_topology,
)


def words(spout: Spout, bolt: Any = None, tasks: int = 1) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("words", spout, tasks)
    builder.set_bolt("count", bolt or TestWordCounter()).shuffle_grouping("words")
    return builder.create_topology("words")


class Flood(Spout):
    """Emits for ever, in one call of next_tuple or in many."""

    def __init__(self, in_one_call: bool) -> None:
        self.in_one_call = in_one_call

    def open(self, conf, context, collector):
        self.collector = collector

    def next_tuple(self):
        for number in itertools.count():
            self.collector.emit((number,))
            if not self.in_one_call:
                break

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


@pytest.mark.parametrize("in_one_call", [False, True])
def test_a_spout_that_goes_on_is_named(in_one_call):
    """J25, B1: whether its next_tuple returns or not."""
    with pytest.raises(
        TopologyNotCompleteError,
        match=r"topology 'words' is not complete, a task of '(words|count)' has emitted .* spout 'words' still emits, "
        r"\d+ tuples so far: give it an end, or replace it with mocked_sources",
    ):
        complete_topology(words(Flood(in_one_call)), most=5000)


@pytest.mark.slow
def test_a_spout_that_goes_on_slowly_is_named_when_time_is_up():
    """J25, E11: its tuples are never acked, so it replays them for ever."""
    with pytest.raises(TimeoutError, match=r"after 0.3 s: spout 'words' (still emits|waits for the end of)"):
        complete_topology(words(TestWordSpout(limit=1), TestPlannerBolt()), timeout=0.3)


def test_what_is_never_acked_times_out_as_in_storm():
    """E10, J25: simulated time passes while nothing else happens."""
    done = complete_topology(
        words(FixedTupleSpout([("a",), ("b",)], Fields("word")), TestPlannerBolt()),
        conf={"topology.message.timeout.secs": 60},
    )
    spout = done.statistics.components["words"]
    assert (spout.emitted, spout.timed_out, spout.pending) == (2, 2, 0)


def test_trees_that_never_end_are_reported():
    """J25, E10: without timeouts nobody ends them."""
    for timeout in (0.3, 3, 30):  # time is up after the first batch where that takes long
        with pytest.raises(TopologyNotCompleteError) as told:
            complete_topology(
                words(FixedTupleSpout([("a",)], Fields("word")), TestPlannerBolt()),
                conf={"topology.enable.message.timeouts": False},
                timeout=timeout,
            )
        if "waits" in str(told.value):
            break
    assert "spout 'words' waits for the end of 1 trees: check that every bolt acks" in str(told.value)


class Ticking(Bolt):
    """Emits and acks what it holds when a tick comes."""

    def prepare(self, conf, context, collector):
        self.collector, self.held = collector, []

    def execute(self, tup):
        if not tup.is_tick:
            self.held.append(tup)
            return
        for held in self.held:
            self.collector.emit(held.values, anchors=held)
            self.collector.ack(held)
        self.held.clear()

    def get_component_configuration(self):
        return {"topology.tick.tuple.freq.secs": 5}

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


def test_complete_topology_waits_for_ticks():
    """`complete_topology` goes on until ticks have released the tuples that wait for them (C9, J25)."""
    done = complete_topology(words(FixedTupleSpout([("a",), ("b",)], Fields("word")), Ticking()))
    assert done.read_tuples("count") == [("a",), ("b",)]
    assert done.statistics.components["words"].acked == 2


LOCK = threading.Lock()


class Locking(TestWordCounter):
    """Emits what no pickle takes."""

    def execute(self, tup, collector):
        collector.emit((tup[0], LOCK))


def test_values_are_recorded_as_they_are():
    """J25: no copy is made where all is in one process."""
    done = complete_topology(words(FixedTupleSpout([("a",)], Fields("word")), Locking()))
    assert done.read_tuples("count") == [("a", LOCK)]


class Heard(TaskHook):
    """Tells the test what it hears; the test's module is that of the local engine's tasks."""

    heard: ClassVar[list[Any]] = []

    def emit(self, info):
        self.heard.append((info.stream, info.values))


@pytest.mark.parametrize("of_component", [False, True])
def test_the_topologys_own_hooks_go_on(of_component):
    """Task hooks from the topology's or a component's configuration still run (J21, J25)."""
    Heard.heard.clear()
    hooks = {"topology.auto.task.hooks": [f"{__name__}:Heard"]}
    builder = TopologyBuilder()
    spout = builder.set_spout("words", FixedTupleSpout([("a",)], Fields("word")))
    if of_component:
        spout.add_configurations(hooks)
    done = complete_topology(builder.create_topology("hooked", {} if of_component else hooks))
    assert done.read_tuples("words") == [("a",)]
    assert Heard.heard == [("default", ("a",))]


def test_a_mock_must_fit_its_spout():
    """A mocked source must name a spout, and its tuples must fit the spout's streams (J25, A12, B9)."""
    topology = words(TestWordSpout())
    with pytest.raises(
        InvalidTopologyError, match=r"mocked_sources names 'count', which is not a spout .* are \['words'\]"
    ):
        complete_topology(topology, {"count": []})
    with pytest.raises(
        EmitError,
        match=r"mocked_sources of 'words': stream 'default' has 1 fields \(word\), got \('a', 'b'\)",
    ):
        complete_topology(topology, {"words": [("a", "b")]})
    with pytest.raises(EmitError, match="is for an unknown stream; the spout declares 'default'"):
        complete_topology(topology, {"words": [FixedTuple(("a",), "other")]})
    with pytest.raises(ValueError, match="engine must be 'local' or 'spark', got 'storm'"):
        complete_topology(topology, engine="storm")


def test_a_stream_that_there_is_not_is_named():
    """Reading an unknown stream raises an error that lists the streams (J25)."""
    done = complete_topology(words(TestWordSpout(limit=1)))
    with pytest.raises(
        KeyError, match=r"no stream 'x' of component 'count'; there are .*\('count', 'default'\)"
    ):
        done.read_tuples("count", "x")


def test_components_that_are_for_planning_do_nothing():
    """J25: TestPlannerSpout, TestPlannerBolt, IdentityBolt."""
    builder = TopologyBuilder()
    builder.set_spout("planner", TestPlannerSpout(distributed=False), 3)
    builder.set_bolt("same", IdentityBolt(Fields("a", "b"))).shuffle_grouping("planner")
    topology = builder.create_topology("planned")
    assert complete_topology(topology).statistics.components["planner"].tasks == 1
    done = complete_topology(topology, {"planner": [(1, 2)]})
    assert done.read_tuples("same") == [(1, 2)]
