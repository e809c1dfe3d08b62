"""Async bolts and spouts in one worker: what does not depend on the engine."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stormspark import (
    AsyncBolt,
    AsyncSpout,
    BasicBolt,
    Bolt,
    CustomStreamGrouping,
    FailedException,
    Fields,
    PandasBolt,
    Spout,
    TaskHook,
    TickTupleAwareBolt,
    TopologyBuilder,
)
from stormspark.api import OutputFieldsDeclarer
from stormspark.api.state import StatefulBolt, StatefulComponent
from stormspark.errors import ComponentError, EmitError, InvalidTopologyError
from stormspark.local import SimulatedClock
from stormspark.plan import advice, plan_topology
from stormspark.testing import FixedTupleSpout
from tests.unit.worker.components import acks_of, fails_of
from tests.unit.worker.rig import Rig, two
from tests.waiting import PATIENCE_SECS, wait_for

ROWS = [(n,) for n in range(20)]


class Calls(AsyncBolt):
    """Each call waits until the test lets it go on; a call ends as the test says: with an exception, or without."""

    def __init__(self, **settings: Any) -> None:
        for name, value in settings.items():
            setattr(self, name, value)

    async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.loop = collector, asyncio.get_running_loop()
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.cancelled: list[int] = []
        RUNNING.append(self)

    async def execute(self, tup: Any) -> None:
        number = tup[0]
        self.waiting[number] = self.loop.create_future()
        try:
            await self.work(tup, number)
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        finally:
            del self.waiting[number]

    async def work(self, tup: Any, number: int) -> None:
        error = await self.waiting[number]
        if error is not None:
            raise error
        self.collector.emit((number,))

    def end(self, number: int, error: Exception | None = None) -> None:
        """Let a call go on, from the test's thread."""
        self.loop.call_soon_threadsafe(lambda: self.waiting[number].set_result(error))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class Keep(BasicBolt):
    """Keeps what arrives."""

    def prepare(self, conf: Any, context: Any) -> None:
        self.came: list[int] = []

    def execute(self, tup: Any, collector: Any) -> None:
        self.came.append(tup[0])


RUNNING: list[Any] = []


def setup_function() -> None:
    RUNNING.clear()


class RealClock(SimulatedClock):
    def __call__(self) -> float:
        return time.monotonic()


class InRealTime(Rig):
    """The calls wait in real time."""

    def new_clock(self) -> SimulatedClock:
        return RealClock()


def _rig(builder: TopologyBuilder, **conf: Any) -> Rig:
    return InRealTime(builder, 1, stormspark_batch_target_ms=10, **conf)


def _until(rig: Rig, condition: Callable[[], object]) -> None:
    """Run batches until the condition holds."""

    deadline = time.monotonic() + PATIENCE_SECS
    while not condition():
        assert time.monotonic() < deadline, "it has never come true"
        rig.batches(1)
        time.sleep(0.001)


class Scene:
    """Numbers -> an async bolt -> one that keeps what arrives, in one worker."""

    def __init__(self, bolt: AsyncBolt, rows: list[tuple[Any, ...]] = ROWS, **conf: Any) -> None:
        builder = two(bolt, rows)
        builder.set_bolt("keep", Keep()).shuffle_grouping("b")
        self.rig = _rig(builder, **conf)
        self.spout, self.keep = self.rig.users("a")[0], self.rig.users("keep")[0]

    @property
    def bolt(self) -> Any:
        return RUNNING[-1]

    def under_way(self, *numbers: int) -> None:
        """Run batches until just these calls are under way."""
        self.until(lambda: set(self.bolt.waiting) == set(numbers))

    def until(self, condition: Callable[[], object]) -> None:
        _until(self.rig, condition)

    def end_time_of_calls(self) -> None:
        """Let the time of all calls be over now, also of those that have not had their first step.

        With a short ``timeout_secs``, a busy machine would end a call before the test knows where the call is.
        """
        self.bolt.loop.call_soon_threadsafe(self._end_time, self.rig.users("b")[0])

    @staticmethod
    def _end_time(executor: Any) -> None:
        for call in executor._calls:
            call.deadline = 0.0
        executor._end_late_calls()

    def close(self) -> None:
        self.rig.cluster.abandon()


def test_no_more_calls_than_the_capacity_and_results_leave_as_they_come() -> None:
    """F3: the other tuples wait in the queue."""
    scene = Scene(Calls(capacity=3))
    scene.under_way(0, 1, 2)
    (task,) = scene.rig.tasks("b")
    assert task.outside == 3 and task.waiting == 17 and task.ready == 0
    scene.bolt.end(2)
    scene.until(lambda: scene.keep.came == [2])
    assert acks_of(scene.spout) == [2]
    scene.under_way(0, 1, 3)
    scene.close()


def test_ordered_results_wait_for_the_calls_before_them() -> None:
    """E31: their emits and acks, too."""
    scene = Scene(Calls(capacity=4, ordered=True))
    scene.under_way(0, 1, 2, 3)
    for number in (3, 1, 2):
        scene.bolt.end(number)
    wait_for(lambda: set(scene.bolt.waiting) == {0})
    scene.rig.batches(3)
    assert scene.keep.came == [] and acks_of(scene.spout) == []
    scene.bolt.end(0)
    scene.until(lambda: scene.keep.came == [0, 1, 2, 3])
    assert acks_of(scene.spout) == [0, 1, 2, 3]
    scene.close()


