"""Each kind of bolt has a runner of its own, which its task chooses once for each instance."""

from __future__ import annotations

from typing import Any

import pytest

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
from tests.unit.worker.test_outside import Keeping, Outside


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
