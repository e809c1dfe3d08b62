"""What becomes of tuples that do not fit, where spouts are not to be slowed down (X51, F10)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import Fields, TaskHook, TopologyBuilder
from stormspark.api import TICK_SOURCE
from stormspark.worker.bolts.queue import TupleQueue
from stormspark.worker.executors.queue import SharedQueue
from stormspark.worker.vectorised.queue import RowQueue
from tests.unit.worker.components import Call, Collect, Script
from tests.unit.worker.rig import Rig, two


def sheds(strategy: str, **conf: Any) -> dict[str, Any]:
    return {"stormspark_backpressure_strategy": strategy, **conf}


def numbers(n: int) -> list[tuple[int]]:
    return [(number,) for number in range(n)]


def seen(rig: Rig, component: str = "b") -> list[list[int]]:
    return [[value for _, value in user.seen] for user in rig.users(component)]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_dropped_is_counted_and_its_tree_does_not_hang(workers: int) -> None:
    """X51, F10: Heron's dropped tuples time out; here their edge is closed, and the oldest ones are executed, in order."""
    rig = Rig(two(Collect(), numbers(500)), workers, **sheds("drop", stormspark_queue_high_mark_tuples=10))
    rig.batches(3 * workers)
    (bolt,), (executed,) = rig.tasks("b"), seen(rig)
    assert bolt.counters.shed > 100 and len(executed) + bolt.counters.shed == 500
    assert executed[:10] == list(range(10)) and executed == sorted(executed)
    assert Counter(rig.users("a")[0].heard) == {("ack", number): 1 for number in range(500)}
    assert rig.tasks("a")[0].account.pending == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_shed_tuple_fails_with_the_bolt_the_mark_and_the_setting(workers: int) -> None:
    """X51, W4: the tree ends at once, with the bolt, the mark and the setting; its bolt_fail hooks hear of it."""
    rig = Rig(two(Collect(), numbers(500)), workers, **sheds("fail", stormspark_queue_high_mark_tuples=10))
    rig.batches(3 * workers)
    (bolt,), (executed,) = rig.tasks("b"), seen(rig)
    heard = rig.users("a")[0].heard
    assert sorted(message for _, message, *_ in heard) == list(range(500))
    assert [message for what, message, *_ in heard if what == "ack"] == executed
    assert bolt.counters.shed == 500 - len(executed) > 100
    reason = (
        f"failed by a bolt: b[{bolt.id}]: the queue of b[0] is full (10 tuples: stormspark.queue.high.mark.tuples), and "
        "stormspark.backpressure.strategy is 'fail'"
    )
    assert all(verdict.startswith(reason) for what, _, *told in heard if what == "fail" for verdict in told)


def test_a_queue_has_a_mark_in_bytes_too() -> None:
    """X51: of the values, by a few of them."""
    rows = [("x" * 10_000,)] * 500
    rig = Rig(two(Collect(), rows), 2, **sheds("fail", stormspark_queue_high_mark_bytes=100_000))
    rig.batches(3)
    (bolt,) = rig.tasks("b")
    assert bolt.counters.executed == 18, "nine of each frame, and there are two"
    assert bolt.counters.shed == 500 - 18
    failed = next(one for one in rig.users("a")[0].heard if one[0] == "fail")
    assert "some 0.0954 MB: stormspark.queue.high.mark.bytes)" in failed[2]


def test_spouts_do_not_wait_for_a_queue_that_sheds() -> None:
    """X51: with the same marks and the strategy 'slow' they do."""

    marks = {"stormspark_queue_high_mark_tuples": 20, "stormspark_queue_low_mark_tuples": 0}

    def emitted(strategy: str) -> int:
        rig = Rig(two(Collect(), numbers(5000)), 2, **sheds(strategy, **marks))
        rig.batches(1)
        return int(rig.tasks("a")[0].read_counters().emitted)

    assert (emitted("slow"), emitted("drop")) == (64, 5000)


