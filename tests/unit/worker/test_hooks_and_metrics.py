"""Task hooks, users' metrics, what the context tells, errors that are reported."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from stormspark import BasicBolt, FailedException, Fields, ReportedFailedException, TaskHook, TopologyBuilder
from stormspark.driver.tally import Tally
from stormspark.errors import ComponentError
from stormspark.grouping import FieldsGrouping, ShuffleGrouping
from stormspark.metrics import (
    AssignableMetric,
    CombinedMetric,
    CountMetric,
    MeanReducer,
    MultiCountMetric,
    MultiReducedMetric,
    ReducedMetric,
    StateMetric,
)
from tests.unit.worker.components import Call, Collect, Script, fails_of
from tests.unit.worker.rig import Rig, two


class Notes(TaskHook):
    """Notes everything, for all instances together."""

    seen: list[Any] = []  # noqa: RUF012 - the test clears it

    def prepare(self, conf: Any, context: Any) -> None:
        self.me = context.this_component_id
        self.seen.append((self.me, "prepare"))

    def cleanup(self) -> None:
        self.seen.append((self.me, "cleanup"))

    def emit(self, info: Any) -> None:
        self.seen.append((self.me, "emit", info.values, info.stream, len(info.out_tasks)))

    def spout_ack(self, info: Any) -> None:
        self.seen.append((self.me, "spout_ack", info.message_id, info.complete_latency_ms >= 0))

    def spout_fail(self, info: Any) -> None:
        self.seen.append((self.me, "spout_fail", info.message_id, info.fail_latency_ms >= 0))

    def bolt_execute(self, info: Any) -> None:
        self.seen.append((self.me, "execute", *info.tuple))

    def bolt_ack(self, info: Any) -> None:
        self.seen.append((self.me, "ack", *info.tuple))

    def bolt_fail(self, info: Any) -> None:
        self.seen.append((self.me, "fail", *info.tuple))


class Raises(Notes):
    def bolt_execute(self, info: Any) -> None:
        raise ValueError("hook")


class HookedScript(Script):
    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        context.add_task_hook(Notes())
        assert len(context.hooks) == 1


class HookedBolt(Call):
    hook: Any = Notes

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        context.add_task_hook(self.hook())


class HookedBasic(BasicBolt):
    def prepare(self, conf: Any, context: Any) -> None:
        context.add_task_hook(Notes())

    def execute(self, tup: Any, collector: Any) -> None:
        if tup[0] == 2:
            raise FailedException("two")


@pytest.fixture(autouse=True)
def _fresh_notes() -> None:
    Notes.seen.clear()


def relay(bolt: Any, tup: Any) -> None:
    bolt.collector.emit((tup[0],), anchors=[tup])
    bolt.collector.ack(tup)


@pytest.mark.parametrize("workers", [1, 3])
def test_hooks_hear_of_all_that_their_task_does(workers: int) -> None:
    """J21, A29: a spout's, a bolt's and a basic bolt's."""
    builder = TopologyBuilder()
    builder.set_spout("a", HookedScript([(1,), (2,)]))
    builder.set_bolt("b", HookedBolt(relay)).shuffle_grouping("a")
    builder.set_bolt("c", HookedBasic()).shuffle_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(3)
    rig.cluster.close()
    by_component = {name: [note[1:] for note in Notes.seen if note[0] == name] for name in "abc"}
    assert by_component["a"] == [
        ("prepare",),
        ("emit", (1,), "default", 1),
        ("emit", (2,), "default", 1),
        ("spout_ack", 0, True),
        ("spout_fail", 1, True),
        ("cleanup",),
    ] or by_component["a"][3:5] == [("spout_fail", 1, True), ("spout_ack", 0, True)]
    assert by_component["b"] == [
        ("prepare",),
        ("emit", (1,), "default", 1),
        ("ack", 1),
        ("execute", 1),
        ("emit", (2,), "default", 1),
        ("ack", 2),
        ("execute", 2),
        ("cleanup",),
    ]
    assert by_component["c"] == [("prepare",), ("execute", 1), ("ack", 1), ("fail", 2), ("cleanup",)]


