"""The worker core, driven batch by batch in this process with one to three workers."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.worker.step import Step
from tests.unit.worker.components import Call, Collect, Script, fails_of
from tests.unit.worker.rig import Rig, two


@pytest.mark.parametrize("workers", [1, 2])
def test_emit_says_where_it_goes_and_the_context_knows_the_topology(workers: int) -> None:
    """`emit` returns the receiving tasks, and the context has the ids of components and tasks (B5, A26, A27)."""

    def execute(bolt: Any, tup: Any) -> None:
        tasks = bolt.collector.emit((tup["value"],), anchors=[tup])
        bolt.kept.append(
            (tasks, bolt.context.component_tasks("c"), bolt.context.this_component_id, tup.source_component)
        )
        bolt.collector.ack(tup)

    builder = two(Call(execute), [(1,), (2,)])
    builder.set_bolt("c", Collect(), 2).shuffle_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(3)
    (bolt,) = rig.users("b")
    assert sorted(tasks for tasks, *_ in bolt.kept) == [[task] for task in bolt.kept[0][1]]
    assert {kept[2:] for kept in bolt.kept} == {("b", "a")}
    (spout,) = rig.users("a")
    assert sorted(spout.heard) == [("ack", 0), ("ack", 1)]


@pytest.mark.parametrize("workers", [1, 2])
def test_direct_streams_go_to_the_named_task(workers: int) -> None:
    """`emit_direct` sends to the named task, on the same worker or another one (D11, B9)."""

    def execute(bolt: Any, tup: Any) -> None:
        target = bolt.context.component_tasks("c")[tup["value"] % 3]
        bolt.collector.emit_direct(target, (tup["value"],), anchors=[tup])
        bolt.collector.ack(tup)

    builder = two(Call(execute, direct=True), [(n,) for n in range(9)])
    builder.set_bolt("c", Collect(), 3).direct_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(3)
    assert [[n for _, n in bolt.seen] for bolt in rig.users("c")] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert len(rig.users("a")[0].heard) == 9


def test_a_plain_emit_on_a_direct_stream_fails_with_what_to_do() -> None:
    """A plain emit on a direct stream fails the tuple, and the reason says what to use (B9)."""

    def execute(bolt: Any, tup: Any) -> None:
        bolt.collector.emit((1,), anchors=[tup])

    builder = two(Call(execute, direct=True), [(1,)])
    builder.set_bolt("c", Collect()).direct_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(2)
    ((_, _, verdict),) = rig.users("a")[0].heard
    assert (
        "Cannot do regular emit to direct stream 'default' of 'b'" in verdict and "use emit_direct" in verdict
    )


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (
            lambda c, t: c.emit((1, 2), anchors=[t]),
            "wrong number of fields: expected 1 (value), got 2: (1, 2)",
        ),
        (lambda c, t: c.emit("text", anchors=[t]), "did you mean emit(('text',))?"),
        (
            lambda c, t: c.emit((1,), stream="other", anchors=[t]),
            "Unknown stream ID 'other'; it declares 'default'",
        ),
        (lambda c, t: (c.ack(t), c.emit((1,), anchors=[t])), "after its ack or fail"),
    ],
)
def test_wrong_emits_raise_in_the_bolt_with_component_and_task(emit: Any, message: str) -> None:
    def execute(bolt: Any, tup: Any) -> None:
        emit(bolt.collector, tup)

    builder = two(Call(execute), [(1,)])
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 1)
    (report,) = rig.cluster.run_batch()
    (error,) = report.errors
    assert (error.component, error.task) == ("b", rig.tasks("b")[0].id)
    assert message in error.text and "component 'b', task" in error.text


def test_a_file_that_is_not_found_by_a_relative_path_has_a_hint() -> None:
    rig = Rig(two(Call(lambda bolt, tup: Path("no/words.txt").read_text()), [(1,)]), 1)
    (report,) = rig.cluster.run_batch()
    assert f"relative paths start in {os.getcwd()}; call it in the project's folder" in report.errors[0].text


@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_ack_is_reported_and_changes_nothing(workers: int) -> None:
    """E14, on purpose better than Storm's tree that never ends."""

    def execute(bolt: Any, tup: Any) -> None:
        bolt.collector.emit((tup["value"],), anchors=[tup])
        bolt.collector.ack(tup)
        bolt.collector.ack(tup)
        bolt.collector.fail(tup)

    builder = two(Call(execute), [(1,)])
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(3)
    assert rig.users("a")[0].heard == [("ack", 0)]
    assert rig.tasks("b")[0].counters.errors == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bolt_may_hold_tuples_and_each_keeps_its_own_values(workers: int) -> None:
    """C1: the tuple object is used again only when nobody has kept it."""

    def execute(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)
        if len(bolt.kept) == 5:
            for kept in reversed(bolt.kept):
                bolt.collector.emit(kept.values, anchors=kept)
                bolt.collector.ack(kept)

    builder = two(Call(execute), [(n,) for n in range(5)])
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(3)
    assert [n for _, n in rig.users("c")[0].seen] == [4, 3, 2, 1, 0]
    assert sorted(rig.users("a")[0].heard) == [("ack", n) for n in range(5)]


