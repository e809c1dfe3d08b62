"""The runner of a `Bolt`. A `Bolt` calls ``ack`` and ``fail`` itself."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from stormspark.api import Bolt, TopologyContext, Tuple
from stormspark.api.tuple_state import SETTLED
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.tuples.collectors import BoltCollector
from stormspark.worker.tuples.execution import execute_plain

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.tuples.outlets import Delivery

__all__ = ["PlainRunner"]


class PlainRunner(Runner):
    """The runner of a bolt that acks and fails its tuples through a collector, in ``execute`` or later."""

    collector: BoltCollector

    def __init__(self, task: BoltTask, bolt: Bolt) -> None:
        super().__init__(task)
        self._bolt = bolt
        # For each held tuple, the time when its chunk began. Stories of failed trees contain this time.
        self._held: MutableMapping[Tuple, float] = self._new_held()
        self._ledger = task.ledger
        self.collector = BoltCollector(task, self._ledger, self._held)
        self.collector.guarded = task.guarded

    def _new_held(self) -> MutableMapping[Tuple, float]:
        # The dictionary is weak, so a tuple that the bolt drops without an ack or a fail leaves nothing behind. The tuple's tree
        # then times out.
        return self.task.held_weakly

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self._bolt.prepare(conf, context, self.collector)

    def run(self, chunk: list[Delivery], begun: float) -> int:
        """See `Runner.run`."""
        return execute_plain(chunk, self._bolt.execute, self._held, begun, self)

    def held(self) -> list[tuple[Tuple, float]]:
        """See `Runner.held`."""
        return list(self._held.items())

    def forget(self, tup: Tuple) -> None:
        """See `Runner.forget`."""
        self._held.pop(tup, None)

    def forget_all(self) -> None:
        """See `Runner.forget_all`."""
        for tup in list(self._held):
            tup.state = SETTLED
        self._held.clear()
