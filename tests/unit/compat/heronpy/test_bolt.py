"""A bolt's tuples, ticks, hooks and metrics."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from stormspark.compat.heronpy import global_metrics
from stormspark.compat.heronpy.components import Bolt, Spout
from stormspark.compat.heronpy.metrics import CountMetric
from stormspark.compat.heronpy.task_hook import ITaskHook
from stormspark.compat.heronpy.topology import TopologyBuilder
from stormspark.compat.heronpy.tuples import HeronTuple
from stormspark.testing import TestWordSpout
from tests.unit.compat.heronpy.rig import run

SEEN: list[Any] = []


class Three(Spout):
    outputs = ("n",)

    def initialize(self, config: dict[str, Any], context: Any) -> None:
        self.todo = [3, 2, 1]

    def next_tuple(self) -> None:
        if self.todo:
            SEEN.append(("tasks", self.emit([self.todo.pop()], tup_id="id", need_task_ids=True)))


class Look(Bolt):
    outputs = ("n",)

    def initialize(self, config: dict[str, Any], context: Any) -> None:
        self.context = context

    def process(self, tup: Any) -> None:
        SEEN.append(tup)
        assert self.emit([tup.values[0]]) is None
        self.ack(tup)

    def process_tick(self, tup: Any) -> None:
        SEEN.append(tup)


def built(bolt: Any = Look, mode: str = "ATLEAST_ONCE", **own: Any) -> TopologyBuilder:
    SEEN.clear()
    builder = TopologyBuilder("topology")
    numbers = builder.add_spout("numbers", Three, 1)
    builder.add_bolt("bolt", bolt, 1, [numbers], config={k.replace("__", "."): v for k, v in own.items()})
    builder.set_config({"topology.reliability.mode": mode})
    return builder


def tuples() -> list[Any]:
    return [one for one in SEEN if isinstance(one, HeronTuple)]


def test_a_tuple() -> None:
    """C21, B22: id, component, stream, task and values, which are a list; an emit gives its tasks where they are asked for."""
    rig = run(built())
    rig.batches(2)
    first, *others = tuples()
    (emitter,) = [task.id for task in rig.workers[0].tasks.values() if task.component.id == "numbers"]
    (target,) = [task.id for task in rig.workers[0].tasks.values() if task.component.id == "bolt"]
    assert (first.component, first.stream, first.task, first.values) == ("numbers", "default", emitter, [1])
    assert len({one.id for one in (first, *others)}) == 3 and isinstance(first.id, str)
    assert first._fields == ("id", "component", "stream", "task", "values", "creation_time", "roots")
    assert not Look.is_tick(first)
    assert ("tasks", [target]) in SEEN


@pytest.mark.parametrize("given", [10, "10"])
def test_ticks(given: Any) -> None:
    """C20, C21, A45: process_tick gets a tick, whose values are None, every topology.tick.tuple.freq.secs."""
    rig = run(built(topology__tick__tuple__freq__secs=given))
    rig.batches(1)
    SEEN.clear()
    for _ in range(31):
        rig.advance(1)
    ticks = tuples()
    assert len(ticks) == 3
    assert (ticks[0].id, ticks[0].component, ticks[0].stream) == ("__tick", "__system", "__tick")
    assert ticks[0].values is None and ticks[0].task is None and Look.is_tick(ticks[0])
    assert rig.errors == []


class SetsItsTicks(Look):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        config["topology.tick.tuple.freq.secs"] = "5"


def test_a_bolt_may_set_its_ticks() -> None:
    """C20, C22: in initialize, whatever the configuration says."""
    rig = run(built(SetsItsTicks, topology__tick__tuple__freq__secs=1))
    rig.batches(1)
    SEEN.clear()
    for _ in range(11):
        rig.advance(1)
    assert len(tuples()) == 2


class AcksTicks(Look):
    def process_tick(self, tup: Any) -> None:
        self.ack(tup)
        self.fail(tup)
        SEEN.append("tick")


def test_a_tick_may_be_acked() -> None:
    """W20: it belongs to no tree."""
    rig = run(built(AcksTicks, topology__tick__tuple__freq__secs=1))
    rig.advance(1.5, 3)
    assert "tick" in SEEN and rig.errors == []


class Careless(Bolt):
    outputs = ("n",)

    def process(self, tup: Any) -> None:
        self.ack("no tuple")
        self.ack(tup)
        self.emit([1], anchors=[tup, "no tuple"])
        SEEN.append("done")


def test_what_a_bolt_does_wrong_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """C20, E14: an ack of what is no tuple is logged; an anchor that was acked is told of, and the emit is untracked."""
    rig = run(built(Careless))
    with caplog.at_level(logging.ERROR):
        rig.batches(2)
    assert SEEN.count("done") == 3
    assert "Only HeronTuple type is supported in ack(), given: 'no tuple'" in caplog.text
    assert any("after its ack or fail" in error and "emit first, then ack" in error for error in rig.errors)


class Undeclared(Bolt):
    def process(self, tup: Any) -> None:
        self.emit(["x"], stream="strange")


def test_a_stream_that_is_not_declared() -> None:
    """B22: RuntimeError with component and stream."""
    rig = run(built(Undeclared))
    rig.batches(2)
    assert any("bolt emitting to stream 'strange' but was not declared" in error for error in rig.errors)


class Logs(Bolt):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        self.log("by default")
        self.log("a warning", "warn")
        self.logger.error("an error")
        with pytest.raises(
            ValueError, match="'loud' is not supported as logging level; the levels are trace"
        ):
            self.log("x", "loud")

    def process(self, tup: Any) -> None: ...


def test_logs(caplog: pytest.LogCaptureFixture) -> None:
    """B21, C20: log and logger write to the task's log."""
    with caplog.at_level(logging.INFO):
        run(built(Logs)).batches(1)
    logged = [(r.name, r.levelname, r.message) for r in caplog.records if r.name == "stormspark.task.bolt"]
    assert logged == [
        ("stormspark.task.bolt", "INFO", "by default"),
        ("stormspark.task.bolt", "WARNING", "a warning"),
        ("stormspark.task.bolt", "ERROR", "an error"),
    ]


