"""The runner of a bolt whose tuples are processed outside of the worker (`WorksOutside`)."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from stormspark.api import Tuple
from stormspark.worker.bolts.plain import PlainRunner
from stormspark.worker.tuples.execution import execute_outside

if TYPE_CHECKING:
    from stormspark.worker.tuples.outlets import Delivery

__all__ = ["OutsideRunner"]


class OutsideRunner(PlainRunner):
    """The runner of a bolt whose tuples are not done yet when ``execute`` returns.

    The worker gives the bolt no more tuples than the bolt has room for, and waits for the bolt's answers.
    """

    works_outside = True
    _bolt: Any  # a `Bolt` that is a `WorksOutside`

    def _new_held(self) -> MutableMapping[Tuple, float]:
        return {}  # a weak dictionary would be three times slower, and the bolt holds every tuple anyway

    def run(self, chunk: list[Delivery], begun: float) -> int:
        """See `Runner.run`."""
        return execute_outside(chunk, self._bolt.execute, self._held, begun, self)

    @property
    def room(self) -> int:
        """See `Runner.room`."""
        return 0 if self.task.begins_no_call else self._bolt.room

    @property
    def outside(self) -> int:
        """See `Runner.outside`."""
        return self._bolt.outside  # type: ignore[no-any-return]

    @property
    def waits_for_answer(self) -> bool:
        """See `Runner.waits_for_answer`."""
        return self._bolt.waits_for_answer  # type: ignore[no-any-return]

    def fileno(self) -> int:
        """See `Runner.fileno`."""
        return self._bolt.fileno()  # type: ignore[no-any-return]

    @property
    def works_in(self) -> str:  # type: ignore[override]
        """See `Runner.works_in`."""
        return self._bolt.works_in  # type: ignore[no-any-return]

    def send(self) -> None:
        """See `Runner.send`."""
        self._bolt.send()

    def take_in(self) -> int:
        """See `Runner.take_in`."""
        return self._bolt.take_in()  # type: ignore[no-any-return]
