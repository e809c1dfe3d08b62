"""The part of a bolt's task that calls hooks for the tuples that the bolt executes and acks (J21)."""

from __future__ import annotations

from stormspark.api import BoltAckInfo, BoltExecuteInfo, Tuple
from stormspark.api.tuple_state import SETTLED
from stormspark.worker.bolts.work_done import CountsWork
from stormspark.worker.tuples.outlets import Delivery

__all__ = ["CallsHooks"]


class CallsHooks(CountsWork):
    """The part of a `stormspark.worker.bolt_task.BoltTask` that calls hooks."""

    #: When the running part of the chunk began.
    _begun: float

    def _execute_observed(self, batch: list[Delivery]) -> int:
        """Execute the tuples one by one, and call the hooks for each (J21)."""
        clock, runner = self._clock, self._runner
        position = -1
        for position, delivery in enumerate(batch):
            begun = clock()
            try:
                runner.run([delivery], self._begun)
            except BaseException:
                runner.position = position
                raise
            values, source, roots = delivery
            tup = Tuple(values, source, roots)
            tup.state = SETTLED  # an error in a hook must not fail the tuple, which has been executed
            runner.position, runner.current = position, tup
            took = (clock() - begun) * 1000
            for hook in self.hooks:
                hook.bolt_execute(BoltExecuteInfo(tup, self.id, took))
                if runner.acks_on_return:
                    hook.bolt_ack(BoltAckInfo(tup, self.id))
        return position + 1

    def call_ack_hooks(self, tup: Tuple) -> None:
        """Call the hooks, because the collector has acked ``tup``."""
        for hook in self.hooks:
            hook.bolt_ack(BoltAckInfo(tup, self.id))
