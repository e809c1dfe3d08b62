"""The physical plan. It is frozen data, and says where each task runs and how many supersteps a round has.

`stormspark.plan.explain` turns the plan into text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stormspark.api import WorkerHookDeclaration
from stormspark.config import Settings
from stormspark.grouping.base import Grouping
from stormspark.plan.page import plan_html, plan_line
from stormspark.plan.partitions import partitions_for

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ComponentPlan", "EdgePlan", "PhysicalPlan", "StreamPlan", "TaskPlan"]

#: At most this many tasks of a worker are named.
_NAMED = 8


@dataclass(frozen=True)
class StreamPlan:
    """An output stream of a component.

    On a ``direct`` stream the producer names the receiving task (A10). ``schema`` has the types of the values, if declared.
    """

    id: str
    fields: tuple[str, ...]
    direct: bool
    schema: pa.Schema | None = None


@dataclass(frozen=True)
class EdgePlan:
    """One subscription. ``crosses`` is true if its tuples may have to go to another worker."""

    source: str
    stream: str
    target: str
    grouping: Grouping
    crosses: bool


@dataclass(frozen=True)
class TaskPlan:
    """One instance of a component.

    It has a task id (A18), an index among its component's tasks, an executor (A17) and a worker.
    """

    id: int
    component: str
    index: int
    executor: int
    worker: int


@dataclass(frozen=True)
class ComponentPlan:
    """A planned spout or bolt: one pickled copy (A3), its streams, its configuration, and the place of its declaration.

    ``own_conf`` is the configuration that the user wrote for the component. ``conf`` is the part of it that holds for the
    component's tasks (A21). ``settings`` are read from the topology's configuration, overridden by ``conf``.
    ``wanted_tasks`` is the number of tasks before ``topology.max.task.parallelism`` caps it (A16).
    """

    id: str
    kind: str  # "spout" | "bolt"
    pickled: bytes = field(repr=False)
    streams: Mapping[str, StreamPlan]
    conf: Mapping[str, Any]
    settings: Settings
    parallelism: int
    tasks: tuple[int, ...]
    declared_at: str
    #: The class of a spout whose rows Spark reads; empty for every other component.
    kind_of_source: str = ""
    #: How the component's tasks receive their state: ``storm`` (C35), ``heron`` (C42), ``pickle`` (their attributes), ``window``
    #: (they have windows and no other state), or empty if they have no state.
    kind_of_state: str = ""
    #: Whether windows are part of the component's state (C41).
    windowed: bool = False
    #: How the component is told of batches; empty if it is not. See `stormspark.api.batch_kind`.
    kind_of_batch: str = ""
    #: Whether the component is a bolt that may hold tuples, and flushes them at the end of its input.
    flushes: bool = False
    #: Whether the component receives and emits record batches instead of single tuples.
    vectorised: bool = False
    #: How many calls of an async bolt may be under way at once in each task; 0 for every other component.
    capacity: int = 0
    #: Why each executor of the component has a thread of its own: the component's code may wait, or the configuration says so.
    #: Empty if the component's tasks run on the worker's thread.
    threads_reason: str = ""
    #: If the component declares that its code only computes (``waits = False``), but the code uses something that waits: a
    #: description of this use. Otherwise empty.
    waits_all_the_same: str = ""
    #: Whether the component declares that its code only computes (``waits = False``).
    says_that_it_computes: bool = False
    #: If the component is async, but one of its coroutines calls something that blocks the event loop: a description of this
    #: call. Otherwise empty.
    blocks_the_loop: str = ""
    #: The attributes of an async component that are probably misspelt settings, each with the setting.
    misspelt: tuple[tuple[str, str], ...] = ()
    #: The code of others that runs where the component emits, and that is known to wait: groupings and task hooks. Empty if the
    #: component has threads, which this code holds up in place of the worker's thread.
    holds_up: tuple[str, ...] = ()
    own_conf: Mapping[str, Any] = field(default_factory=dict)
    wanted_tasks: int = 0

    @property
    def place(self) -> str:
        """The beginning of a message: the user's line and the component."""
        return f"{self.declared_at}: {self.kind} {self.id!r}"

    @property
    def calls_at_once(self) -> int:
        """How many calls of a bolt may be under way at once, in all of its tasks together; 0 if its calls hold up the worker, and
        for a spout.
        """
        if self.kind != "bolt":
            return 0
        return (
            self.capacity * len(self.tasks) if self.capacity else self.parallelism * bool(self.threads_reason)
        )

    @property
    def source(self) -> bool:
        """Whether the component is a source spout, which is a spout whose rows Spark reads."""
        return bool(self.kind_of_source)