def test_what_a_call_emits_is_on_its_way_while_the_call_goes_on() -> None:
    class Early(Calls):
        async def work(self, tup: Any, number: int) -> None:
            self.collector.emit((number,))
            await super().work(tup, number)

    scene = Scene(Early(), [(7,)])
    scene.until(lambda: scene.keep.came == [7])
    assert acks_of(scene.spout) == [] and set(scene.bolt.waiting) == {7}
    scene.bolt.end(7)
    scene.until(lambda: acks_of(scene.spout) == [0])
    assert scene.keep.came == [7, 7]
    scene.close()


def test_an_exception_ends_all_calls_of_the_task_and_of_no_other() -> None:
    """W22, E24."""
    builder = two(Calls(), ROWS[:4])
    builder.set_bolt("other", Calls()).shuffle_grouping("a")
    rig = _rig(builder)
    _until(rig, lambda: sum(len(one.waiting) for one in RUNNING) == 8)
    first, other = RUNNING
    first.end(1, KeyError("one"))
    _until(rig, lambda: len(RUNNING) == 3)
    wait_for(lambda: sorted(first.cancelled) == [0, 2, 3])
    assert len(other.waiting) == 4
    rig.batches(2)
    reasons = {fail.message: fail.reason for fail in fails_of(rig.users("a")[0])}
    assert reasons[1].endswith("KeyError: 'one'")
    assert "the task that held it was restarted after KeyError: 'one'" in reasons[0]
    assert any("KeyError: 'one'" in text and "await self.work" in text for text in rig.errors)
    rig.cluster.abandon()


@pytest.mark.slow
@pytest.mark.slow
def test_a_call_that_ignores_its_cancellation_keeps_its_place_and_no_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tuple fails when the time is over; the place is free when the call returns. The summary names such a call."""
    for module in "bolt_executor", "event_loop":
        monkeypatch.setattr(f"stormspark.worker.asynchronous.{module}.END_SECS", 0.1)

    class Stubborn(Calls):
        async def work(self, tup: Any, number: int) -> None:
            while True:
                try:
                    await asyncio.shield(self.waiting[number])
                    self.late = "no error"
                    self.collector.emit((number,))
                except asyncio.CancelledError:
                    continue
                except EmitError as error:
                    self.late = str(error)
                return

    scene = Scene(Stubborn(capacity=1, timeout_secs=900))
    scene.under_way(0)
    scene.end_time_of_calls()
    scene.until(lambda: [fail.message for fail in fails_of(scene.spout)] == [0])
    assert "took longer than 900 s" in fails_of(scene.spout)[0].reason
    (task,) = scene.rig.tasks("b")
    assert set(scene.bolt.waiting) == {0} and task.outside == 0 and task.ready == 0
    call = task.instance.awaiting()
    assert (call.cancelled_after, call.all_places, call.others) == (900, 1, 0)
    scene.bolt.end(0)
    scene.until(lambda: 0 not in scene.bolt.waiting)
    assert "whose execute has ended" in scene.bolt.late
    scene.under_way(1)
    scene.end_time_of_calls()
    scene.until(lambda: len(fails_of(scene.spout)) == 2)
    assert scene.keep.came == []
    scene.rig.workers[0].close()
    scene.close()
    (call,) = scene.rig.workers[0].services.not_returned.values()
    assert call.place is not None and call.place.call == "execute" and call.cancelled_after == 900


def test_an_emit_after_the_end_of_its_call_is_refused_unless_it_is_unanchored() -> None:
    """E14: the tuple may be acked already."""

    class Background(Calls):
        async def work(self, tup: Any, number: int) -> None:
            self.tasks = getattr(self, "tasks", [])
            self.tasks.append(asyncio.create_task(self.later(self.waiting[number])))

        async def later(self, future: Any) -> None:
            await future
            self.collector.emit((1,), anchors=())
            try:
                self.collector.emit((2,))
            except EmitError as error:
                self.refused = str(error)

    scene = Scene(Background(), [(5,)])
    scene.until(lambda: acks_of(scene.spout) == [0])
    # `execute` has returned, so the future is no more in `waiting`: the task still has it.
    future = RUNNING[0].tasks[0].get_coro().cr_frame.f_locals["future"]
    RUNNING[0].loop.call_soon_threadsafe(future.set_result, None)
    scene.until(lambda: scene.keep.came == [1])
    assert "component 'b', task 3: emit is anchored to" in scene.bolt.refused
    assert "await in execute what it starts" in scene.bolt.refused
    scene.close()


@pytest.mark.parametrize("ordered", [False, True])
def test_an_emit_after_the_end_of_its_call_is_an_error_of_the_task(
    ordered: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody awaits what emits too late, so the task tells of it, and asyncio does not say it again (C4, E14)."""

    class Forgetful(Calls):
        started: list[asyncio.Task[None]] = []  # noqa: RUF012

        async def execute(self, tup: Any) -> None:
            type(self).started.append(asyncio.create_task(self.later(tup)))

        async def later(self, tup: Any) -> None:
            await asyncio.sleep(0)
            if tup[0] == 19:
                raise KeyError("of another kind")
            self.collector.emit((tup[0],))  # the emit that comes too late

    scene = Scene(Forgetful(ordered=ordered))
    (task,) = scene.rig.tasks("b")
    scene.until(lambda: len(acks_of(scene.spout)) == 20 and task.counters.errors == 19)
    wait_for(lambda: all(one.done() for one in Forgetful.started))
    Forgetful.started.clear()
    told = caplog.records
    wait_for(lambda: gc.collect() >= 0 and any("of another kind" in str(one.exc_info) for one in told))
    (line,) = (
        number
        for number, text in enumerate(Path(__file__).read_text("utf-8").splitlines(), 1)
        if text.endswith("# the emit that comes too late")
    )
    error = scene.rig.errors[0]
    assert error.startswith(f"{__file__}:{line}: EmitError: component 'b', task 3: emit is anchored to")
    assert len(scene.rig.errors) <= 5 and scene.keep.came == []
    assert len([record for record in told if record.name == "asyncio"]) == 1
    scene.close()


