"""The physical plan: frozen data that says which task runs where, and how batches are cut. It prints; see
`explain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stormspark.api import WorkerHookDeclaration
from stormspark.config import Settings
from stormspark.grouping.base import Grouping

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ComponentPlan", "EdgePlan", "PhysicalPlan", "StreamPlan", "TaskPlan"]


@dataclass(frozen=True)
class StreamPlan:
    """An output stream of a component; ``direct`` streams are emitted to a named task (A10), typed ones have a schema."""

    id: str
    fields: tuple[str, ...]
    direct: bool
    schema: pa.Schema | None = None


@dataclass(frozen=True)
class EdgePlan:
    """One subscription. ``crosses`` is true if a tuple on it may have to go to another worker."""

    source: str
    stream: str
    target: str
    grouping: Grouping
    crosses: bool


@dataclass(frozen=True)
class TaskPlan:
    """One instance of a component: task id (A18), index among its component's tasks, executor (A17) and
    worker.
    """

    id: int
    component: str
    index: int
    executor: int
    worker: int


@dataclass(frozen=True)
class ComponentPlan:
    """A spout or bolt: one pickled copy (A3), its streams, its configuration, and where the user declared it.

    ``own_conf`` is the configuration that the user wrote for it, ``conf`` the part of that which holds for its tasks (A21), and
    ``settings`` are read from ``conf`` laid over the topology's configuration. ``wanted_tasks`` is the number of tasks before
    ``topology.max.task.parallelism`` (A16).
    """

    id: str
    kind: str  # "spout" | "bolt"
    pickled: bytes
    streams: Mapping[str, StreamPlan]
    conf: Mapping[str, Any]
    settings: Settings
    parallelism: int
    tasks: tuple[int, ...]
    declared_at: str
    #: The class of a spout that Spark reads for; empty for every other component.
    kind_of_source: str = ""
    #: How its tasks' state comes to them: ``storm`` (C35), ``heron`` (C42), ``pickle`` (their attributes), ``window`` (they have
    #: windows, and nothing else), or empty: none.
    kind_of_state: str = ""
    #: Whether windows are part of that state (C41).
    windowed: bool = False
    #: Of one that knows its batches; see `stormspark.spi.batches`.
    kind_of_batch: str = ""
    #: Whether it takes and emits whole batches of rows.
    vectorised: bool = False
    own_conf: Mapping[str, Any] = field(default_factory=dict)
    wanted_tasks: int = 0

    @property
    def place(self) -> str:
        """The component with the user's line, for the beginning of a message."""
        return f"{self.declared_at}: {self.kind} {self.id!r}"

    @property
    def source(self) -> bool:
        """Whether it is a spout that Spark reads for."""
        return bool(self.kind_of_source)


@dataclass(frozen=True)
class PhysicalPlan:
    """All that a worker or an engine needs to know of a topology.

    ``supersteps`` is S: the number of exchanges a tuple tree may need to reach its leaves. A batch runs
    supersteps 0..S and, where S > 0, one more in which acks come home.
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
    #: Whether a batch is one transaction: state, outputs and offsets of it all happen once, or not at all.
    exactly_once: bool = False
    #: Of bolts that hear of the end of a batch: in which of the rounds that end it, and in which superstep of that round.
    ends_of_batches: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def last_superstep(self) -> int:
        """The superstep whose replies end the batch: S, plus one for the acks that come home if anything
        crosses.
        """
        return self.supersteps + 1 if self.supersteps or self.sources else 0

    @property
    def ending_rounds(self) -> int:
        """How many rounds it takes to end a batch, after those that work it off."""
        return max((number for number, _ in self.ends_of_batches.values()), default=0)

    @property
    def announces(self) -> bool:
        """Whether somebody acts before the batch is committed, and so on what must be the same when it comes again."""
        return any(component.kind_of_batch == "commit" for component in self.components.values())

    def phase(self, superstep: int) -> int:
        """Which superstep of its round this is: they are counted on where a batch has several rounds."""
        return superstep % (self.last_superstep + 1)

    @property
    def sources(self) -> tuple[ComponentPlan, ...]:
        """The spouts that Spark reads for, by id. Their rows reach a worker in requests of their own, so its report needs an
        exchange that waits for all of them.
        """
        return tuple(
            sorted((c for c in self.components.values() if c.source), key=lambda component: component.id)
        )

    def tasks_of_worker(self, worker: int) -> tuple[TaskPlan, ...]:
        """The tasks that live in one worker, by task id."""
        return tuple(task for task in self.tasks.values() if task.worker == worker)
