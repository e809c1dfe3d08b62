"""Acks, fails, replays, errors and groupings: the same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.errors import ComponentError
from stormspark.grouping import fields_task_index
from tests.conformance.components import Failed, Numbers, Pair, Record, Repeat

Run = Callable[..., Any]


@pytest.mark.slow
def test_every_tuple_arrives_once_and_every_message_is_acked_once(run: Run) -> None:
    """Each tuple and each verdict arrives once, and the statistics count the same (E20, E22, E26)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(500), parallelism=2)
    builder.set_bolt("repeat", Repeat(4), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("record", Record(), parallelism=3).fields_grouping("repeat", Fields("n"))
    done = run(builder.create_topology("delivery"))
    arrived = Counter(one.values for one in done.recorded("record"))
    assert arrived == Counter((n, copy) for n in range(500) for copy in range(4))
    assert done.acked("numbers") == Counter(range(500)) and done.failed("numbers") == []
    numbers = done.statistics.components["numbers"]
    assert (numbers.emitted, numbers.transferred, numbers.acked, numbers.failed, numbers.pending) == (
        500,
        500,
        500,
        0,
        0,
    )
    assert done.statistics.components["repeat"].executed == 500
    assert done.statistics.components["record"].executed == 2000


def test_fields_grouping_sends_to_storms_task(run: Run) -> None:
    """A fields grouping chooses the task that Storm's hash gives (D1, D3)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(100), parallelism=1)
    builder.set_bolt("record", Record(), parallelism=4).fields_grouping("numbers", Fields("n"))
    done = run(builder.create_topology("fields"), {"topology.acker.executors": 1})
    recorded = done.recorded("record")
    tasks = sorted({one.task for one in recorded})
    for one in recorded:
        assert one.task == tasks[fields_task_index(one.values, len(tasks))]


def test_all_global_and_shuffle_groupings(run: Run) -> None:
    """D5, D9, D10, D15: several subscribers of one stream."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(60), parallelism=1)
    builder.set_bolt("everyone", Record(), parallelism=3).all_grouping("numbers")
    builder.set_bolt("lowest", Record(), parallelism=3).global_grouping("numbers")
    builder.set_bolt("even", Record(), parallelism=3).shuffle_grouping("numbers")
    done = run(builder.create_topology("groupings"))

    def by_task(component: str) -> Counter[int]:
        return Counter(one.task for one in done.recorded(component))

    assert sorted(by_task("everyone").values()) == [60, 60, 60]
    assert sum(by_task("lowest").values()) == 60 and len(by_task("lowest")) == 1
    assert sorted(by_task("even").values()) == [20, 20, 20]
    assert done.statistics.components["numbers"].transferred == 60 * 5
    assert done.statistics.components["numbers"].acked == 60


def test_a_failed_tuple_fails_its_message_with_the_reason_and_can_be_replayed(run: Run) -> None:
    """The spout hears which bolt failed the message and why; sent again, the message is acked (E11, E24, W4, C5)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(40), parallelism=2)
    builder.set_bolt("repeat", Repeat(2), parallelism=2).shuffle_grouping("numbers")
    builder.set_bolt("record", Record(fail=(7, 8)), parallelism=2).fields_grouping("repeat", Fields("n"))
    done = run(builder.create_topology("fails"))
    assert sorted(done.failed("numbers")) == [
        Failed(n, "FAILED", component="record", reason=f"FailedException: not {n}") for n in (7, 8)
    ]
    assert done.acked("numbers") == Counter(range(40))
    numbers = done.statistics.components["numbers"]
    assert (numbers.acked, numbers.failed, numbers.failed_by_bolt, numbers.timed_out) == (40, 2, 2, 0)
    assert done.statistics.components["record"].restarts == 0


def test_a_bolt_that_raises_restarts_alone_and_its_tuple_fails(run: Run) -> None:
    """An exception in a bolt restarts its task once, fails its one tuple, and is kept as the last error (W22, X53f)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(40))
    builder.set_bolt("record", Record(error=(5,)), parallelism=2).fields_grouping("numbers", Fields("n"))
    done = run(builder.create_topology("raises"))
    (fail,) = done.failed("numbers")
    assert fail == Failed(5, "FAILED", component="record", reason="KeyError: 5")
    record = done.statistics.components["record"]
    assert (record.restarts, record.errors) == (1, 1)
    assert record.last_error is not None and "KeyError: 5" in record.last_error
    assert done.acked("numbers") == Counter(range(40))