@pytest.mark.parametrize("ordered", [False, True])
def test_threads_of_a_call_may_use_the_collector(ordered: bool) -> None:
    """A28: also with results in order."""

    class Threads(Calls):
        async def work(self, tup: Any, number: int) -> None:
            await asyncio.to_thread(self.emit, number)

        def emit(self, number: int) -> None:
            assert threading.get_ident() != THREAD
            time.sleep(0.001 * (20 - number))
            self.collector.emit((number,))

    scene = Scene(Threads(ordered=ordered))
    scene.until(lambda: len(acks_of(scene.spout)) == 20)
    assert sorted(scene.keep.came) == list(range(20))
    if ordered:
        assert scene.keep.came == list(range(20))
    scene.close()


THREAD = threading.get_ident()


def test_acks_and_fails_inside_a_call_count_once() -> None:
    """E5, E14: and a wrong emit restarts the task, with the user's line."""

    class Own(Calls):
        async def work(self, tup: Any, number: int) -> None:
            if number == 0:
                self.collector.ack(tup)
            elif number == 1:
                self.collector.fail(tup, "by hand")
            elif number == 2:
                raise FailedException("as well")
            await asyncio.sleep(0)

    scene = Scene(Own(), ROWS[:4])
    scene.until(lambda: len(scene.spout.heard) == 4)
    assert sorted(acks_of(scene.spout)) == [0, 3]
    reasons = {fail.message: fail.reason for fail in fails_of(scene.spout)}
    assert "by hand" in reasons[1] and "FailedException: as well" in reasons[2]
    (task,) = scene.rig.tasks("b")
    assert (task.counters.acked, task.counters.failed, task.counters.restarts) == (2, 2, 0)
    assert scene.rig.errors == []
    scene.close()


@pytest.mark.parametrize(
    ("emit", "says"),
    [
        (lambda collector, tup: collector.emit((1, 2)), "wrong number of fields"),
        (lambda collector, tup: collector.emit((1,), stream="nowhere"), "Unknown stream ID 'nowhere'"),
        (lambda collector, tup: collector.emit((1,), anchors="x"), "anchors are tuples"),
    ],
)  # fmt: skip
def test_a_wrong_emit_raises_where_it_is_made(emit: Any, says: str) -> None:
    """A12, B9, C2."""

    class Wrong(Calls):
        async def work(self, tup: Any, number: int) -> None:
            emit(self.collector, tup)

    scene = Scene(Wrong(), [(1,)])
    scene.until(lambda: scene.rig.errors)
    assert says in scene.rig.errors[0] and "test_async_components.py" in scene.rig.errors[0]
    scene.close()


def test_prepare_that_raises_stops_the_topology_and_leaves_no_pipe() -> None:
    """C1."""

    class Broken(Calls):
        async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            raise OSError("no such host")

    with pytest.raises(ComponentError, match=r"b\[0\].*raised in prepare(.|\n)*no such host"):
        Rig(two(Broken(), ROWS), 1)
    wait_for(lambda: not _loops())


def _loops() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("asyncio-")]


def test_a_loop_ends_with_its_worker() -> None:
    wait_for(lambda: not _loops())
    scene = Scene(Calls())
    scene.under_way(*range(20))
    assert _loops() == ["asyncio-rig-0"]
    assert not scene.rig.workers[0].services.guarded
    scene.close()
    wait_for(lambda: not _loops())
    assert len(scene.bolt.cancelled) == 20


def test_the_work_of_calls_is_their_time_divided_by_how_many_there_may_be() -> None:
    """F3: a bolt with four places works as four executors beside each other do, and what is in a call does not wait."""
    scene = Scene(Calls(capacity=4), ROWS[:6])
    scene.under_way(0, 1, 2, 3)
    (task,) = scene.rig.tasks("b")
    load = task.load()
    assert (load.executed, load.seconds, load.queued, load.in_calls) == (0, 0.0, 6, 4)
    assert load.under_way == load.pace == load.first_call / 4 > 0
    scene.bolt.end(0)
    scene.until(lambda: acks_of(scene.spout) == [0])
    latency = task.counters.latency.seconds
    reported = task._calls_ended
    assert reported[0] == 1 and reported[1] == latency > 0
    load = task.load()
    assert load.pace == latency / 4 and load.alongside
    scene.close()


