"""The runner of a bolt, for an executor with a thread of its own. The runner calls ``execute`` on this thread, for one tuple at
a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from stormspark.api import BasicBolt, Bolt, BoltExecuteInfo, TopologyContext, Tuple
from stormspark.api.tuple_state import HELD, OPEN, SETTLED
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
        #: The tuples that were neither acked nor failed when ``execute`` returned. Only the executor's thread uses this set.
        self.may_hold: WeakSet[Tuple] = WeakSet()

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.bolt.prepare(conf, context, self.threaded)

    def new_tuple(self, delivery: Delivery) -> Tuple:
        """Make the tuple of a delivery, for `call`."""
        return Tuple(*delivery)

    def call(self, tup: Tuple) -> None:
        """Execute a tuple, on the executor's thread. Afterwards the tuple's state says whether the tuple is open, held or
        settled.
        """
        self._execute(tup)
        if tup.roots is not None and tup.state == OPEN:
            # This comes first, because a thread of the bolt may ack a tuple as soon as its state says that it is held.
            self.may_hold.add(tup)
            tup.state = HELD

    def _execute(self, tup: Tuple) -> None:
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
        self.task.held_weakly.pop(tup, None)

    def forget_all(self) -> None:
        """See `Runner.forget_all`."""
        for tup, _ in self.task.held():
            tup.state = SETTLED
        self.task.held_weakly.clear()
        self.task.under_way.clear()


class _AutomaticRunner(ThreadedRunner):
    def _connect(self) -> None:
        self.bolt.connected(lambda stream: None)  # None makes the bolt emit through its collector

    def new_tuple(self, delivery: Delivery) -> Tuple:
        """See `ThreadedRunner.new_tuple`."""
        tup: Tuple = self.bolt.new_tuple(*delivery)
        return tup

    def _execute(self, tup: Tuple) -> None:
        bolt = self.bolt
        answer = (bolt if bolt.executor is None else bolt.executor).execute(tup)
        if answer is ACK and tup.state == OPEN:
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
