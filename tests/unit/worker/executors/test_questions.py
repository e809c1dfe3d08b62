"""A spout's call asks its task for something while the worker waits for that call (C35)."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stormspark import TopologyBuilder
from stormspark.api.state import TwoPhaseStatefulComponent
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.executors.notes import InstanceEnded, Notes
from stormspark.worker.executors.spout_task import ThreadedSpoutTask
from tests.repeatable_spouts import NumbersFromState
from tests.unit.worker.executors.runs import Repeat, Told, running, until


class SetsTimers(TwoPhaseStatefulComponent, NumbersFromState):
    """Sets a timer in the call ``where``."""

    def __init__(self, where: str, told: Told) -> None:
        self.where, self.told = where, told

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.context = context

    def next_tuple(self) -> None:
        if self.n < 3:
            self.emit_next()

    def pre_save(self, checkpoint_id: int) -> None:
        super().pre_save(checkpoint_id)
        self.asks("pre_save")

    def post_save(self, checkpoint_id: int) -> None:
        self.asks("post_save")

    def pre_restore(self, checkpoint_id: int) -> None:
        """Nothing is restored."""

    def asks(self, call: str) -> None:
        """Set a timer, if this is the call for it."""
        if call == self.where:
            self.context.set_timer(3600, self.next_tuple)
            self.told(call)

    def ack(self, message_id: Any) -> None:
        self.told("ack", message_id)


@pytest.mark.parametrize("where", ["pre_save", "post_save"])
def test_a_spout_may_set_a_timer_while_the_worker_waits_for_it(where: str) -> None:
    told, builder = Told(f"timers in {where}"), TopologyBuilder()
    builder.set_spout("numbers", SetsTimers(where, told))
    builder.set_bolt("end", Repeat()).shuffle_grouping("numbers")
    with running(builder.create_topology("timers")):
        until(lambda: ("ack", 2) in told.all)
        assert (where,) in told.all


class Both(SetsTimers):
    """Emits before it asks."""

    def asks(self, call: str) -> None:
        if call == "pre_save":
            self.collector.emit((7,))
        super().asks(call)


def test_what_the_spout_has_noted_before_its_question_waits_until_it_may_emit() -> None:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Both("pre_save", Told("both")))
    builder.set_bolt("end", Repeat()).shuffle_grouping("numbers")
    conf = {"stormspark.executor.threads": "always"}
    worker = Worker(plan_topology(builder.create_topology("both"), conf), 0, side_by_side=True)
    worker.open()
    try:
        (spout,), (end,) = worker.wiring.spouts, worker.wiring.bolts
        assert isinstance(spout, ThreadedSpoutTask)
        worker._executors.let_emit((), begin_turns=False)
        assert spout.state is not None
        spout._run(spout.spout.pre_save, 1)  # type: ignore[attr-defined]
        assert end.queue.waiting == 0 and len(spout.notes) == 2
        worker._executors.let_emit([spout], begin_turns=False)
        worker._executors.take_in()
        assert end.queue.waiting + end.queue.executed == 1
    finally:
        worker.close()


def test_a_question_that_is_answered_is_neither_answered_again_nor_refused() -> None:
    notes = Notes("numbers[0]", lambda notes: None)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(notes.ask(lambda: answers.append("called"))))
    asking.start()
    until(lambda: len(notes))
    notes.answer_questions()
    assert notes.take() == 1
    notes.end()
    asking.join()
    assert answers == ["called", None]
    with pytest.raises(InstanceEnded):
        notes.ask(lambda: None)