def test_the_latency_of_a_call_is_the_time_from_its_start_to_its_end() -> None:
    """J15: and not the time that the worker's thread spends on it. A call that fails counts, too."""
    scene = Scene(Calls(), ROWS[:3])
    scene.under_way(0, 1, 2)
    (task,) = scene.rig.tasks("b")
    began = time.monotonic()
    scene.until(lambda: time.monotonic() > began + 0.05)
    assert task.counters.executed == 3 and not task.counters.latency.count
    scene.bolt.end(0)
    scene.bolt.end(1, FailedException("no"))
    scene.until(lambda: task.counters.latency.count == 2)
    assert 0.1 < task.counters.latency.seconds < 2 * (time.monotonic() - began) + 1
    scene.close()


def test_calls_under_way_are_counted_while_they_last_and_no_longer() -> None:
    """J16: the mean since the previous report; a restart ends them all."""
    scene = Scene(Calls(capacity=4))
    scene.under_way(0, 1, 2, 3)
    (task,) = scene.rig.tasks("b")
    scene.rig.batches(2)
    assert task.read_counters().calls_under_way == pytest.approx(4.0)
    scene.bolt.end(0, KeyError("no"))
    scene.under_way(4, 5, 6, 7)
    assert task.counters.restarts == 1
    scene.rig.batches(2)
    assert task.read_counters().calls_under_way == pytest.approx(4.0)
    for number in range(4, 20):
        scene.until(partial(scene.bolt.waiting.__contains__, number))
        scene.bolt.end(number)
    scene.until(lambda: task.counters.acked == 16)
    scene.rig.batches(2)
    assert task.read_counters().calls_under_way == 0.0
    scene.close()


def test_an_ordered_call_counts_until_the_calls_before_it_have_ended() -> None:
    """J16: it keeps its place, so a bolt whose first call is slow is full, although one call alone is under way."""
    scene = Scene(Calls(capacity=4, ordered=True), ROWS[:4])
    scene.under_way(0, 1, 2, 3)
    (task,) = scene.rig.tasks("b")
    for number in (1, 2, 3):
        scene.bolt.end(number)
    scene.until(lambda: len(scene.bolt.waiting) == 1)
    begun, _ = task.in_calls()
    scene.until(lambda: task.in_calls()[0] > begun + 0.05)
    scene.rig.batches(1)
    task.read_counters()
    scene.rig.batches(2)
    assert task.counters.calls_under_way == pytest.approx(4.0)
    _, before = task.in_calls()
    scene.bolt.end(0)
    scene.until(lambda: task.counters.acked == 4)
    _, after = task.in_calls()
    assert after >= before, "the time in which the calls kept their places still counts"
    scene.close()


# -- what breaks out, and what comes late --------------------------------------------------------------------------


class Exits(Calls):
    """One call of the first instance starts a task that ends badly."""

    end_of_task = ""

    async def work(self, tup: Any, number: int) -> None:
        if number == 3 and len(RUNNING) == 1:
            await asyncio.gather(self.exits())
        self.collector.emit((number,))

    async def exits(self) -> None:
        if self.end_of_task == "stop":
            self.loop.stop()
            await asyncio.sleep(0)
            raise KeyError
        raise SystemExit(3) if self.end_of_task == "exit" else KeyboardInterrupt


@pytest.mark.parametrize(
    ("end", "says"), [("exit", "SystemExit: 3"), ("interrupt", "KeyboardInterrupt"), ("stop", "KeyError")]
)
def test_no_code_of_a_call_ends_the_loop(end: str, says: str) -> None:
    """W22: asyncio lets `SystemExit` of a task that a call has started out of the loop, which belongs to all components."""
    scene = Scene(Exits(end_of_task=end))
    scene.until(lambda: len(scene.spout.heard) == 20)
    (task,) = scene.rig.tasks("b")
    assert task.counters.restarts == 1 and says in scene.rig.errors[0]
    scene.close()


def test_a_call_whose_time_is_over_before_it_begins_leaves_its_place() -> None:
    scene = Scene(Calls(capacity=1, timeout_secs=900), ROWS[:2])
    scene.under_way(0)
    executor, loop = scene.rig.users("b")[0], scene.bolt.loop
    scene.bolt.end(0)
    wait_for(lambda: not scene.bolt.waiting)
    # The loop is blocked while the next call is asked for, and the time is over between the call's creation and its first step.
    go_on = threading.Event()
    loop.call_soon_threadsafe(go_on.wait)
    scene.rig.batches(1)
    assert executor.room == 0
    scene.end_time_of_calls()
    go_on.set()
    # The place becomes free in the call's first step, and that may come after the fail.
    scene.until(lambda: len(scene.spout.heard) == 2 and executor.room == 1)
    assert [fail.message for fail in fails_of(scene.spout)] == [1] and scene.bolt.cancelled == []
    scene.close()


def test_a_late_emit_with_the_calls_own_tuple_as_anchor_raises_where_it_is_made() -> None:
    """E14: the task's thread has not failed the tuple yet."""

    class Late(Calls):
        async def work(self, tup: Any, number: int) -> None:
            try:
                await self.waiting[number]
            except asyncio.CancelledError:
                for anchors in (tup, [tup]):
                    with pytest.raises(EmitError, match="whose execute has ended"):
                        self.collector.emit((number,), anchors=anchors)
                self.collector.emit((number,), anchors=())
                raise

    scene = Scene(Late(timeout_secs=900), ROWS[:3])
    scene.under_way(0, 1, 2)
    scene.end_time_of_calls()
    scene.until(lambda: len(fails_of(scene.spout)) == 3 and len(scene.keep.came) == 3)
    assert scene.rig.errors == []
    scene.close()