def test_ticks_are_never_shed() -> None:
    """C9, X51: of what is taken out of a queue, ticks stay, and so does the order of the rest."""
    rig = Rig(two(Collect(), []), 1, **sheds("drop", topology_tick_tuple_freq_secs=10))
    (bolt,) = rig.tasks("b")
    source = rig.workers[0].wiring.sources[rig.tasks("a")[0].id, "default"]

    def put(*values: int) -> None:
        bolt.inbox.extend(((value,), source, None) for value in values)

    put(0, 1, 2)
    bolt._tick()
    put(3, 4)
    bolt._tick()
    bolt.shedding.shed(5, now=0.0)
    left = [source is TICK_SOURCE or values[0] for values, source, _ in bolt.waiting_deliveries()]
    assert left == [0, 1, True, True] and bolt.counters.shed == 3
    rig.batches(1)
    assert [values[0] for _, *values in rig.users("b")[0].seen] == [0, 1, 10, 10]
    assert bolt.counters.executed == 2


def test_the_oldest_stay_where_a_queue_is_being_worked_off() -> None:
    """X51: what has been taken from the inbox already is older than what is in it."""
    rig = Rig(two(Collect(), []), 1, **sheds("drop"))
    (bolt,) = rig.tasks("b")
    source = rig.workers[0].wiring.sources[rig.tasks("a")[0].id, "default"]
    bolt.inbox.extend(((value,), source, None) for value in range(6))
    bolt.queue.take(2)
    bolt.inbox.extend(((value,), source, None) for value in (6, 7))
    assert [values[0] for values, _, _ in bolt.queue.take_newest(4)] == [4, 5, 6, 7]
    assert [values[0] for values, _, _ in bolt.waiting_deliveries()] == [2, 3]
    assert [values[0] for values, _, _ in bolt.queue.take_newest(9)] == [2, 3]
    assert bolt.waiting == 0


@pytest.mark.parametrize(
    "queue", [TupleQueue(), SharedQueue(), RowQueue()], ids=lambda queue: type(queue).__name__
)
def test_what_comes_after_a_shed_tuple_has_not_waited_in_its_place(queue: TupleQueue) -> None:
    """W2, X51: only what already waited at the last look is spared."""

    def put(*values: int) -> None:
        queue.inbox.extend(((value,), TICK_SOURCE, None) for value in values)

    def spared() -> list[int]:
        return [values[0] for values, _, _ in queue.not_reached()]

    put(0, 1, 2, 3)
    assert spared() == []
    assert len(queue.take_newest(3)) == 3
    put(4, 5, 6)
    assert spared() == [0]
    assert spared() == [0, 4, 5, 6]
    queue.clear()
    put(7, 8)
    assert spared() == []
    assert spared() == [7, 8]


def test_it_is_reported_at_once_and_then_once_an_interval_with_the_count() -> None:
    """X51, C4: an overloaded bolt does not fill the log."""
    conf = sheds("drop", stormspark_queue_high_mark_tuples=10, topology_error_throttle_interval_secs=10)
    rig = Rig(two(Collect(), numbers(640)), 1, **conf)
    rig.batches(1)
    assert len(rig.errors) == 1
    assert rig.errors[0].startswith(
        "54 tuples were dropped: the queue of b[0] is full (10 tuples: stormspark"
    )
    assert "Give bolt 'b', declared at" in rig.errors[0] and "set the strategy to 'slow'" in rig.errors[0]
    rig.users("a")[0].next = 0  # once more
    rig.advance(5)
    assert len(rig.errors) == 1
    rig.users("a")[0].next = 0
    rig.advance(6)
    # Nine bursts of the first time, ten of the second one, and the first of the third one.
    assert len(rig.errors) == 2 and "1,080 tuples were dropped in the last 11 s" in rig.errors[1]


class _Listens(TaskHook):
    failed: list[int] = []  # noqa: RUF012 - of all instances, for the test

    def bolt_fail(self, info: Any) -> None:
        self.failed.append(info.tuple.values[0])


def test_hooks_hear_of_what_fails() -> None:
    """J21, X51: a tuple that is failed because it does not fit has failed at that bolt."""
    _Listens.failed.clear()

    class Hooked(Collect):
        def prepare(self, conf: Any, context: Any) -> None:
            super().prepare(conf, context)
            context.add_task_hook(_Listens())

    rig = Rig(two(Hooked(), numbers(64)), 1, **sheds("fail", stormspark_queue_high_mark_tuples=60))
    rig.batches(1)
    assert _Listens.failed == [60, 61, 62, 63]