class Asks(Bolt):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        SEEN.append(context)

    def process(self, tup: Any) -> None: ...


def test_a_context() -> None:
    """A40: who am I, and what is connected to what."""
    run(built(Asks)).batches(1)
    (context,) = [one for one in SEEN if hasattr(one, "get_task_id")]
    assert context.get_component_id() == "bolt"
    assert [context.get_task_id()] == context.get_component_tasks("bolt")
    assert context.get_component_tasks("nobody") == []
    assert context.get_topology_name() == "topology"
    ((stream, number),) = context.get_this_sources().items()
    assert (stream.id, stream.component_name, number) == ("default", "numbers", 1)
    assert context.get_sources("numbers") == {} and context.get_sources("nobody") is None


class Hook(ITaskHook):
    def prepare(self, conf: dict[str, Any], context: Any) -> None:
        SEEN.append(("prepare", context.get_component_id()))

    def bolt_execute(self, bolt_execute_info: Any) -> None:
        SEEN.append(("execute", bolt_execute_info.heron_tuple.values, bolt_execute_info.executing_task_id))

    def bolt_ack(self, bolt_ack_info: Any) -> None:
        SEEN.append(("ack", bolt_ack_info.heron_tuple.values))

    def emit(self, emit_info: Any) -> None:
        SEEN.append(("emit", emit_info.values, emit_info.stream_id))

    def clean_up(self) -> None:
        SEEN.append("clean_up")


class WithHook(Look):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        hook: Any = Hook  # heronpy's classes are no ABCs: what is not there is not called for
        context.add_task_hook(hook())
        with pytest.raises(TypeError, match="must be an ITaskHook"):
            context.add_task_hook("no hook")
        SEEN.append("initialized")


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE"])
def test_a_hook(mode: str) -> None:
    """J21: prepared after initialize; hears of emits, acks and executes, of acks also where nothing is tracked; not of ticks."""
    rig = run(built(WithHook, mode, topology__tick__tuple__freq__secs=1))
    rig.batches(2)
    (task,) = [task.id for task in rig.workers[0].tasks.values() if task.component.id == "bolt"]
    told = [one for one in SEEN if not isinstance(one, HeronTuple) and one[0] != "tasks"]
    assert told[:2] == ["initialized", ("prepare", "bolt")]
    assert told[2:5] == [("emit", [1], "default"), ("ack", [1]), ("execute", [1], task)]
    rig.advance(1.5)
    rig.cluster.close()
    assert SEEN[-1] == "clean_up" and len([one for one in SEEN if one[0] == "execute"]) == 3


class SpoutHook(ITaskHook):
    def spout_ack(self, spout_ack_info: Any) -> None:
        SEEN.append(spout_ack_info)


def test_a_hook_of_a_spout() -> None:
    """J21, B23: hears of acks that come at once too."""
    builder = built(mode="ATMOST_ONCE")
    builder.set_config({"topology.auto.task.hooks": [f"{__name__}.SpoutHook"]})
    run(builder).batches(1)
    acks = [one for one in SEEN if hasattr(one, "complete_latency_ms")]
    assert [one.message_id for one in acks] == ["id"] * 3


class Measures(Bolt):
    def initialize(self, config: dict[str, Any], context: Any) -> None:
        self.seen = CountMetric()
        context.register_metric("seen", self.seen, 10)
        context.register_metric("duck", Duck(), 10)

    def process(self, tup: Any) -> None:
        self.seen.incr(2)
        global_metrics.safe_incr("tuples")
        global_metrics.incr("more", 5)


class Duck:
    def get_value_and_reset(self) -> int:
        return 7


def test_metrics() -> None:
    """J18, J19: read once a bucket; the counters of all code of the process are told once, under some task."""
    rig = run(built(Measures, heron__metrics__export__interval__sec=20))
    rig.batches(2)
    points: list[Any] = []
    for _ in range(5):
        rig.clock.advance(10)
        for report in rig.cluster.run_batch():
            points += report.data_points
    values = [(point.name, point.value) for point in points if point.value]
    assert values.count(("seen", 6)) == 1 and values.count(("duck", 7)) == 5
    assert [value for name, value in values if name == "__auto__"] == [{"tuples": 3, "more": 15}]


def test_tracked_tuples_of_other_spouts_are_acked() -> None:
    """W23: stormspark's own spouts track what they emit, whatever Heron's mode is; their tuples don't time out."""
    SEEN.clear()
    builder = TopologyBuilder("mixed")
    words = builder.add_spout("words", TestWordSpout(limit=100), 1)
    builder.add_bolt("look", Look, 1, [words])
    rig = run(builder)
    rig.batches(3)
    (spout,) = [task for task in rig.workers[0].tasks.values() if task.component.id == "words"]
    assert spout.read_counters().failed == 0 and spout.account.pending == 0  # type: ignore[attr-defined]
    assert tuples()