def test_auto_hooks_are_made_for_every_task() -> None:
    """J21: topology.auto.task.hooks, by module:Class."""
    conf = {"topology.auto.task.hooks": [f"{__name__}:Notes"]}
    builder = two(Call(relay), [(1,)])
    rig = Rig(builder, 1, **conf)
    rig.batches(2)
    assert {note[:2] for note in Notes.seen} >= {
        ("a", "prepare"),
        ("b", "prepare"),
        ("a", "emit"),
        ("b", "ack"),
    }


@pytest.mark.parametrize("name", ["no.such:Hook", "tests.unit.worker.components:Collect", "nonsense"])
def test_an_auto_hook_that_is_none_stops_the_start(name: str) -> None:
    """J21: the error names the setting and what is wrong with it."""
    with pytest.raises(ComponentError, match=r"topology\.auto\.task\.hooks names"):
        Rig(two(Collect(), []), 1, **{"topology.auto.task.hooks": [name]})


def test_what_a_hook_raises_counts_as_raised_by_the_component() -> None:
    """J21, W22: the task restarts; the tuple, executed already, is not failed."""

    class Broken(HookedBolt):
        hook = Raises

    rig = Rig(two(Broken(lambda bolt, tup: bolt.collector.ack(tup)), [(1,)]), 1)
    rig.batches(2)
    (task,), (spout,) = rig.tasks("b"), rig.users("a")
    assert (task.counters.restarts, spout.heard) == (1, [("ack", 0)])
    assert "ValueError: hook" in rig.errors[0]


def test_hooks_are_added_in_open_or_prepare_only() -> None:
    """J21: later is an error; so is what is no hook."""

    def late(bolt: Any, tup: Any) -> None:
        bolt.context.add_task_hook(Notes())

    rig = Rig(two(Call(late), [(1,)]), 1)
    rig.batches(1)
    assert "is added too late: add it in open or prepare" in rig.errors[0]

    class Wrong(HookedBolt):
        hook = dict

    with pytest.raises(ComponentError, match="a hook must be a TaskHook"):
        Rig(two(Wrong(relay), []), 1)


def test_debug_logs_every_emit_ack_and_fail(caplog: pytest.LogCaptureFixture) -> None:
    """A9, J20: topology.debug, of one component alone."""
    builder = two(Call(relay), [(1,), (2,)])
    builder.set_bolt("c", HookedBasic()).shuffle_grouping("b")
    builder._declarers["b"].set_debug(True)
    rig = Rig(builder, 1)
    with caplog.at_level(logging.INFO):
        rig.batches(2)
    lines = [record.getMessage() for record in caplog.records if record.name == "stormspark.task.b"]
    assert [line.partition(" ")[0] for line in lines] == ["b[0]"] * 4
    assert "emits on default to" in lines[0] and "acks Tuple(a" in lines[1]
    others = [record for record in caplog.records if record.name == "stormspark.task.a"]
    assert not [record for record in others if record.levelno == logging.INFO]


