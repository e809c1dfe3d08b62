"""What a run of a query knows of its batches; its batches themselves need Spark."""

from __future__ import annotations

import gc
import pickle
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.acker.records import AckerTime
from stormspark.backpressure import SpoutLoad
from stormspark.driver.throttle import Throttle
from stormspark.errors import FencedError
from stormspark.plan import plan_topology
from stormspark.spark import query_run
from stormspark.spark.gate import GateOpenedError
from stormspark.spark.query_run import QueryRun, called_by_spark
from stormspark.worker.step import WorkerReport
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import two


class Run(QueryRun):
    """Whose rounds go well."""

    def _work_off(self) -> list[Any]:
        return []

    def _end_batch(self, *, idle: bool, at_rest: bool) -> None:
        pass


class Round(QueryRun):
    """Whose rounds are real, and whose pauses are short."""

    def _end_batch(self, *, idle: bool, at_rest: bool) -> None:
        pass


def test_a_batch_has_succeeded_when_spark_asks_for_the_next_one() -> None:
    """Before that its commit may fail, and then it comes again however often: each time as the first batch of a run."""
    limits = MagicMock()
    limits.observe.return_value = []
    flags = threading.Event(), threading.Event(), threading.Event()
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), {})
    run = Run(MagicMock(), plan, MagicMock(), MagicMock(), MagicMock(), limits, *flags)
    assert not run.succeeded
    run.batch(MagicMock(), 7)
    assert not run.succeeded
    run.batch(MagicMock(), 8)
    assert run.succeeded


def test_the_end_of_the_input_hears_when_a_batch_has_ended() -> None:
    """A spout that does not say that it is done gets a second, as on the local engine."""
    limits = MagicMock()
    limits.observe.return_value = []
    flags = threading.Event(), threading.Event(), threading.Event()
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), {})
    run = Run(MagicMock(), plan, MagicMock(), MagicMock(), MagicMock(), limits, *flags)
    run.end_of_input = MagicMock(is_done=False, flushes=0)
    before = time.monotonic()
    run.batch(MagicMock(), 7)
    assert before <= run.end_of_input.observe.call_args.kwargs["now"] <= time.monotonic()


def test_what_spark_has_read_is_not_held_between_two_batches() -> None:
    """A pause may be long, and what a batch has shuffled is only cleaned up when nobody holds it any more."""
    limits = MagicMock()
    limits.observe.return_value = []
    flags = threading.Event(), threading.Event(), threading.Event()
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), {})
    run = Round(MagicMock(), plan, MagicMock(), MagicMock(), Throttle(plan), limits, *flags)
    frames = MagicMock()
    reports = [WorkerReport(worker, 0, 0, {}, (), None, 0) for worker in range(plan.workers)]
    frames.collect.return_value = [MagicMock(payload=pickle.dumps(report)) for report in reports]
    run.batch(frames, 0)
    frames.collect.assert_called_once()
    assert all(held is not frames for held in vars(run).values())


class AtTheGateError(Exception):
    """The run waits at the gate."""


def test_a_driver_that_was_frozen_writes_no_letters_over_those_of_its_successor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a transaction: the state table refuses the batch, but only after the letters were written."""

    def gate(run: QueryRun) -> None:
        raise AtTheGateError

    monkeypatch.setattr(QueryRun, "_to_the_gate", gate)
    flags = threading.Event(), threading.Event(), threading.Event()
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), {"stormspark.exactly.once": True})
    run = Round(MagicMock(), plan, MagicMock(), MagicMock(), MagicMock(), MagicMock(), *flags)
    run.commits, run.fence, run.letters = MagicMock(), MagicMock(), MagicMock()
    run.fence.check.side_effect = FencedError("another driver")
    with pytest.raises(AtTheGateError):
        run.commit(7, [])
    assert isinstance(run.error, FencedError)
    run.letters.write.assert_not_called()
    run.commits.commit.assert_not_called()


class Rounds(Round):
    """Whose rounds take 0.3 s each, and report what ``held``, ``late`` and ``idle`` say."""

    now = 0.0
    held = late = idle = False
    asked: list[bool]
    #: The acker's times that the rounds were ordered to report at.
    times: list[Any]

    def run_round(self, orders: Any) -> Any:
        self.asked.append(orders.asks_spouts)
        self.times.append(orders.acker_time)
        return super().run_round(orders)

    def _frames_of_round(self) -> Any:
        return self.frames()

    def frames(self) -> Any:
        frames = MagicMock()
        frames.collect.side_effect = self._collect
        return frames

    def _collect(self) -> Any:
        Rounds.now += 0.3
        loads = {task: SpoutLoad(7, False, False, held=self.held) for task in self.plan.components["a"].tasks}
        late = self.late and self.asked[-1]
        return [
            MagicMock(
                payload=pickle.dumps(
                    WorkerReport(
                        w,
                        0,
                        0,
                        {},
                        (),
                        None,
                        0,
                        loads=loads if w == 0 else {},
                        emitted_late=late,
                        idle=self.idle,
                        acker=((1, b"the rows that are open"),) if self.times[-1] is not None else (),
                    )
                )
            )
            for w in range(self.plan.workers)
        ]


def rounds(monkeypatch: pytest.MonkeyPatch, **conf: Any) -> Rounds:
    limits = MagicMock()
    limits.observe.return_value = []
    flags = threading.Event(), threading.Event(), threading.Event()
    settings = {"topology.workers": 2, "topology.max.spout.pending": 7, **conf}
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), settings)
    run = Rounds(MagicMock(), plan, MagicMock(), MagicMock(), Throttle(plan), limits, *flags)
    run.asked, run.times, Rounds.now = [], [], 0.0
    monkeypatch.setattr(query_run, "time", SimpleNamespace(monotonic=lambda: Rounds.now))
    run.batch(run.frames(), 0)  # the first round includes the start of workers, and shows nothing
    run.asked.clear()
    return run


def test_a_batch_has_several_rounds_while_max_spout_pending_holds_a_spout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A round alone costs less than a batch. No batch gets longer than its target by more than a round (B4)."""
    run = rounds(monkeypatch)
    run.held = True
    run.batch(run.frames(), 1)
    assert len(run.asked) == 4, "4 x 0.3 s, with a target of 1 s"
    run.asked.clear()
    run.held = False
    run.batch(run.frames(), 2)
    assert len(run.asked) == 1


