"""The runner of a `BasicBolt`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stormspark.api import BasicBolt, TopologyContext
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.tuples.collectors import BasicCollector
from stormspark.worker.tuples.execution import execute_basic

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.tuples.outlets import Delivery

__all__ = ["BasicRunner"]


class BasicRunner(Runner):
    """The runner of a bolt whose tuples are acked when ``execute`` returns (C5). So such a bolt never holds a tuple."""

    acks_on_return = True

    def __init__(self, task: BoltTask, bolt: BasicBolt) -> None:
        super().__init__(task)
        self._bolt = bolt
        self._ledger = task.ledger
        self._basic = BasicCollector(task, self._ledger)

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self._bolt.prepare(conf, context)

    def _connect(self) -> None:
        self._basic.connect(guarded=self.task.guarded)

    def run(self, chunk: list[Delivery], begun: float) -> int:
        """See `Runner.run`."""
        return execute_basic(chunk, self._bolt.execute, self._basic, self._ledger, self)
