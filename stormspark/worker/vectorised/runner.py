"""The runner of an `ArrowBolt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stormspark.api import ArrowBolt, TopologyContext
from stormspark.worker.bolts.runner import Runner

if TYPE_CHECKING:
    from stormspark.worker.vectorised.tasks import ArrowBoltTask

__all__ = ["ArrowRunner"]


class ArrowRunner(Runner):
    """The runner of a vectorised bolt. It only prepares the bolt, because the task itself executes the record batches.

    The bolt holds no rows, because all rows are acked or failed when ``execute_batch`` returns. The bolt's collector looks up
    outlets when it needs them, and checks the thread at each emit. So `connect` and `guard` have nothing to do.
    """

    def __init__(self, task: ArrowBoltTask, bolt: ArrowBolt) -> None:
        super().__init__(task)
        self._bolt = bolt

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self._bolt.prepare(conf, context)