@dataclass(frozen=True, repr=False)
class PhysicalPlan:
    """Everything that a worker or an engine needs to know about a topology. A notebook shows its graph, workers and supersteps.

    ``supersteps`` is S: the number of exchanges that a tuple tree may need to reach its leaves. A round runs supersteps
    0 to S. If S > 0, or if there is a source spout, superstep S + 1 follows, in which acks reach the workers of their spouts.
    """

    topology: str
    conf: Mapping[str, Any]
    settings: Settings
    components: Mapping[str, ComponentPlan]
    tasks: Mapping[int, TaskPlan]
    edges: tuple[EdgePlan, ...]
    workers: int
    supersteps: int
    worker_hooks: tuple[WorkerHookDeclaration, ...] = ()
    #: Whether a batch is one transaction: its state, outputs and offsets take effect once, or not at all.
    exactly_once: bool = False
    #: When ``end_batch`` of a bolt is called: in which of the rounds that end a batch, counted from 1, and in which superstep.
    ends_of_batches: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: The turn of each bolt that may hold tuples at the end of the input, from 1. A bolt flushes after all bolts before it have
    #: flushed, and all of their tuples are executed (`stormspark.plan.flushing`).
    flush_turns: Mapping[str, int] = field(default_factory=dict)
    #: How many cores the engine offers to workers; None if it is not known.
    cores: int | None = None
    #: Why the plan has this number of workers, in one clause.
    workers_reason: str = ""

    def __repr__(self) -> str:
        return plan_line(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows (`stormspark.plan.page`)."""
        return plan_html(self)

    @property
    def executors(self) -> int:
        """The number of executors, in Storm's sense, of all components together."""
        return sum(component.parallelism for component in self.components.values())

    @property
    def partitions(self) -> int:
        """The number of partitions of each superstep. Worker w is in partition ``w % partitions``."""
        return partitions_for(self.workers, self.settings.superstep_partitions)

    @property
    def last_superstep(self) -> int:
        """The superstep whose replies end the round.

        If a subscription leads to another worker, or if there is a source spout, acks need one more superstep to reach the
        workers of their spouts. Then the last superstep is S + 1. Otherwise it is 0.
        """
        return self.supersteps + 1 if self.supersteps or self.sources else 0

    @property
    def ending_rounds(self) -> int:
        """The number of rounds that end a batch. They follow the rounds in which the batch's tuples are executed."""
        return max((number for number, _ in self.ends_of_batches.values()), default=0)

    @property
    def announces(self) -> bool:
        """Whether there are committers (`stormspark.spi.COMMIT`), which act outside of the topology before the batch is
        committed.

        Only then are announcements (`stormspark.spi.BatchAware`) stored, and repeated by each later attempt at the batch.
        """
        return any(component.kind_of_batch == "commit" for component in self.components.values())

    def position(self, superstep: int) -> int:
        """Return the position of a superstep in its round. Supersteps are numbered across all rounds of a batch."""
        return superstep % (self.last_superstep + 1)

    @property
    def sources(self) -> tuple[ComponentPlan, ...]:
        """The source spouts, sorted by id. Spark reads their rows.

        A worker receives the rows in separate requests, and may report only after all of these requests. Therefore a round with
        rows has an exchange, which waits for these requests.
        """
        return tuple(
            sorted((c for c in self.components.values() if c.source), key=lambda component: component.id)
        )

    def tasks_of_worker(self, worker: int) -> tuple[TaskPlan, ...]:
        """Return the tasks that live in one worker, by task id."""
        return tuple(task for task in self.tasks.values() if task.worker == worker)

    def names_of_tasks(self, worker: int) -> str:
        """Return the names of a worker's tasks, for people: "split[0], count[2]". It names the first tasks if there are many."""
        names = [f"{task.component}[{task.index}]" for task in self.tasks_of_worker(worker)]
        more = len(names) - _NAMED
        return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
