"""The choice of the runner for each kind of bolt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormspark.api import BasicBolt, Bolt
from stormspark.spi import AutoAckBolt, KeepsOutside, WorksOutside
from stormspark.worker.bolts.automatic import AutomaticRunner
from stormspark.worker.bolts.basic import BasicRunner
from stormspark.worker.bolts.kept import KeptRunner
from stormspark.worker.bolts.outside import OutsideRunner
from stormspark.worker.bolts.plain import PlainRunner

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.bolts.runner import Runner

__all__ = ["runner_for"]


def runner_for(task: BoltTask, bolt: Bolt | BasicBolt) -> Runner:
    """Return a runner for ``bolt``, an instance of ``task`` that is about to be prepared."""
    if isinstance(bolt, BasicBolt):
        return BasicRunner(task, bolt)
    if isinstance(bolt, AutoAckBolt):
        return AutomaticRunner(task, bolt)
    if isinstance(bolt, KeepsOutside) and bolt.keeps:
        return KeptRunner(task, bolt)
    if isinstance(bolt, WorksOutside):
        return OutsideRunner(task, bolt)
    return PlainRunner(task, bolt)
