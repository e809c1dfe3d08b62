"""The runner of a bolt, for an executor with a thread of its own. The runner calls ``execute`` on this thread, for one tuple at
a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stormspark.api import BasicBolt, Bolt, BoltExecuteInfo, TopologyContext, Tuple
from stormspark.api.tuple_state import HELD, SETTLED
from stormspark.spi import ACK, AutoAckBolt
from stormspark.worker.bolts.runner import Runner
from stormspark.worker.executors.bolt_collectors import ThreadedBasicCollector, ThreadedBoltCollector
from stormspark.worker.executors.notes import Notes
from stormspark.worker.tuples.collectors import BoltCollector
from stormspark.worker.tuples.outlets import Delivery

if TYPE_CHECKING:
    from stormspark.worker.executors.bolt_task import ThreadedBoltTask

__all__ = ["ThreadedRunner", "threaded_runner_for"]


def threaded_runner_for(task: ThreadedBoltTask, bolt: Bolt | BasicBolt, notes: Notes) -> ThreadedRunner:
    """Return the runner for ``bolt``, an instance that is about to be prepared."""
    if isinstance(bolt, BasicBolt):
        return _BasicRunner(task, bolt, notes)
    if isinstance(bolt, AutoAckBolt):
        return _AutomaticRunner(task, bolt, notes)
    return ThreadedRunner(task, bolt, notes)


class ThreadedRunner(Runner):
    """The runner of a `Bolt`, which acks by itself.

    The executor's thread prepares the bolt, and calls `new_tuple`, `call` and `call_hooks`. The worker's thread calls all other
    methods.
    """

    task: ThreadedBoltTask

    def __init__(self, task: ThreadedBoltTask, bolt: Any, notes: Notes) -> None:
        super().__init__(task)
        self.bolt = bolt
        self.notes = notes
        self._inner = BoltCollector(task, task.ledger, {})
        self.threaded = ThreadedBoltCollector(task, notes, self._inner)

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.bolt.prepare(conf, context, self.threaded)

    def new_tuple(self, delivery: Delivery) -> Tuple:
        """Make the tuple of a delivery, for `call`.

        A tuple in a tree is held from the beginning. So its state changes only once, when it is settled. A state that changed
        after the call could overwrite what a thread of the bolt has done meanwhile.
        """
        tup = self._new_tuple(delivery)
        if tup.roots is not None:
            tup.state = HELD
        return tup

    def _new_tuple(self, delivery: Delivery) -> Tuple:
        return Tuple(*delivery)

    def call(self, tup: Tuple) -> None:
        """Execute a tuple, on the executor's thread."""
        self.bolt.execute(tup)

    def call_hooks(self, tup: Tuple, took: float) -> None:
        """Call the task's hooks, because ``tup`` was executed (J21)."""
        for hook in self.task.hooks:
            hook.bolt_execute(BoltExecuteInfo(tup, self.task.id, took * 1000))

    def held(self) -> list[tuple[Tuple, float]]:
        """See `Runner.held`."""
        return list(self.task.held_weakly.items())

    def forget(self, tup: Tuple) -> None:
        """See `Runner.forget`."""
        self.task.no_longer_held(tup)

    def forget_all(self) -> None:
        """See `Runner.forget_all`."""
        for tup, _ in self.task.held():
            tup.state = SETTLED
        self.task.held_weakly.clear()
        self.task.under_way.clear()


class _AutomaticRunner(ThreadedRunner):
    def _connect(self) -> None:
        self.bolt.connected(lambda stream: None)  # None makes the bolt emit through its collector

    def _new_tuple(self, delivery: Delivery) -> Tuple:
        tup: Tuple = self.bolt.new_tuple(*delivery)
        return tup

    def call(self, tup: Tuple) -> None:
        """See `ThreadedRunner.call`."""
        bolt = self.bolt
        answer = (bolt if bolt.executor is None else bolt.executor).execute(tup)
        if answer is ACK and tup.state != SETTLED:
            self.threaded.ack(tup)


class _BasicRunner(ThreadedRunner):
    acks_on_return = True

    def __init__(self, task: ThreadedBoltTask, bolt: BasicBolt, notes: Notes) -> None:
        super().__init__(task, bolt, notes)
        self._basic = ThreadedBasicCollector(task, notes)

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.bolt.prepare(conf, context)

    def call(self, tup: Tuple) -> None:
        """See `ThreadedRunner.call`."""
        self._basic.roots = tup.roots
        try:
            self.bolt.execute(tup, self._basic)
        finally:
            self._basic.roots = None

    def call_hooks(self, tup: Tuple, took: float) -> None:
        """See `ThreadedRunner.call_hooks`."""
        super().call_hooks(tup, took)
        self.task.call_ack_hooks(tup)