@given(
    strategy=st.sampled_from(["drop", "fail"]),
    workers=st.integers(1, 3),
    mark=st.integers(1, 200),
    fanout=st.integers(1, 5),
    n=st.integers(0, 300),
)
def test_every_tuple_is_executed_or_shed_and_every_tree_ends_once(
    strategy: str, workers: int, mark: int, fanout: int, n: int
) -> None:
    """X51, F10, E22, E26, E31: over workers, bolts and fan-outs."""

    def split(bolt: Any, tup: Any) -> None:
        for _ in range(fanout):
            bolt.collector.emit((tup.values[0],), anchors=tup)
        bolt.collector.ack(tup)

    builder = TopologyBuilder()
    builder.set_spout("a", Script(numbers(n)))
    builder.set_bolt("split", Call(split), 2).shuffle_grouping("a")
    builder.set_bolt("b", Collect(), 2).fields_grouping("split", Fields("value"))
    rig = Rig(builder, workers, **sheds(strategy, stormspark_queue_high_mark_tuples=mark))
    for _ in range(60):
        rig.batches(1)
        if len(rig.users("a")[0].heard) == n:
            break
    rig.batches(2)
    executed, shed, sent = (
        {
            name: sum(getattr(task.read_counters(), what) for task in rig.tasks(name))
            for name in ("a", "split", "b")
        }
        for what in ("executed", "shed", "transferred")
    )
    assert executed["split"] + shed["split"] == sent["a"] == n
    assert executed["b"] + shed["b"] == sent["split"] == fanout * executed["split"]
    heard = rig.users("a")[0].heard
    assert Counter(message for _, message, *_ in heard) == dict.fromkeys(range(n), 1)
    failed, lost = sum(what == "fail" for what, *_ in heard), shed["split"] + shed["b"]
    assert (failed > 0) == (lost > 0 and strategy == "fail") and failed <= lost
    for task in rig.tasks("b"):
        in_order = [value for _, value in task.bolt.seen]
        assert workers > 1 or in_order == sorted(in_order)


class _Time:
    """The clock of the worker, which what follows moves on."""

    clock: Any = None


class SlowBolt(Collect):
    """A tuple takes a millisecond."""

    def execute(self, tup: Any, collector: Any) -> None:
        _Time.clock.advance(0.001)
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("value"))


class FastSpout(Script):
    """An emit takes a tenth of that."""

    def next_tuple(self) -> None:
        _Time.clock.advance(0.0001)
        super().next_tuple()


@pytest.mark.slow
def test_nobody_starves_behind_a_bolt_that_is_overloaded_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    """X51: a slow bolt and a fast one behind it in one worker, and a spout that is asked all the time."""
    builder = TopologyBuilder()
    builder.set_spout("a", FastSpout(numbers(200_000)))
    builder.set_bolt("slow", SlowBolt()).shuffle_grouping("a")
    builder.set_bolt("b", Collect()).shuffle_grouping("slow")
    rig = Rig(builder, 1, **sheds("drop", stormspark_queue_high_mark_tuples=500))
    monkeypatch.setattr(_Time, "clock", rig.clock)
    rig.batches(10)
    (spout,), (bolt,), (last,) = rig.tasks("a"), rig.tasks("slow"), rig.tasks("b")
    assert rig.clock() == pytest.approx(10, rel=0.05), "a round takes a target"
    assert bolt.counters.executed > 5_000, "most of it is the slow bolt's"
    assert spout.read_counters().emitted > 3 * bolt.counters.executed, "and yet the spout is faster"
    assert bolt.counters.executed == last.counters.executed, "and the other bolt keeps up"
    assert last.counters.shed == 0 < bolt.counters.shed


@pytest.mark.slow
def test_a_spout_is_asked_for_as_long_as_bolts_elsewhere_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """X51, F10: no round is longer than a target because of them; workers run one after another here."""
    rig = Rig(
        two(SlowBolt(), FastSpout(numbers(100_000))),
        2,
        **sheds("drop", stormspark_queue_high_mark_tuples=2000),
    )
    monkeypatch.setattr(_Time, "clock", rig.clock)
    rig.batches(3)
    (spout,), (bolt,) = rig.tasks("a"), rig.tasks("b")
    began, emitted, executed = rig.clock(), spout.read_counters().emitted, bolt.counters.executed
    rig.batches(10)
    third = pytest.approx(10 / 3, rel=0.05)  # of ten targets: a round has three supersteps
    assert (spout.read_counters().emitted - emitted) * 0.0001 == third
    assert (bolt.counters.executed - executed) * 0.001 / 3 == third
    assert (rig.clock() - began) / 4 == third, "the spout's turn, and three of the bolt's"
