"""Ticks, groups of emits, long calls, hooks, metrics, context: the same on every engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from tests.conformance.components import Failed, Numbers, Record, acked
from tests.conformance.life_components import (
    CountAndFailOnce,
    File,
    HoldUntilTicks,
    Moody,
    Orders,
    SameId,
    Told,
)

Run = Callable[..., Any]


@pytest.mark.slow
def test_ticks_reach_every_task_of_a_bolt(run: Run) -> None:
    """C9, A21: a component's own rate; what the ticks ack is acked."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(30), parallelism=2)
    builder.set_bolt("hold", HoldUntilTicks(), parallelism=3).shuffle_grouping("numbers")
    done = run(builder.create_topology("ticks"))
    assert done.acked("numbers") == Counter(range(30))
    told = done.effects("hold")
    for component, stream, task, values, _ in told:
        assert (component, stream, task, values) == ("__system", "__tick", -1, [0.3])
    assert sum(released for *_, released in told) == 30
    hold = done.statistics.components["hold"]
    assert (hold.executed, hold.acked) == (30, 30)


def test_a_group_of_emits_has_one_verdict(run: Run) -> None:
    """X68, B6: three tuples on two streams are one message; one that fails fails it, and it is replayed whole."""
    builder = TopologyBuilder()
    builder.set_spout("orders", Orders(20))
    builder.set_bolt("orders seen", Record(), 2).fields_grouping("orders", Fields("order"))
    builder.set_bolt("lines", Record(fail=(7,)), 2).shuffle_grouping("orders", "lines")
    done = run(builder.create_topology("groups"))
    assert done.acked("orders") == Counter(range(20)) and done.failed("orders") == [Failed(7)]
    orders = done.statistics.components["orders"]
    assert (orders.emitted, orders.acked, orders.failed, orders.pending) == (63, 20, 1, 0)


def test_the_spout_task_that_emitted_hears_the_verdicts(run: Run) -> None:
    """B10: of several tasks, the very one."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(31), parallelism=3)
    builder.set_bolt("record", Record(fail=(4,)), 2).shuffle_grouping("numbers")
    done = run(builder.create_topology("whose"))
    for index, heard in enumerate(done.effects_by_task("numbers")):
        assert sorted(acked(heard)) == list(range(index, 31, 3))


@pytest.mark.slow
def test_a_spout_may_emit_a_whole_file_in_one_call(run: Run) -> None:
    """B1, B3: it is suspended meanwhile; its acks come when the call has returned."""
    builder = TopologyBuilder()
    builder.set_spout("file", File(20_000))
    builder.set_bolt("repeat", Record(), 2).fields_grouping("file", Fields("n"))
    conf = {"stormspark.queue.high.mark.tuples": 50_000, "stormspark.batch.target.ms": 100}
    done = run(builder.create_topology("file"), conf)
    assert done.effects("file") == [["acks", 20_000, False]]
    assert done.statistics.components["repeat"].executed == 20_000


def test_hooks_and_metrics(run: Run) -> None:
    """J18, J21, A29: hooks by configuration; a metric's newest reading is in the statistics."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(10))
    builder.set_bolt("count", CountAndFailOnce()).shuffle_grouping("numbers")
    done = run(
        builder.create_topology("hooks"),
        {"topology.auto.task.hooks": ["tests.conformance.life_components:Life"]},
    )
    ((spout,),) = [counts for what, *counts in done.effects("numbers") if what == "hook"]
    assert spout == {"emit": 11, "execute": 0, "ack": 10, "fail": 1}
    ((bolt,),) = [counts for what, *counts in done.effects("count") if what == "hook"]
    # Execute is told of where it returned, as in Storm: not of the tuple whose execute raised.
    assert bolt == {"emit": 0, "execute": 10, "ack": 10, "fail": 1}


def test_a_component_learns_its_configuration_and_place(run: Run) -> None:
    """Each task finds its own configuration, its index and its inputs in its context (A20, A26, A27)."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(4))
    told = builder.set_bolt("told", Told(), 2).all_grouping("numbers")
    told.add_configuration("test.key", "component")
    done = run(builder.create_topology("told"), {"test.key": "topology"})
    assert sorted(done.effects("told")) == [
        ["component", index, True, [["numbers", "default"]], True, True] for index in range(2)
    ]


def test_a_spout_that_raises_restarts_and_hears_nothing_of_its_old_messages(run: Run) -> None:
    """B14, B10, B12, E35, W22: that task alone; a spout with nothing to say is asked again."""
    builder = TopologyBuilder()
    builder.set_spout("moody", Moody(8))
    builder.set_spout("other", Numbers(12))
    builder.set_bolt("record", Record(fail=(3,)), 2).shuffle_grouping("moody")
    builder.set_bolt("other record", Record()).shuffle_grouping("other")
    done = run(builder.create_topology("moody"))
    heard = done.effects("moody")
    assert sorted(where for what, *where in heard if what == "raised") == [["ack"], ["fail"], ["next_tuple"]]
    assert heard.count(["open"]) == 4
    assert [number for what, *number in heard if what == "emit"] == [[n] for n in range(8)]
    verdicts = done.acked("moody") + Counter(fail.message for fail in done.failed("moody"))
    assert set(verdicts.values()) == {1} and len(verdicts) >= 3
    moody, other = (done.statistics.components[name] for name in ("moody", "other"))
    assert (moody.restarts, moody.pending, other.restarts, other.acked) == (3, 0, 0, 12)


def test_an_id_emitted_several_times_has_as_many_verdicts(run: Run) -> None:
    """E32: each emit is a tree of its own; one that fails fails no other."""
    builder = TopologyBuilder()
    builder.set_spout("same", SameId(20))
    builder.set_bolt("record", Record(fail=(3, 11, 12)), 2).shuffle_grouping("same")
    done = run(builder.create_topology("same id"))
    assert Counter(map(tuple, done.effects("same"))) == {("ack", "same"): 17, ("fail", "same"): 3}
    same = done.statistics.components["same"]
    assert (same.emitted, same.acked, same.failed, same.pending) == (20, 17, 3, 0)