@pytest.mark.parametrize(
    "conf", [{"stormspark.trigger.interval.ms": 500}, {"topology.max.spout.pending": None}]
)
def test_a_batch_has_one_round_if_batches_come_at_intervals_or_there_is_no_limit(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, Any]
) -> None:
    run = rounds(monkeypatch, **conf)
    run.held = True
    run.batch(run.frames(), 1)
    assert len(run.asked) == 1


def test_a_batch_in_which_nothing_happens_ends_although_a_spout_is_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bolts keep its trees, perhaps for long. A pause can only follow a batch."""
    run = rounds(monkeypatch)
    run.held = run.idle = True
    run.batch(run.frames(), 1)
    assert len(run.asked) == 1


def test_rounds_in_which_nothing_happens_are_paced_although_their_batch_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B13: a deactivated spout keeps its rows, and the batch can't end. Spark would be asked for rounds without a break."""
    run = rounds(monkeypatch)
    run.idle = True
    prolonging = MagicMock(stalled=True, wanted=True)
    pauses: list[float] = []

    def observe(reports: object) -> None:
        prolonging.wanted = len(run.asked) < 4

    prolonging.observe.side_effect = observe
    monkeypatch.setattr(run, "_prolonging", prolonging)
    monkeypatch.setattr(run.stirred, "wait", pauses.append)
    run.batch(run.frames(), 1)
    assert len(pauses) == 2, (
        "between four rounds, but not after the first one, before which something happened"
    )
    assert all(pauses)


def test_a_topology_that_is_to_stop_completes_what_spouts_emitted_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch gets no more rounds for held spouts, but one in which no spout is called."""
    run = rounds(monkeypatch)
    run.held = run.late = True
    collect = run._collect

    def stops() -> Any:
        run.stop_wanted.set()
        return collect()

    monkeypatch.setattr(run, "_collect", stops)
    run.batch(run.frames(), 1)
    assert run.asked == [True, False]
    assert not run._went_on


def test_the_round_that_completes_late_tuples_reports_to_the_durable_acker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The journal gets the last reports of a batch. Without the rows that are open, Spark would commit the offsets of rows that
    nobody has (E28).
    """
    run = rounds(monkeypatch)
    run.acker = MagicMock()
    run.acker.time_to_report.return_value = AckerTime(90.0, 1)
    run.late = True
    collect = run._collect

    def stops() -> Any:
        run.stop_wanted.set()
        return collect()

    monkeypatch.setattr(run, "_collect", stops)
    run.times.clear()
    run.batch(run.frames(), 1)
    assert run.asked == [True, False]
    (reports, _), _ = run.acker.write.call_args
    assert all(report.acker for report in reports)
    assert not run._went_on


class Stopped(QueryRun):
    """Whose query is stopped in each batch."""

    def batch(self, frames: Any, number: int) -> None:
        if number == 7:
            raise GateOpenedError


def test_what_spark_keeps_of_a_run_does_not_keep_the_run() -> None:
    """Py4J keeps the function that Spark calls, and its last error."""
    flags = threading.Event(), threading.Event(), threading.Event()
    plan = plan_topology(two(Collect(), Script([])).create_topology("run"), {})
    run = Stopped(MagicMock(), plan, MagicMock(), MagicMock(), MagicMock(), MagicMock(), *flags)
    kept, is_gone = called_by_spark(run), weakref.ref(run)
    kept(MagicMock(), 6)
    with pytest.raises(GateOpenedError) as error:
        kept(MagicMock(), 7)
    del run
    gc.collect()
    assert is_gone() is None, error
    with pytest.raises(GateOpenedError):
        kept(MagicMock(), 8)


@pytest.mark.parametrize(
    ("tells_starts", "available_now", "expected"),
    [
        (False, False, {"processingTime": "700 milliseconds"}),
        (False, True, {"processingTime": "0 milliseconds"}),
        (True, False, {"processingTime": "700 milliseconds"}),
        (True, True, {"availableNow": True}),
    ],
)
def test_what_stands_for_available_now_does_not_wait_for_the_trigger_interval(
    monkeypatch: pytest.MonkeyPatch, tells_starts: bool, available_now: bool, expected: dict[str, Any]
) -> None:
    frames, plan = MagicMock(), MagicMock(**{"settings.trigger_interval_ms": 700})
    monkeypatch.setattr(query_run, "TELLS_STARTS", tells_starts)
    for name, value in (("planned_offsets", []), ("open_sources", []), ("data_query", frames)):
        monkeypatch.setattr(query_run, name, MagicMock(return_value=value))
    monkeypatch.setattr(query_run, "Prolonging", MagicMock())
    monkeypatch.setattr(query_run, "called_by_spark", MagicMock())
    run = QueryRun.__new__(QueryRun)
    run.feedback, run.plan, run.available_now = None, plan, available_now
    run.session = run.limits = run.throttle = run.attempt = run.shared = MagicMock()  # type: ignore[assignment]
    run._started = threading.Event()
    run.start("checkpoint")
    writer = frames.writeStream.queryName().foreachBatch().option()
    assert writer.trigger.call_args.kwargs == expected