def test_an_emit_after_the_calls_own_ack_raises_where_it_is_made() -> None:
    """E14."""

    class Early(Calls):
        async def work(self, tup: Any, number: int) -> None:
            (self.collector.ack if number else self.collector.fail)(tup)
            with pytest.raises(EmitError, match=r"component 'b', task 3: .* after its ack or fail"):
                self.collector.emit((number,))
            self.collector.emit((number,), anchors=())

    scene = Scene(Early(), ROWS[:2])
    scene.until(lambda: len(scene.spout.heard) == 2 and len(scene.keep.came) == 2)
    assert acks_of(scene.spout) == [1] and scene.rig.errors == []
    scene.close()


def test_a_second_ack_or_fail_is_an_error_with_its_line_and_changes_nothing() -> None:
    """E14, C4: the worker's thread acks later, and would not know the line."""

    class Twice(Calls):
        async def work(self, tup: Any, number: int) -> None:
            self.collector.ack(tup)
            self.collector.fail(tup) if number else self.collector.ack(tup)
            await asyncio.sleep(0)

    scene = Scene(Twice(), ROWS[:2])
    scene.until(lambda: len(acks_of(scene.spout)) == 2 and len(scene.rig.errors) == 2)
    place = f"{__file__}:{Twice.work.__code__.co_firstlineno + 2}"
    assert {error.partition(" of Tuple(")[0] for error in scene.rig.errors} == {
        f"{place}: ack",
        f"{place}: fail",
    }
    assert all("which is acked or failed already; it changes nothing" in one for one in scene.rig.errors)
    scene.close()


def test_a_fail_after_the_end_of_its_call_is_an_error() -> None:
    """E14: the tuple is acked."""

    class FailsLater(Calls):
        async def execute(self, tup: Any) -> None:
            asyncio.get_running_loop().call_later(0, self.collector.fail, tup)

    scene = Scene(FailsLater(), ROWS[:1])
    scene.until(lambda: acks_of(scene.spout) == [0] and scene.rig.errors)
    assert "fail of Tuple(" in scene.rig.errors[0]
    assert "whose execute has ended; it changes nothing" in scene.rig.errors[0]
    scene.close()


@pytest.mark.parametrize("method", ["emit", "ack"])
def test_who_awaits_a_method_of_the_collector_hears_that_none_needs_it(method: str) -> None:
    """C4: Python's own words do not say what returns None."""

    class AwaitsEmit(Calls):
        async def work(self, tup: Any, number: int) -> None:
            if method == "emit":
                await self.collector.emit((number,))
            await self.collector.ack(
                tup,
            )

    class AwaitsNothing(Calls):
        async def work(self, tup: Any, number: int) -> None:
            await None  # type: ignore[misc]

    for bolt, says in (AwaitsEmit(), True), (AwaitsNothing(), False):
        scene = Scene(bolt, ROWS[:1])
        scene.until(lambda: scene.rig.errors)  # noqa: B023
        assert ("call emit, ack and fail of the collector without await" in scene.rig.errors[0]) == says
        scene.close()


def test_the_warning_of_a_coroutine_that_nobody_awaits_names_its_line() -> None:
    """Python warns when it drops the coroutine, and that may be anywhere."""

    class Forgets(Calls):
        async def work(self, tup: Any, number: int) -> None:
            self.forgotten = self.ask()
            del self.forgotten

        async def ask(self) -> None:
            pass

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scene = Scene(Forgets(), ROWS[:1])
        scene.until(lambda: caught)
        scene.close()
    line = Forgets.work.__code__.co_firstlineno + 1
    (text,) = (str(one.message) for one in caught if "was never awaited" in str(one.message))
    assert f'File "{__file__}", line {line}, in work' in text


@pytest.mark.parametrize("ordered", [False, True])
def test_a_task_that_a_call_has_started_serves_later_calls(ordered: bool) -> None:
    """E5: as one that sends the requests of many calls at once. What it does for others counts after its own call has ended."""

    class Gathers(Calls):
        async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            await super().prepare(conf, context, collector)
            self.queue: asyncio.Queue[Any] = asyncio.Queue()
            self.sender: Any = None

        async def work(self, tup: Any, number: int) -> None:
            if self.sender is None:
                self.sender = asyncio.create_task(self.send())
                return
            await self.queue.put(tup)
            await self.waiting[number]

        async def send(self) -> None:
            while True:
                tup = await self.queue.get()
                self.collector.emit((tup[0],), anchors=tup)
                if tup[0] % 2:
                    self.collector.fail(tup, "odd")
                    self.collector.report_error("odd")
                self.waiting[tup[0]].set_result(None)

    scene = Scene(Gathers(ordered=ordered), ROWS[:6])
    scene.until(lambda: len(scene.spout.heard) == 6)
    assert sorted(acks_of(scene.spout)) == [0, 2, 4]
    assert sorted(fail.message for fail in fails_of(scene.spout)) == [1, 3, 5]
    assert len(scene.rig.errors) == 3 and sorted(scene.keep.came) == [1, 2, 3, 4, 5]
    scene.close()


