"""The runner of a `KeepsOutside`, a bolt whose tuples are processed outside of the worker. The bolt itself keeps track of
unsettled tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stormspark.api import Tuple
from stormspark.spi import Given, Send
from stormspark.worker.bolts.outside import OutsideRunner
from stormspark.worker.tuples.execution import ack_kept, execute_kept

if TYPE_CHECKING:
    from stormspark.worker.tuples.outlets import Delivery

__all__ = ["KeptRunner"]


class KeptRunner(OutsideRunner):
    """The runner of a bolt that receives many deliveries per call, without a `Tuple` for each delivery, and acks many per
    call.
    """

    def _connect(self) -> None:
        # The bolt keeps these functions. They refer to the task and not to this runner, because otherwise the bolt would keep
        # the runner alive.
        task, ledger = self.task, self._ledger

        def sender(stream: str) -> Send | None:
            outlet = task.unguarded_outlet(stream)
            return None if outlet is None else outlet.send

        def ack(given: Sequence[Given]) -> None:
            ack_kept(given, ledger, task)

        self._bolt.connected(sender, ack)

    def run(self, chunk: list[Delivery], begun: float) -> int:
        """See `Runner.run`."""
        return execute_kept(chunk[:], self._bolt, begun, self)

    def held(self) -> list[tuple[Tuple, float]]:
        """See `Runner.held`. Tuples that belong to no tree are left out."""
        return [(Tuple(*given), since) for given, since in self._bolt.kept() if given[2] is not None]
