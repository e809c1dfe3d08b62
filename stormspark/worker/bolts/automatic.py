"""The runner of an `AutoAckBolt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stormspark.spi import AutoAckBolt
from stormspark.worker.bolts.plain import PlainRunner
from stormspark.worker.tuples.execution import execute_automatic

if TYPE_CHECKING:
    from stormspark.worker.tuples.outlets import Delivery

__all__ = ["AutomaticRunner"]


class AutomaticRunner(PlainRunner):
    """The runner of an `AutoAckBolt`, which is a bolt of a front-end. The bolt's ``execute`` returns whether to ack the tuple."""

    _bolt: AutoAckBolt

    def _connect(self) -> None:
        self._bolt.connected(self.task.unguarded_outlet)

    def run(self, chunk: list[Delivery], begun: float) -> int:
        """See `Runner.run`."""
        return execute_automatic(chunk, self._bolt, self.collector, self._held, begun, self._ledger, self)