def test_exceptions_are_in_a_row_only_if_no_call_has_gone_well_between_them() -> None:
    """W22: also if the results of many calls come at once."""
    scene = Scene(Calls(capacity=5), stormspark_task_max_restarts_in_row=1)
    (task,) = scene.rig.tasks("b")
    for first in (0, 5, 10):
        scene.under_way(*range(first, first + 5))
        for number in range(first, first + 5):
            scene.bolt.end(number, KeyError(number) if number == first + 4 else None)
        ended = threading.Event()
        wait_for(lambda: not scene.bolt.waiting)
        scene.bolt.loop.call_soon_threadsafe(ended.set)
        assert ended.wait(10)
        instances = len(RUNNING)
        scene.until(lambda: task.fatal or len(RUNNING) > instances)  # noqa: B023
    assert task.fatal is None and task.counters.restarts == 3
    assert len(acks_of(scene.spout)) == 12
    scene.close()


def test_calls_end_before_cleanup() -> None:
    class Closes(Calls):
        closed = False

        async def execute(self, tup: Any) -> None:
            try:
                await super().execute(tup)
            except asyncio.CancelledError:
                await asyncio.sleep(0.01)
                self.was_closed = self.closed
                raise

        async def cleanup(self) -> None:
            self.closed, self.left = True, len(self.waiting)

    scene = Scene(Closes(), ROWS[:5])
    scene.under_way(*range(5))
    scene.rig.workers[0].close()
    assert scene.bolt.left == 0 and len(scene.bolt.cancelled) == 5 and not scene.bolt.was_closed
    wait_for(lambda: not _loops())


def test_a_prepare_that_raises_leaves_no_pipe_of_another_bolt() -> None:
    class Broken(Calls):
        async def prepare(self, conf: Any, context: Any, collector: Any) -> None:
            raise OSError("no such host")

    def files() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    builder = two(Calls(), ROWS)
    builder.set_bolt("c", Broken()).shuffle_grouping("b")
    before = files()
    for _ in range(5):
        with pytest.raises(ComponentError, match="no such host"):
            Rig(builder, 1)
    wait_for(lambda: not _loops())
    wait_for(lambda: files() <= before)


# -- spouts --------------------------------------------------------------------------------------------------------


class Flood(AsyncSpout):
    """Never waits, and emits for ever."""

    prefetch = 10

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.emitted = collector, 0
        self.heard: list[Any] = []
        RUNNING.append(self)

    async def next_tuple(self) -> None:
        self.emitted += 1
        self.collector.emit((self.emitted,), message_id=self.emitted)

    async def ack(self, message_id: Any) -> None:
        self.heard.append(message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


def test_a_spout_is_ahead_of_max_pending_by_its_prefetch() -> None:
    """B4: the limit itself is kept."""
    builder = TopologyBuilder()
    builder.set_spout("s", Flood())
    builder.set_bolt("b", Calls(capacity=100)).shuffle_grouping("s")
    rig = _rig(builder, topology_max_spout_pending=5)
    spout = next(one for one in RUNNING if isinstance(one, Flood))
    bolt = next(one for one in RUNNING if isinstance(one, Calls))
    _until(rig, lambda: set(bolt.waiting) == {1, 2, 3, 4, 5})
    wait_for(lambda: spout.emitted == 15)
    rig.batches(5)
    assert set(bolt.waiting) == {1, 2, 3, 4, 5} and spout.emitted == 15
    bolt.end(3)
    _until(rig, lambda: set(bolt.waiting) == {1, 2, 4, 5, 6})
    _until(rig, lambda: spout.heard == [3])
    rig.cluster.abandon()


def test_an_inactive_spout_is_not_called_and_still_hears() -> None:
    """B13."""
    builder = TopologyBuilder()
    builder.set_spout("s", Flood())
    builder.set_bolt("b", Calls(capacity=3)).shuffle_grouping("s")
    rig = _rig(builder)
    spout = next(one for one in RUNNING if isinstance(one, Flood))
    bolt = next(one for one in RUNNING if isinstance(one, Calls))
    _until(rig, lambda: set(bolt.waiting) == {1, 2, 3})
    rig.workers[0].set_active(False)
    emitted = spout.emitted
    bolt.end(1)
    _until(rig, lambda: spout.heard == [1])
    time.sleep(0.05)
    assert spout.emitted <= emitted + 1  # a call may have been under way
    rig.workers[0].set_active(True)
    bolt.end(2)
    _until(rig, lambda: spout.heard == [1, 2])
    rig.cluster.abandon()


class Restless(Flood):
    """Its ``next_tuple`` and its ``ack`` do what the test says."""

    def __init__(self, next_tuple: Any = None, ack: Any = None) -> None:
        self.does, self.hears = next_tuple, ack

    async def next_tuple(self) -> None:
        await (self.does(self) if self.does else super().next_tuple())

    async def ack(self, message_id: Any) -> None:
        await super().ack(message_id)
        if self.hears:
            await self.hears(self)


def _spout(spout: AsyncSpout, **conf: Any) -> Rig:
    builder = TopologyBuilder()
    builder.set_spout("s", spout)
    builder.set_bolt("keep", Keep()).shuffle_grouping("s")
    return _rig(builder, **conf)


@pytest.mark.slow
def test_a_spout_that_never_gets_through_next_tuple_stops_the_topology() -> None:
    """W22."""

    async def fails(spout: Any) -> None:
        spout.collector.emit((1,))
        await asyncio.sleep(0.2)  # some batches
        raise KeyError("x")

    rig = _spout(Restless(fails), stormspark_task_max_restarts_in_row=2)
    (task,) = rig.tasks("s")
    _until(rig, lambda: task.fatal)
    assert "3 times in a row" in task.fatal.text and len(RUNNING) == 3
    rig.cluster.abandon()


def test_an_ack_that_raises_restarts_a_spout_that_never_rests() -> None:
    """W22: it is not called any more, and so the exception has its turn."""

    async def many(spout: Any) -> None:
        for _ in range(100):
            await Flood.next_tuple(spout)
        await asyncio.sleep(600 if spout.emitted > 100_000 else 0.001)

    async def raises(_: Any) -> None:
        raise KeyError("ack")

    spout = Restless(many, raises)
    spout.prefetch = 1_000_000
    rig = _spout(spout, topology_max_spout_pending=10)
    _until(rig, lambda: len(RUNNING) > 1)
    assert RUNNING[0].emitted < 100_000
    rig.cluster.abandon()


def test_a_spout_that_hears_slowly_is_asked_slowly() -> None:
    """B4: acks that wait for the spout do not pile up for ever."""

    async def slowly(spout: Any) -> None:
        await spout.may_hear.wait()

    class Slow(Restless):
        async def open(self, conf: Any, context: Any, collector: Any) -> None:
            await super().open(conf, context, collector)
            self.loop, self.may_hear = asyncio.get_running_loop(), asyncio.Event()

    rig = _spout(Slow(ack=slowly), topology_max_spout_pending=10)
    spout = RUNNING[0]
    _until(rig, lambda: spout.emitted >= 1000)
    rig.batches(20)
    assert spout.emitted < 1100
    spout.loop.call_soon_threadsafe(spout.may_hear.set)
    _until(rig, lambda: spout.emitted > 3000)
    rig.cluster.abandon()


@pytest.mark.slow
def test_close_waits_not_for_ever_for_a_next_tuple_that_ignores_its_cancellation() -> None:
    async def stays(spout: Any) -> None:
        spout.stays = True
        while not spout.closed:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)

    class Stays(Restless):
        stays = closed = False

        async def close(self) -> None:
            self.closed = True

    rig = _spout(Stays(stays))
    wait_for(lambda: RUNNING[0].stays)
    rig.workers[0].close()
    assert RUNNING[0].closed
    wait_for(lambda: not _loops())