def test_what_a_restarted_task_held_fails_at_once() -> None:
    def execute(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)
        if tup["value"] == 2:
            raise ZeroDivisionError("two")

    rig = Rig(two(Call(execute), [(0,), (1,), (2,)]), 1)
    rig.batches(2)
    reasons = {fail.message: fail.reason for fail in fails_of(rig.users("a")[0])}
    assert reasons[2].endswith("ZeroDivisionError: two")
    assert all("the task that held it was restarted" in reasons[message] for message in (0, 1))
    assert rig.users("b")[0].kept == []


def test_values_that_cannot_be_pickled_fail_their_tuple_where_they_would_leave_and_no_other() -> None:
    """A value that can't be pickled fails its own tuple when it would leave the worker (C8)."""
    builder = two(Call(unpicklable), [(1,), (2,), (3,)])
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 3)
    rig.batches(3)
    assert sorted(n for _, n in rig.users("c")[0].seen) == [1, 3]
    (fail,) = fails_of(rig.users("a")[0])
    assert fail.message == 1
    assert "field 0 (lock) of a tuple on stream 'default' of 'b' can't be pickled" in fail.reason


def unpicklable(bolt: Any, tup: Any) -> None:
    value = threading.Lock() if tup["value"] == 2 else tup["value"]
    bolt.collector.emit((value,), anchors=[tup])
    bolt.collector.ack(tup)


@pytest.mark.parametrize("workers", [2, 3])
def test_order_is_kept_over_streams_of_one_sender(workers: int) -> None:
    """E31: also between different streams of one task."""

    def execute(bolt: Any, tup: Any) -> None:
        stream = "odd" if tup["value"] % 2 else "even"
        bolt.collector.emit((tup["value"],), stream=stream, anchors=[tup])
        bolt.collector.ack(tup)

    builder = two(Call(execute, {"odd": ("value",), "even": ("value",)}), [(n,) for n in range(500)])
    builder.set_bolt("c", Collect()).global_grouping("b", stream="odd").global_grouping("b", stream="even")
    rig = Rig(builder, workers)
    rig.batches(4)
    assert [n for _, n in rig.users("c")[0].seen] == list(range(500))


def test_a_lost_attempt_fails_what_was_under_way_and_keeps_what_bolts_hold() -> None:
    """Section 2 of the design: survivors keep their memory."""

    def hold(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup)

    builder = TopologyBuilder()
    builder.set_spout("a", Script([(n,) for n in range(4)]))
    builder.set_bolt("b", Call(hold)).local_or_shuffle_grouping("a")
    builder.set_bolt("far", Call(hold)).global_grouping("a")
    rig = Rig(builder, 2)
    (a,), (b,), (far,) = rig.tasks("a"), rig.tasks("b"), rig.tasks("far")
    worker = next(w for w in rig.workers if a.id in w.tasks)
    assert far.id in worker.tasks and b.id not in worker.tasks
    worker.run(Step(0, 0, 0), [])  # its frames get lost: the other worker dies
    worker.begin_attempt("worker 1 was lost")
    worker.run(Step(0, 1, 0), [])
    assert [(h[0], h[2]) for h in a.spout.heard] == [("fail", "worker lost: worker 1 was lost")] * 4
    assert a.counters.worker_lost == 4
    assert [tup["value"] for tup in far.bolt.kept] == [0, 1, 2, 3], "it lives beside the spout"
    worker.validate()


