"""What code of an instance does after its end has no effect, and holds up nobody (B14, C44, W26)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from stormspark import StatefulComponent, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from tests.unit.worker.executors.runs import Numbers, Repeat, Told, running, tasks, until

#: Set when the late code may go on, when the call is under way, and when the late code has ended.
may_go_on, is_under_way, has_ended = threading.Event(), threading.Event(), threading.Event()
PATIENCE = 120


@pytest.fixture(autouse=True)
def _begin() -> None:
    for event in may_go_on, is_under_way, has_ended:
        event.clear()


def _emits(bolt: Repeat, tup: Any) -> None:
    bolt.collector.emit((99,), anchors=[tup])


def _emits_alone(bolt: Repeat, tup: Any) -> None:
    bolt.collector.emit((99,))


def _acks(bolt: Repeat, tup: Any) -> None:
    bolt.collector.ack(tup)


def _fails(bolt: Repeat, tup: Any) -> None:
    bolt.collector.fail(tup)


def _reports(bolt: Repeat, tup: Any) -> None:
    bolt.collector.report_error("late")


def _raises(bolt: Repeat, tup: Any) -> None:
    raise ValueError


def _exits(bolt: Repeat, tup: Any) -> None:
    sys.exit(3)


LATE = pytest.mark.parametrize("late", [_emits, _acks, _fails, _reports, _raises, _exits])


class Late(StatefulComponent, Repeat):
    """Does something late in the call for tuple 1."""

    def __init__(self, late: Callable[[Repeat, Any], None]) -> None:
        self.late = late

    def init_state(self, state: Any) -> None:
        self.state = state

    def pre_save(self, checkpoint_id: Any) -> None:
        pass

    def execute(self, tup: Any) -> None:
        if tup[0] == 1:
            is_under_way.set()
            assert may_go_on.wait(PATIENCE)
            self.late(self, tup)
        super().execute(tup)


@LATE
def test_a_call_whose_batch_was_taken_back_harms_neither_the_next_attempt_nor_its_task(
    late: Callable[[Repeat, Any], None],
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers([], Told("nothing late")))
    builder.set_bolt("late", Late(late)).shuffle_grouping("numbers")
    builder.set_bolt("end", Repeat()).shuffle_grouping("late")
    conf = {"stormspark.executor.threads": "always", "stormspark.exactly.once": True}
    worker = Worker(plan_topology(builder.create_topology("late"), conf), 0, side_by_side=True)
    worker.open()
    try:
        bolt, end = worker.wiring.bolts
        source = next(source for source in worker.wiring.sources.values() if source.component == "numbers")
        bolt.inbox.append(((1,), source, None))
        bolt.executor.wake()  # type: ignore[attr-defined]
        assert is_under_way.wait(PATIENCE)
        threading.Timer(0.05, may_go_on.set).start()
        worker.roll_back(0, -1, "the test says so")
        until(lambda: not bolt.is_starting or worker.turns.run_pass(float("inf")))  # type: ignore[attr-defined]
        assert (bolt.waiting, end.waiting, end.counters.executed) == (0, 0, 0)
        assert (bolt.aborts, bolt.counters.errors, bolt.counters.restarts) == (None, 0, 0)

        bolt.inbox.append(((2,), source, None))
        bolt.executor.wake()  # type: ignore[attr-defined]
        until(lambda: end.counters.executed or worker.turns.run_pass(float("inf")) < 0)
        assert end.counters.executed == 1
    finally:
        may_go_on.set()
        worker.close()


class LeavesAThread(Repeat):
    """Has a thread that does something late, with the collector and a tuple of its first instance."""

    def __init__(self, told: Told, late: Callable[[Repeat, Any], None], *, raises: bool) -> None:
        self.told, self.late, self.raises = told, late, raises

    def execute(self, tup: Any) -> None:
        if tup[0] == 1:
            threading.Thread(target=self.go_on, args=(tup,), daemon=True).start()
            if self.raises:
                raise ValueError
            return
        super().execute(tup)

    def go_on(self, tup: Any) -> None:
        """Wait, and act."""
        try:
            assert may_go_on.wait(PATIENCE)
            for _ in range(20_000):  # more than a mailbox or the notes of an instance may hold
                self.late(self, tup)
        except BaseException as error:
            self.told("late", type(error).__name__)
        has_ended.set()


THREADS = pytest.mark.parametrize("threads", ["always", "never"])
CALLS = pytest.mark.parametrize("late", [_emits_alone, _acks, _fails])


class Collects(Repeat):
    """Tells what it gets."""

    def __init__(self, told: Told) -> None:
        self.told = told

    def execute(self, tup: Any) -> None:
        self.told("got", tup[0])
        super().execute(tup)


def _with_a_thread(
    late: Callable[[Repeat, Any], None], told: Told, values: list[int], *, raises: bool
) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(values, told))
    builder.set_bolt("leaves", LeavesAThread(told, late, raises=raises)).shuffle_grouping("numbers")
    builder.set_bolt("collects", Collects(told)).shuffle_grouping("leaves")
    return builder.create_topology("late-threads")


@THREADS
@CALLS
def test_a_thread_of_an_instance_before_an_error_has_no_effect(
    late: Callable[[Repeat, Any], None], threads: str
) -> None:
    told = Told("a thread before an error")
    topology = _with_a_thread(late, told, [1, 2], raises=True)
    with running(topology, **{"stormspark.executor.threads": threads}) as local:
        until(lambda: ("ack", "2") in told.all)
        may_go_on.set()
        assert has_ended.wait(PATIENCE)
        local.run_until_idle()
        assert [task.counters.restarts for task in tasks(local, "leaves")] == [1]
    assert told.all.count(("got", 99)) == 0
    assert [what for what in told.all if what[0] == "late"] == []
    assert [what[1] for what in told.all if what[0] in ("ack", "fail")] == ["1", "2"]


@pytest.mark.slow
@THREADS
@CALLS
def test_a_thread_that_outlives_its_topology_has_no_effect_and_is_not_held(
    late: Callable[[Repeat, Any], None], threads: str
) -> None:
    """It would wait for ever for room in the mailbox of a task that takes nothing any more."""
    told = Told("a thread after cleanup")
    topology = _with_a_thread(late, told, [1, 2], raises=False)
    with running(topology, **{"stormspark.executor.threads": threads}):
        until(lambda: ("ack", "2") in told.all)
    may_go_on.set()
    assert has_ended.wait(PATIENCE)
    assert told.all.count(("got", 99)) == 0
    assert [what for what in told.all if what[0] in ("late", "fail")] == []