# -- what is refused -----------------------------------------------------------------------------------------------


class NoCoroutine(AsyncBolt):
    def execute(self, tup: Any) -> None:  # type: ignore[override]
        pass


class NoCoroutines(NoCoroutine):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:  # type: ignore[override]
        pass


class Yielding(AsyncBolt):
    async def execute(self, tup: Any) -> Any:
        yield tup


class Forgotten(Bolt):
    async def execute(self, tup: Any) -> None:  # type: ignore[override]
        pass


class ForgottenSpout(Spout):
    def open(self, conf: Any, context: Any, collector: Any) -> None:
        pass

    async def next_tuple(self) -> None:  # type: ignore[override]
        pass


class ForgottenGenerator(BasicBolt):
    async def execute(self, tup: Any, collector: Any) -> Any:
        yield 1


YIELDS = ForgottenGenerator.execute.__code__.co_firstlineno


class ForgottenState(StatefulComponent, BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        pass

    def init_state(self, state: Any) -> None:
        pass

    async def pre_save(self, checkpoint_id: int) -> None:  # type: ignore[override]
        pass


class ForgottenProcess(TickTupleAwareBolt):
    async def process(self, tup: Any) -> None:  # type: ignore[override]
        pass


class ForgottenTick(TickTupleAwareBolt):
    def process(self, tup: Any) -> None:
        pass

    async def on_tick_tuple(self, tick: Any) -> None:  # type: ignore[override]
        pass


class ForgottenFrame(PandasBolt):
    async def execute_frame(self, frame: Any, collector: Any) -> None:  # type: ignore[override]
        pass


class BasicStyle(AsyncBolt):
    async def execute(self, tup: Any, collector: Any) -> None:  # type: ignore[override]
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


IN_BASIC_STYLE = f"{__file__}:{BasicStyle.execute.__code__.co_firstlineno}"


class ShortPrepare(Calls):
    async def prepare(self, conf: Any, context: Any) -> None:  # type: ignore[override]
        pass


class NoMessageId(AsyncSpout):
    async def next_tuple(self) -> None:
        pass

    async def ack(self) -> None:  # type: ignore[override]
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


class Both(Calls, Bolt):  # type: ignore[misc]
    pass


class Stateful(Calls, StatefulBolt[Any]):  # type: ignore[misc]
    def init_state(self, state: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("component", "says"),
    [
        (NoCoroutine(), "execute must be a coroutine: write `async def execute`"),
        (BasicStyle(), f"execute of class BasicStyle ({IN_BASIC_STYLE}) takes tup, collector: write "),
        (BasicStyle(), "`async def execute(self, tup)`, and keep the collector that prepare gets"),
        (ShortPrepare(), "takes conf, context: write `async def prepare(self, conf, context, collector)`"),
        (NoMessageId(), "takes nothing: write `async def ack(self, message_id)`"),
        (NoCoroutines(), "prepare and execute must be coroutines: write `async def prepare` and `async def execute`"),
        (Yielding(), "execute must be a coroutine: execute must not yield; emit by the collector"),
        (Forgotten(), "is a coroutine function, which nobody would await: write a plain `def execute`, or derive Forgotten"),
        (ForgottenSpout(), "or derive ForgottenSpout from AsyncSpout"),
        (ForgottenGenerator(), f"of class ForgottenGenerator ({__file__}:{YIELDS}) is an asynchronous generator function"),
        (ForgottenState(), "pre_save of class ForgottenState"),
        (ForgottenProcess(), "process of class ForgottenProcess"),
        (ForgottenTick(), "on_tick_tuple of class ForgottenTick"),
        (ForgottenFrame(), "execute_frame of class ForgottenFrame"),
        (Both(), "it is both an AsyncBolt and a Bolt"),
        (Stateful(), "it is both an AsyncBolt and a Bolt"),
        (Calls(capacity=0), "capacity must be a whole number above 0, got 0"),
        (Calls(capacity=2.5), "capacity must be a whole number above 0, got 2.5"),
        (Calls(timeout_secs=0), "timeout_secs must be a number of seconds above 0, or None, got 0"),
        (Calls(ordered="no"), "ordered must be True or False, got 'no'"),
        (Calls(ordered=1), "ordered must be True or False, got 1"),
        (Calls(timeout_secs="1"), "timeout_secs must be a number of seconds above 0, or None, got '1'"),
    ],
)  # fmt: skip
def test_what_can_not_be_async_is_refused_with_the_users_line(component: Any, says: str) -> None:
    """A2."""
    builder = TopologyBuilder()
    add: Any = builder.set_spout if isinstance(component, Spout | AsyncSpout) else builder.set_bolt
    with pytest.raises(InvalidTopologyError) as raised:
        add("x", component)
    assert "test_async_components.py" in str(raised.value) and says in str(raised.value)


class ChoosesLater(CustomStreamGrouping):
    async def choose_tasks(self, task: int, values: Any) -> list[int]:  # type: ignore[override]
        return []


def test_a_custom_grouping_that_would_choose_asynchronously_is_refused() -> None:
    """D13: it could only choose tasks that nobody ever learns."""
    bolt = TopologyBuilder().set_bolt("b", Forgetful())
    with pytest.raises(
        InvalidTopologyError,
        match=r"test_async_components.py.*choose_tasks of class ChoosesLater .*is a coro",
    ):
        bolt.custom_grouping("a", ChoosesLater())


class HooksLater(TaskHook):
    async def bolt_execute(self, info: Any) -> None:  # type: ignore[override]
        pass


class Forgetful(BasicBolt):
    """Registers ``what`` in ``prepare``."""

    def __init__(self, what: str = "") -> None:
        self.what = what

    def prepare(self, conf: Any, context: Any) -> None:
        if self.what == "hook":
            context.add_task_hook(HooksLater())
        elif self.what == "timer":
            context.set_timer(1, self.later)
        else:
            context.register_gauge("g", self.later)

    async def later(self) -> int:
        return 1

    def execute(self, tup: Any, collector: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("hook", "a hook's bolt_execute of class HooksLater (FILE:"),
        ("timer", "a timer's callback, later (FILE:"),
        ("gauge", "the function of metric 'g', later (FILE:"),
    ],
)
def test_what_can_not_be_async_is_refused_where_it_is_registered(what: str, says: str) -> None:
    """J18, J21, W20."""
    with pytest.raises(ComponentError) as raised:
        Rig(two(Forgetful(what), []), 1)
    assert says.replace("FILE", __file__) in str(raised.value)
    assert "is a coroutine function, which nobody would await" in str(raised.value)