def test_a_join_anchors_to_both_inputs(run: Run) -> None:
    """E17, E25: multi-anchoring."""
    builder = TopologyBuilder()
    builder.set_spout("left", Numbers(50))
    builder.set_spout("right", Numbers(50))
    join = builder.set_bolt("pair", Pair(), parallelism=2)
    join.fields_grouping("left", Fields("n")).fields_grouping("right", Fields("n"))
    builder.set_bolt("record", Record(fail=(3,)), parallelism=2).shuffle_grouping("pair")
    done = run(builder.create_topology("join"))
    for side in ("left", "right"):
        assert [(fail.message, fail.outcome) for fail in done.failed(side)] == [(3, "FAILED")]
        assert done.acked(side) == Counter(range(50))
    assert Counter(one.values[0] for one in done.recorded("record")) == Counter(range(50))


def test_max_spout_pending_is_kept_and_all_is_done(run: Run) -> None:
    """With at most ten messages pending, all sixty are acked in the end (B4, E27)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(60))
    builder.set_bolt("record", Record(), parallelism=2).shuffle_grouping("numbers")
    done = run(builder.create_topology("pending"), {"topology.max.spout.pending": 10})
    assert done.statistics.components["numbers"].acked == 60


def test_without_ackers_acks_come_inside_emit(run: Run) -> None:
    """Without ackers every message is acked, even one that a bolt fails (B8, C3, E29)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(30))
    builder.set_bolt("record", Record(fail=(3,)), parallelism=2).shuffle_grouping("numbers")
    done = run(builder.create_topology("unacked"), {"topology.acker.executors": 0})
    assert done.acked("numbers") == Counter(range(30)) and done.failed("numbers") == []


def test_a_message_without_subscribers_is_acked(run: Run) -> None:
    """A message that no bolt subscribes to is acked, and nothing counts as transferred (B7, E30)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(5))
    done = run(builder.create_topology("nobody"))
    assert done.acked("numbers") == Counter(range(5))
    assert done.statistics.components["numbers"].transferred == 0


@pytest.mark.slow
def test_order_between_two_tasks_is_kept(run: Run) -> None:
    """Each bolt task receives the tuples of the spout in the order in which they were emitted (E31)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(3000))
    builder.set_bolt("record", Record(), parallelism=2).shuffle_grouping("numbers")
    done = run(builder.create_topology("order"))
    by_task: dict[int, list[int]] = {}
    for one in done.recorded("record"):
        by_task.setdefault(one.task, []).append(one.values[0])
    assert all(seen == sorted(seen) for seen in by_task.values())
    assert sum(map(len, by_task.values())) == 3000


def test_a_graceful_end_calls_deactivate_close_and_cleanup(run: Run) -> None:
    """At a graceful end each spout is deactivated and then closed, and each bolt is cleaned up (B1, C1, B13)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(5), parallelism=2)
    builder.set_bolt("record", Record(), parallelism=2).shuffle_grouping("numbers")
    done = run(builder.create_topology("ends"))
    assert [effect for effect in done.effects("numbers") if effect in (["deactivate"], ["close"])] == [
        ["deactivate"],
        ["close"],
    ] * 2
    assert done.effects("record").count(["cleanup"]) == 2


def test_a_bolt_that_always_raises_stops_the_topology_with_its_error(run: Run) -> None:
    """W22: too many restarts in a row."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(40))
    builder.set_bolt("record", Record(error=tuple(range(40)))).shuffle_grouping("numbers")
    with pytest.raises(
        ComponentError,
        match=r"bolt 'record', task \d+ .* raised 4 times in a row \(.*\), last in execute: KeyError",
    ):
        run(builder.create_topology("broken"), {"stormspark.task.max.restarts.in.row": 3})