class Measured(Call):
    """Registers one of each kind of metric."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        register = context.register_metric
        self.count = register("count", CountMetric(), 10)
        self.multi = register("multi", MultiCountMetric(), 10)
        self.last = register("last", AssignableMetric(), 10)
        self.largest = register("largest", CombinedMetric(max, 0), 10)
        self.mean = register("mean", ReducedMetric(MeanReducer()), 10)
        self.means = register("means", MultiReducedMetric(MeanReducer), 10)
        register("state", StateMetric(lambda: len(self.kept)), 20)
        self.counter, self.timer = context.register_counter("counter"), context.register_timer("timer")
        self.meter, self.sizes = context.register_meter("meter"), context.register_histogram("sizes")
        context.register_gauge("gauge", lambda: "now")


def measure(bolt: Any, tup: Any) -> None:
    number = tup[0]
    bolt.kept.append(number)
    bolt.count.incr_by(number)
    bolt.multi.scope("odd" if number % 2 else "even").incr()
    bolt.last.set_value(number)
    for metric in (bolt.largest, bolt.mean, bolt.means.scope("x"), bolt.sizes):
        metric.update(number)
    bolt.counter.inc(number)
    bolt.timer.update(0.001)
    bolt.meter.mark()
    bolt.collector.ack(tup)


def test_metrics_are_read_once_a_bucket_and_reach_the_statistics() -> None:
    """J18, A29: each kind, reset or not; the newest reading of each task; also in the JSON summary."""
    builder = two(Measured(measure), [(1,), (2,), (6,)])
    rig = Rig(builder, 2)
    tally = Tally(rig.cluster.plan, "local")

    def metrics() -> dict[str, Any]:
        tally.add_batch(rig.cluster.run_batch(), 0.0)
        found = tally.statistics().components["b"].metrics
        (task,) = rig.tasks("b")
        return {name: points[task.id].value for name, points in found.items()}

    metrics()
    assert metrics() == {}
    rig.clock.advance(10)
    assert metrics() == {
        "count": 9,
        "multi": {"odd": 1, "even": 2},
        "last": 6,
        "largest": 6,
        "mean": 3.0,
        "means": {"x": 3.0},
    }
    rig.clock.advance(10)
    again = metrics()
    assert (again["count"], again["largest"], again["mean"], again["state"]) == (0, 0, 3.0, 3)  # no new mean
    rig.clock.advance(40)
    late = metrics()
    assert (late["counter"], late["gauge"], late["meter"]) == (9, "now", {"count": 3, "mean_rate": 3 / 60})
    assert late["timer"]["count"] == 3 and late["sizes"]["mean"] == 3.0
    in_json = tally.statistics().components["b"].as_json()["metrics"]
    assert list(in_json["gauge"].values()) == ["now"]


def test_a_metric_is_registered_once_and_in_time() -> None:
    """J18: a second of that name, and one after prepare, are errors; what can't be a metric is refused."""

    class Twice(Call):
        def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            super().prepare(conf, context, collector)
            context.register_metric("n", self.first, 10)
            context.register_metric("n", CountMetric(), 10)

        first: Any = CountMetric()

    with pytest.raises(ComponentError, match="there is a metric 'n' already"):
        Rig(two(Twice(relay), []), 1)

    class Wrong(Twice):
        first = 3

    with pytest.raises(ComponentError, match="metric 'n' must be a Metric"):
        Rig(two(Wrong(relay), []), 1)
    rig = Rig(two(Call(lambda bolt, tup: bolt.context.register_metric("n", CountMetric())), [(1,)]), 1)
    rig.batches(1)
    assert "registered too late: register it in open or prepare" in rig.errors[0]


def test_a_restarted_task_may_register_its_metrics_again() -> None:
    """A task that is restarted may register its metrics again (J18, W22)."""

    def once(bolt: Any, tup: Any) -> None:
        if tup[0] == 1:
            raise KeyError("one")
        measure(bolt, tup)

    rig = Rig(two(Measured(once), [(1,), (2,)]), 1)
    rig.batches(2)
    (task,) = rig.tasks("b")
    assert (task.counters.restarts, task.fatal) == (1, None)


