"""The base of the runners. A runner executes the chunks of one instance of a bolt, as bolts of its kind want it.

A task chooses the runner when an instance begins (`stormspark.worker.bolts.kinds`), and uses it until the next one begins:

1. `prepare` calls the bolt's ``prepare``.
2. `run` executes a chunk. `send` follows each chunk that did not raise.
3. `held` names the tuples that were executed and neither acked nor failed.

This base class is the runner of a task without an instance, which holds nothing and works nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import maxsize
from typing import TYPE_CHECKING, Any

from stormspark.api import TopologyContext, Tuple

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.tuples.collectors import BoltCollector
    from stormspark.worker.tuples.outlets import Delivery

__all__ = ["Runner"]


class Runner:
    """Executes the tuples of one instance of a bolt."""

    #: Whether a tuple is acked when ``execute`` returns, without a call of the collector.
    acks_on_return = False
    #: Whether the worker has to wait for this bolt; see `WorksOutside`.
    works_outside = False
    #: The collector that the bolt got in ``prepare``; None for a bolt that gets its collector with each tuple.
    collector: BoltCollector | None = None

    def __init__(self, task: BoltTask) -> None:
        self.task = task
        #: The tuple of a chunk that raised: its position in the chunk, and the tuple itself.
        self.position = -1
        self.current: Tuple | None = None
        self._prepared = False

    # -- life ------------------------------------------------------------------------------------------------

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the bolt, and connect it."""
        self._prepare(conf, context)
        self._prepared = True
        self.connect()

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Call the bolt's ``prepare``."""
        raise NotImplementedError

    def connect(self) -> None:
        """Take over the task's current outlets. A bolt that is not prepared yet gets them after that."""
        if self._prepared:
            self._connect()

    def _connect(self) -> None:
        """Take over the task's current outlets."""

    def guard(self) -> None:
        """Prepare for calls from other threads, because user code has started one."""
        if self.collector is not None:
            self.collector.guarded = True
        self.connect()

    # -- tuples ----------------------------------------------------------------------------------------------

    def run(self, chunk: list[Delivery], begun: float) -> int:
        """Execute a chunk, which began at ``begun``; return how many tuples that were.

        An error of the bolt is raised, and then `position` and `current` are those of the tuple that raised.
        """
        raise NotImplementedError

    def held(self) -> list[tuple[Tuple, float]]:
        """Return the tuples that were executed and neither acked nor failed yet, each with the time since when."""
        return []

    def forget(self, tup: Tuple) -> None:
        """Hold this tuple no longer, because it is failed."""

    def forget_all(self) -> None:
        """Hold no tuple any longer: nobody can ack or fail those that were held."""

    # -- work outside of the worker ----------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more tuples the bolt takes now."""
        return maxsize

    @property
    def outside(self) -> int:
        """How many executed tuples are still worked on outside."""
        return 0

    @property
    def waits_for_answer(self) -> bool:
        """Whether the worker has to drain answers from outside at once."""
        return False

    def fileno(self) -> int:
        """Return the file descriptor that is readable when `take_in` has something to do; -1 if there is none."""
        return -1

    def send(self) -> None:
        """Let the bolt send outside what the chunk has brought."""

    def take_in(self) -> int:
        """Process answers from outside; return how many tuples that settles."""
        return 0
