"""Each kind of bolt has a runner of its own, which its task chooses once for each instance."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

from stormspark import BasicBolt, Bolt
from stormspark.errors import EmitError
from stormspark.spi import BatchAware
from stormspark.worker.bolts.automatic import AutomaticRunner
from stormspark.worker.bolts.basic import BasicRunner
from stormspark.worker.bolts.chunks import ChunkSize
from stormspark.worker.bolts.kept import KeptRunner
from stormspark.worker.bolts.kinds import runner_for
from stormspark.worker.bolts.outside import OutsideRunner
from stormspark.worker.bolts.plain import PlainRunner
from stormspark.worker.bolts.runner import Runner
from tests.unit.worker.components import Call, Collect
from tests.unit.worker.rig import Rig, two
from tests.unit.worker.test_auto_ack import Auto
from tests.unit.worker.test_outside import RAISED, ROWS, Keeping, Outside


class KeepingForNobody(Keeping):
    """Wants each tuple, although its class could do without."""

    keeps = False


@pytest.mark.parametrize(
    ("bolt", "kind"),
    [
        (Collect(), BasicRunner),
        (Call(print), PlainRunner),
        (Auto(), AutomaticRunner),
        (Outside(), OutsideRunner),
        (Keeping(), KeptRunner),
        (KeepingForNobody(), OutsideRunner),
    ],
)
def test_each_kind_of_bolt_has_its_runner(bolt: Any, kind: type[Runner]) -> None:
    (task,) = Rig(two(Collect(), []), 1).tasks("b")
    assert type(runner_for(task, bolt)) is kind


def test_a_task_without_an_instance_holds_nothing_and_works_nowhere() -> None:
    (task,) = Rig(two(Collect(), []), 1).tasks("b")
    runner = Runner(task)
    assert runner.held() == [] and runner.outside == 0 and runner.take_in() == 0
    assert runner.fileno() == -1 and not runner.works_outside and not runner.waits_for_answer


def test_a_chunk_is_as_long_as_its_tuples_are_quick() -> None:
    size = ChunkSize()
    assert (size.most, size.timed_alone) == (16, False)
    size.add(1e-6, 16)
    assert (size.most, size.timed_alone) == (1024, False)
    size.add(1e-3, 64)
    assert (size.most, size.timed_alone) == (10, True)
    size.add(10.0, 64)
    assert size.most == 1
    size.add(0.0, 64)  # the clock stands still, as in simulations
    assert (size.most, size.timed_alone) == (16, False)


class OutsideOnce(Outside):
    """Its second instance can't start."""

    prepared: ClassVar[list[int]] = []

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.prepared.append(1)
        if len(self.prepared) > 1:
            msg = "no second child"
            raise OSError(msg)
        super().prepare(conf, context, collector)


class KeepingOnce(OutsideOnce, Keeping):
    """The same, for a bolt that keeps deliveries."""


@pytest.mark.parametrize("kind", [OutsideOnce, KeepingOnce])
def test_a_restart_that_fails_leaves_nothing_half_made(kind: type[OutsideOnce]) -> None:
    """The task tells the reason, and the worker asks nothing of a bolt that was never prepared (W22)."""
    OutsideOnce.prepared.clear()
    RAISED.clear()
    rig = Rig(two(kind(raises=(3,)), ROWS), 1)
    (report,) = rig.cluster.run_batch()
    (task,) = rig.tasks("b")
    assert task.fatal is None and task.is_down
    assert any(
        "starts again in" in error.text
        and "in prepare\n" in error.text
        and "OSError: no second child" in error.text
        for error in report.errors
    )
    assert not task.works_outside and task.held() == []


def test_the_collector_of_end_batch_refuses_other_threads_that_start_there() -> None:
    """A BasicBolt's emits belong to the thread that calls it, also if its first thread starts in end_batch (C5, W26)."""

    class Threads(BatchAware):
        takes_part, announces = True, False
        heard: ClassVar[list[str]] = []

        def begin_batch(self, attempt: Any, announced: Any = None) -> None: ...

        def announcement(self) -> Any: ...

        def end_batch(self, collector: Any) -> None:
            def emit() -> None:
                try:
                    collector.emit((7,))
                except EmitError as error:
                    self.heard.append(str(error))

            thread = threading.Thread(target=emit)
            thread.start()
            thread.join()

    rig = Rig(two(Silent(), [(1,)]), 1)
    rig.batches(1)
    (task,) = rig.tasks("b")
    task.bolt = Threads()
    rig.workers[0].turns.end_batch(task)
    assert len(Threads.heard) == 1 and "a BasicBolt may emit only in execute" in Threads.heard[0]


class Silent(BasicBolt):
    """Emits nothing."""

    def execute(self, tup: Any, collector: Any) -> None: ...

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["x"])


class OneCollector(Bolt):
    """Keeps the collector of its first instance in its class, and acks each tuple one call later."""

    first: ClassVar[list[Any]] = []
    seen: ClassVar[list[int]] = []

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        if not self.first:
            self.first.append(collector)
        self.last = None

    def execute(self, tup: Any) -> None:
        self.seen.append(tup[0])
        if self.last is not None:
            self.first[0].ack(self.last)
        self.last = tup
        if tup[0] == 3 and self.seen.count(3) == 1:
            raise ValueError("once")


def test_a_collector_of_an_earlier_instance_acks_what_a_later_one_holds() -> None:
    """A task's collector belongs to the task (C14): a global that keeps the first one goes on working after a restart."""
    OneCollector.first.clear()
    OneCollector.seen.clear()
    rig = Rig(two(OneCollector(), [(n,) for n in range(8)]), 1)
    rig.batches(2)
    (task,) = rig.tasks("b")
    assert task.counters.acked == 6 and len(task.held()) == 1
    assert all("another task" not in error for error in rig.errors)
