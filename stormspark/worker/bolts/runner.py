"""The base of the runners. A runner executes the chunks of one instance of a bolt. Each kind of bolt has its own kind of
runner.

A task makes a runner for each instance of its bolt (`stormspark.worker.bolts.kinds`), and calls it in this order:

1. `prepare` calls the bolt's ``prepare``.
2. `run` executes a chunk. If the bolt's tuples are processed outside of the worker (`WorksOutside`), the task then calls
   `send`, unless `run` has raised.
3. `held` returns the tuples that were executed and are neither acked nor failed yet.

As long as a task has no instance, its runner is an object of this base class itself. Such a runner holds no tuple, has no tuple
in progress outside of the worker, and never runs a chunk.
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
    """The runner of one instance of a bolt. It executes the tuples for this instance."""

    #: Whether a tuple is acked when ``execute`` returns, without a call of the collector.
    acks_on_return = False
    #: Whether the bolt's tuples are processed outside of the worker, so that the worker has to wait for answers; see
    #: `WorksOutside`.
    works_outside = False
    #: See `WorksOutside.works_in`.
    works_in = ""
    #: The collector that the bolt got in ``prepare``; None for a bolt that gets its collector with each tuple.
    collector: BoltCollector | None = None

    def __init__(self, task: BoltTask) -> None:
        self.task = task
        #: The position in the chunk of the tuple whose execution raised.
        self.position = -1
        #: The tuple whose execution raised.
        self.current: Tuple | None = None
        self._prepared = False

    # -- life ------------------------------------------------------------------------------------------------

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Call the bolt's ``prepare``, and then give the bolt the task's outlets."""
        self._prepare(conf, context)
        self._prepared = True
        self.connect()

    def _prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Call the bolt's ``prepare``."""
        raise NotImplementedError

    def connect(self) -> None:
        """Give the bolt the task's current outlets. A bolt that is not prepared yet gets them at the end of `prepare`."""
        if self._prepared:
            self._connect()

    def _connect(self) -> None:
        """Take over the task's current outlets."""

    def guard(self) -> None:
        """Prepare for calls from other threads, because user code has started a thread."""
        if self.collector is not None:
            self.collector.guarded = True
        self.connect()

    # -- tuples ----------------------------------------------------------------------------------------------

    def run(self, chunk: list[Delivery], begun: float) -> int:
        """Execute a chunk, which began at the time ``begun``. Return how many tuples were executed.

        Raises any error of the bolt. After an error, `position` and `current` say which tuple the bolt was executing.
        """
        raise NotImplementedError

    def held(self) -> list[tuple[Tuple, float]]:
        """Return the executed tuples that are neither acked nor failed yet, each with the time when its chunk began."""
        return []

    def forget(self, tup: Tuple) -> None:
        """Forget this tuple, because it has failed."""

    def forget_all(self) -> None:
        """Forget all held tuples, because nobody can ack or fail them any more."""

    # -- work outside of the worker ----------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more tuples the bolt can take now."""
        return maxsize

    @property
    def outside(self) -> int:
        """How many of the executed tuples are still in progress outside of the worker."""
        return 0

    @property
    def waits_for_answer(self) -> bool:
        """Whether the worker has to process answers from outside as soon as they come."""
        return False

    def fileno(self) -> int:
        """Return the file descriptor that is readable when `take_in` has something to do; -1 if there is none."""
        return -1

    def send(self) -> None:
        """Let the bolt send the chunk's tuples to the process or service outside of the worker that processes them."""

    def take_in(self) -> int:
        """Process answers from outside of the worker. Return how many tuples they settle."""
        return 0