class Helped(Bolt):
    """Has coroutines for its own use, with names that other kinds of components use."""

    async def process(self, tup: Any) -> None:
        self.collector.ack(tup)

    async def close(self) -> None:
        pass

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        asyncio.run(self.process(tup))


def test_coroutines_that_no_worker_calls_are_the_components_own_affair() -> None:
    rig = Rig(two(Helped(), ROWS), 1)
    rig.batches(2)
    assert len(acks_of(rig.users("a")[0])) == 20
    rig.cluster.abandon()


def test_an_async_bolt_is_no_spout_and_the_other_way_round() -> None:
    builder = TopologyBuilder()
    with pytest.raises(InvalidTopologyError, match="must be an instance of Spout, SourceSpout or AsyncSpout"):
        builder.set_spout("x", Calls())  # type: ignore[arg-type]
    with pytest.raises(InvalidTopologyError, match="a spout is added by set_spout"):
        builder.set_bolt("x", Flood())  # type: ignore[arg-type]


class Misspelt(Calls):
    timeout, capactiy, url, _capacity = 5, 10, "http://localhost", 3


class Spelt(Calls):
    timeout, timeout_secs = 5, 3.0


@pytest.mark.parametrize(
    ("component", "named"),
    [(Misspelt(), ["timeout", "capactiy"]), (Spelt(), [])],
)
def test_advice_names_the_settings_that_are_probably_misspelt(component: Any, named: list[str]) -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout([(1,)], Fields("n")))
    builder.set_bolt("calls", component).shuffle_grouping("numbers")
    said = [one for one in advice(plan_topology(builder.create_topology("t"))) if "the attribute" in one]
    assert ["bolt 'calls': the attribute " + name in one for name, one in zip(named, said, strict=True)] == [
        True
    ] * len(named)
