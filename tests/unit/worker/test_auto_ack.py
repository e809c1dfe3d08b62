"""Bolts of front-ends, whose tuples are acked when ``execute`` returns."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import Fields, TaskHook, TopologyBuilder, Tuple
from stormspark.spi import ACK, AutoAckBolt
from tests.unit.worker.components import Collect, Script, acks_of, fails_of
from tests.unit.worker.rig import Rig


class Named(Tuple):
    """A front-end's tuple."""

    __slots__ = ("nick",)


class Tells(TaskHook):
    """Writes down what it is told."""

    def __init__(self, told: list[Any]) -> None:
        self.told = told

    def emit(self, info: Any) -> None:
        self.told.append(("emit", info.values))

    def bolt_ack(self, info: Any) -> None:
        self.told.append(("ack", info.tuple.values))

    def bolt_fail(self, info: Any) -> None:
        self.told.append(("fail", info.tuple.values))


class Auto(AutoAckBolt):
    """Emits what it gets by the fast way. 1: keeps the tuple, which is acked; 2: says nothing; 3: fails it; 4: acks it itself."""

    def __init__(self, observed: bool = False) -> None:
        self.observed = observed

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.lines: list[Any] = []
        self.kept: list[Any] = []
        self.made: list[int] = []
        self.told: list[Any] = []
        if self.observed:
            context.add_task_hook(Tells(self.told))

    def new_tuple(self, values: Any, source: Any, roots: Any) -> Tuple:  # type: ignore[override]
        tup = Named(values, source, roots)
        self.made.append(values[0])
        return tup

    def connected(self, line: Any) -> None:
        self.lines.append((line("default"), line("nothing of the kind")))

    def execute(self, tup: Any) -> object:  # type: ignore[override]
        assert type(tup) is Named and tup.state == 0
        value = tup.values[0]
        line = self.lines[-1][0]
        if value == 9:
            threading.Thread(target=int).start()
            assert self.lines[-1] == (None, None)
        elif line is not None:
            assert len(line.send((value,), tup.roots)) == 1
        if value == 1:
            self.kept.append(tup)
        if value == 2:
            self.kept.append(tup)
            return None
        if value == 3:
            self.collector.fail(tup, "three")
        if value == 4:
            self.collector.ack(tup)
        return ACK

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


def topology(values: list[int]) -> TopologyBuilder:
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(value,) for value in values]))
    builder.set_bolt("b", Auto()).shuffle_grouping("a")
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    return builder


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_execute_gives_back_acks(workers: int) -> None:
    """C5, C13, E5: unless it is settled already; without an answer it is held until somebody settles it."""
    rig = Rig(topology([0, 1, 2, 3, 4, 5]), workers)
    rig.batches(5)
    [spout], [bolt], [sink] = rig.users("a"), rig.users("b"), rig.users("c")
    assert sorted(acks_of(spout)) == [0, 1, 4, 5]
    assert [fail.message for fail in fails_of(spout)] == [3]
    assert [value for _, value in sink.seen] == [0, 1, 2, 3, 4, 5]
    assert [tup.values for tup in bolt.kept] == [(1,), (2,)]
    bolt.collector.ack(bolt.kept[1])
    rig.batches(3)
    assert sorted(acks_of(spout)) == [0, 1, 2, 4, 5]
    [task] = rig.tasks("b")
    assert (task.counters.acked, task.counters.failed, task.counters.executed) == (5, 1, 6)
    assert not rig.errors


def test_a_tuple_that_nobody_keeps_is_used_again() -> None:
    """C6: made anew after one that is kept or held, and with each chunk."""
    rig = Rig(topology([0, 5, 5, 1, 0, 2, 0, 5]), 1)
    rig.batches(1)
    [bolt] = rig.users("b")
    assert bolt.made == [0, 0, 0]


def test_hooks_hear_of_acks() -> None:
    """J21: each tuple's ack and each emit once, and the fast way is one that tells them."""

    builder = TopologyBuilder()
    builder.set_spout("a", Script([(0,), (3,), (4,)]))
    builder.set_bolt("b", Auto(observed=True)).shuffle_grouping("a")
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(2)
    [bolt] = rig.users("b")
    assert bolt.told == [
        ("emit", (0,)), ("ack", (0,)),
        ("emit", (3,)), ("fail", (3,)),
        ("emit", (4,)), ("ack", (4,)),
    ]  # fmt: skip


def test_where_threads_may_emit_there_is_no_fast_way() -> None:
    """W26: the collector knows what to do then."""
    rig = Rig(topology([0, 9, 5]), 1)
    rig.batches(2)
    [bolt], [spout] = rig.users("b"), rig.users("a")
    assert bolt.lines[-1] == (None, None) and bolt.lines[0][0] is not None
    assert sorted(acks_of(spout)) == [0, 1, 2]