def test_the_context_knows_the_graph() -> None:
    """A26, A27: streams, fields, sources and targets with their groupings, tasks."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([], fields=("x", "y")))
    builder.set_bolt("b", Call(relay, {"default": ("v",), "side": ("p", "q")}), 2).fields_grouping(
        "a", Fields("x")
    )
    builder.set_bolt("c", Collect()).shuffle_grouping("b").shuffle_grouping("b", "side")
    rig = Rig(builder, 2, **{"topology.acker.executors": 0})
    context = rig.users("b")[0].context
    assert context.component_ids == ("a", "b", "c")
    assert (context.this_component_id, context.this_task_index) == ("b", 0)
    assert dict(context.task_to_component) == {1: "a", 2: "b", 3: "b", 4: "c"}
    assert context.component_of(4) == "c" and context.component_tasks("b") == [2, 3]
    assert context.this_streams == context.component_streams("b") == ("default", "side")
    assert context.output_fields("a") == Fields("x", "y") and context.output_fields(stream="side") == Fields(
        "p", "q"
    )
    assert context.this_input_fields == {("a", "default"): Fields("x", "y")}
    assert context.this_sources == (("a", "default"),)
    assert context.sources("b") == {("a", "default"): FieldsGrouping("x")}
    assert context.targets("b") == {"default": {"c": ShuffleGrouping()}, "side": {"c": ShuffleGrouping()}}
    assert context.this_targets == {"default": ("c",), "side": ("c",)}
    assert context.storm_id.startswith("rig-") and context.topology_name == "rig"
    assert set(context.this_worker_tasks) | set(rig.users("b")[1].context.this_worker_tasks) == {1, 2, 3, 4}
    assert context.max_topology_message_timeout == 30
    for ask in (
        context.sources,
        context.targets,
        context.component_tasks,
        context.component_streams,
        context.output_fields,
    ):
        with pytest.raises(KeyError, match=r"no component 'nobody'; there are 'a', 'b', 'c'"):
            ask("nobody")
    with pytest.raises(KeyError, match=r"no stream 'other'; there are 'default', 'side'"):
        context.output_fields(stream="other")


def test_data_is_shared_by_task_executor_and_worker() -> None:
    """A28, A17: task data is the task's, executor data that of its executor's tasks; one thread pool a worker."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([]))
    builder.set_bolt("b", Call(relay), parallelism=2).set_num_tasks(4).shuffle_grouping("a")
    rig = Rig(builder, 1, **{"topology.worker.shared.thread.pool.size": 2})
    contexts = [bolt.context for bolt in rig.users("b")]
    contexts[0].set_task_data("t", 1)
    contexts[0].set_executor_data("e", 2)
    assert [context.get_task_data("t") for context in contexts] == [1, None, None, None]
    assert [context.get_executor_data("e") for context in contexts] == [2, 2, None, None]
    pool = contexts[0].shared_executor
    assert all(context.shared_executor is pool for context in contexts)
    assert pool.submit(lambda: 42).result(10) == 42
    assert contexts[0].get_resource("nothing") is None


def test_reported_errors_are_counted_but_only_a_few_are_logged() -> None:
    """C4: 5 in 10 s of a task by default; neither fails the tuple nor restarts the task."""

    def report(bolt: Any, tup: Any) -> None:
        bolt.collector.report_error(f"bad {tup[0]}")
        bolt.collector.ack(tup)

    rig = Rig(two(Call(report), [(n,) for n in range(12)]), 1)
    rig.batches(1)
    (task,), (spout,) = rig.tasks("b"), rig.users("a")
    assert (task.counters.errors, task.counters.restarts, len(spout.heard)) == (12, 0, 12)
    assert [text.splitlines()[-1] for text in rig.errors] == [f"bad {n}" for n in range(5)]
    assert "more than 5 in 10 s are counted only" in rig.errors[4].splitlines()[0]
    rig.clock.advance(10)
    rig.users("b")[0].collector.report_error("later")
    rig.batches(1)
    assert rig.errors[5:] == ["later"]


def test_an_error_with_a_huge_message_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    """The driver keeps the last ten of each component: with messages of 100 MB that would be a gigabyte."""

    def report(bolt: Any, tup: Any) -> None:
        bolt.collector.report_error("begins " + tup[0] * 1_000_000 + " ends")
        bolt.collector.ack(tup)

    rig = Rig(two(Call(report), [("x",), ("x\n",)]), 1)
    rig.batches(1)
    assert [len(text) < 101_000 for text in rig.errors] == [True, True]
    assert all(text.startswith("begins x") and text.endswith(" ends") for text in rig.errors)
    assert rig.errors[0].count("characters are left out") == 1
    assert all(len(record.getMessage()) < 101_000 for record in caplog.records)


def test_a_reported_failure_fails_the_tuple_and_reports_it() -> None:
    """C5: FailedException fails, ReportedFailedException also reports; none restarts."""

    class Fails(BasicBolt):
        def execute(self, tup: Any, collector: Any) -> None:
            raise (FailedException, ReportedFailedException)[tup[0]]("no")

    rig = Rig(two(Fails(), [(0,), (1,)]), 1)
    rig.batches(1)
    (task,), (spout,) = rig.tasks("b"), rig.users("a")
    assert (task.counters.errors, task.counters.restarts) == (1, 0)
    assert len(spout.heard) == len(fails_of(spout)) == 2