def test_a_spout_that_raises_is_opened_again_and_forgets_its_trees() -> None:
    """A spout that raises is opened anew, and the new spout hears of its own messages only (B10, E35)."""

    rig = Rig(two(Collect(), [(0,), (1,), (2,)]), 2)
    (task,) = rig.tasks("a")
    first, calls = task.spout, iter([None, OSError("gone")])

    def next_tuple() -> None:
        Script.next_tuple(first)
        if (error := next(calls)) is not None:
            raise error

    first.next_tuple = next_tuple
    rig.batches(3)
    assert task.spout is not first and first.heard == []
    assert sorted(task.spout.heard) == [("ack", n) for n in range(3)]
    assert (task.counters.restarts, task.counters.emitted, task.account.pending) == (1, 5, 0)


def test_a_spout_that_always_raises_stops_the_topology() -> None:
    """A spout that raises too often in a row stops the topology, with the count and the last error (W22)."""

    class Raises(Script):
        def next_tuple(self) -> None:
            super().next_tuple()
            raise OSError("gone")

    rig = Rig(two(Collect(), Raises([(n,) for n in range(50)])), 1)
    for _ in range(20):
        (report,) = rig.cluster.run_batch()
    assert report.fatal is not None
    assert (
        "spout 'a', task" in report.fatal.text
        and "raised 11 times in a row (stormspark.task.max.restarts.in.row is 10), last in next_tuple: OSError"
        in report.fatal.text
    )


def test_max_spout_pending_over_workers_is_never_exceeded() -> None:
    """B4, E27: looked at before each next_tuple."""
    rig = Rig(two(Collect(), [(n,) for n in range(100)]), 2, topology_max_spout_pending=7)
    (spout,) = rig.tasks("a")
    worker = next(w for w in rig.workers if spout.id in w.tasks)
    worker.run(Step(0, 0, 0), [])
    assert spout.account.pending == 7
    rig = Rig(two(Collect(), [(n,) for n in range(100)]), 2, topology_max_spout_pending=7)
    rig.batches(20)
    assert len(rig.users("a")[0].heard) == 100


def test_spouts_pause_above_the_high_mark_until_below_the_low_one() -> None:
    """F3, F10, W1, X50: by levels read anew each batch; nothing is lost."""
    conf = {"stormspark_queue_high_mark_tuples": 100, "stormspark_queue_low_mark_tuples": 10}
    rig = Rig(two(Collect(), [(n,) for n in range(1000)]), 2, **conf)
    (spout,) = rig.tasks("a")
    worker = next(w for w in rig.workers if spout.id in w.tasks)
    worker.run(Step(0, 0, 0), [])
    assert 100 < spout.account.pending < 1000
    worker.begin_attempt("its frames were never delivered")
    rig.batches(20)
    verdicts = [h[0] for h in rig.users("a")[0].heard]
    assert len(verdicts) == 1000 and verdicts.count("ack") > 800


def test_tuples_that_a_bolt_drops_without_ack_leave_nothing_behind() -> None:
    """C3: a leak until the timeout, in Storm; here not even that."""
    rig = Rig(two(Call(lambda bolt, tup: None), [(n,) for n in range(50)]), 1)
    rig.batches(2)
    (task,) = rig.tasks("b")
    assert len(task.held()) == 0
    assert rig.tasks("a")[0].account.pending == 50
    rig = Rig(two(Call(lambda bolt, tup: bolt.kept.append(tup)), [(n,) for n in range(50)]), 1)
    rig.batches(2)
    (task,) = rig.tasks("b")
    assert len(task.held()) == 50
    assert [tup["value"] for tup in task.bolt.kept] == list(range(50))


def test_restarts_in_a_row_are_executions_in_a_row() -> None:
    """W22: a bad tuple now and then stops nothing."""

    def every_other(bolt: Any, tup: Any) -> None:
        if tup["value"] % 2:
            raise ValueError(tup["value"])
        bolt.collector.ack(tup)

    conf = {"stormspark_task_max_restarts_in_row": 1}
    rig = Rig(two(Call(every_other), [(n,) for n in range(20)]), 1, **conf)
    rig.batches(3)
    (task,) = rig.tasks("b")
    assert (task.counters.restarts, task.counters.acked, task.counters.failed, task.fatal) == (
        10,
        10,
        10,
        None,
    )
