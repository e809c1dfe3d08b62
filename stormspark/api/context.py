"""A task's view of itself and of its topology, and the services that its worker offers to the task (A26-A29)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

from stormspark.api.fields import Fields
from stormspark.api.hooks import TaskHook
from stormspark.api.streams import DEFAULT_STREAM, GlobalStreamId
from stormspark.coroutines import refuse_coroutine
from stormspark.grouping import Grouping
from stormspark.metrics import Counter, Distribution, Gauge, Meter, Metric, Timer

__all__ = ["TaskServices", "TopologyContext"]

_METRIC_SECS = 60.0  # the usual interval of Storm's metrics reporters and consumers (J17)
_M = TypeVar("_M", bound=Metric)


class TaskServices(Protocol):
    """The services of a worker for one of its tasks. `TopologyContext` offers them to users."""

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        """Call ``callback`` every ``seconds``. The first call comes after ``first`` seconds, if ``first`` is not None."""

    def now(self) -> float:
        """Return the seconds since 1970."""

    def add_hook(self, hook: TaskHook) -> None:
        """Call ``hook`` for each event of the task from now on."""

    def add_metric(self, name: str, metric: Metric, bucket_secs: float) -> None:
        """Read ``metric`` once per bucket of ``bucket_secs``."""

    @property
    def shared_executor(self) -> Executor:
        """A thread pool that the tasks of the worker share."""


class TopologyContext:
    """The context that ``open`` and ``prepare`` receive. In a worker's process, ``logger`` writes to the task's own log file.

    ``edges`` are all subscriptions of the topology, as (source, stream, target, grouping).
    """

    def __init__(
        self,
        *,
        topology: str,
        storm_id: str,
        component: str,
        task: int,
        worker: int,
        tasks: Mapping[str, tuple[int, ...]],
        worker_tasks: tuple[int, ...],
        streams: Mapping[str, Mapping[str, Fields]],
        edges: tuple[tuple[str, str, str, Grouping], ...],
        services: TaskServices,
        executor_data: dict[str, Any] | None = None,
        resources: Mapping[str, Any] | None = None,
        max_message_timeout: float = 30,
    ) -> None:
        self.topology_name = topology
        #: The topology's name, how many times it was started, and the time of this start: ``words-3-1700000000`` (A14).
        self.storm_id = storm_id
        self.this_component_id = component
        self.this_task_id = task
        self.this_worker_index = worker
        self.this_worker_tasks = worker_tasks
        #: The longest message timeout of all components, in seconds (A26).
        self.max_topology_message_timeout = max_message_timeout
        self.logger = logging.getLogger(f"stormspark.task.{component}")
        self._tasks = tasks
        self._streams = streams
        self._edges = edges
        self._services = services
        self._component_of = {task: name for name, ids in tasks.items() for task in ids}
        self._task_data: dict[str, Any] = {}
        self._executor_data = {} if executor_data is None else executor_data
        self._resources = {} if resources is None else resources
        self._hooks: list[TaskHook] = []

    # -- who am I (A26) --------------------------------------------------------------------------------------

    @property
    def this_task_index(self) -> int:
        """The position of this task among the tasks of its component, from 0 (A18)."""
        return self._tasks[self.this_component_id].index(self.this_task_id)

    # -- the graph (A27) -------------------------------------------------------------------------------------

    @property
    def component_ids(self) -> tuple[str, ...]:
        """The ids of all spouts and bolts."""
        return tuple(self._tasks)

    @property
    def task_to_component(self) -> Mapping[int, str]:
        """The component of every task, by task id."""
        return self._component_of

    def component_tasks(self, component: str) -> list[int]:
        """Return the task ids of a component, ascending. For an unknown component, raise a KeyError that lists the components."""
        return list(self._tasks[self._known(component)])

    def component_of(self, task: int) -> str:
        """Return the component that a task belongs to; raise KeyError if there is no such task."""
        return self._component_of[task]

    def component_streams(self, component: str) -> tuple[str, ...]:
        """Return the streams that a component declares."""
        return tuple(self._streams[self._known(component)])

    def output_fields(self, component: str | None = None, stream: str = DEFAULT_STREAM) -> Fields:
        """Return the fields of a stream of ``component``, by default of this component.

        Raises KeyError if there is no such component or stream.
        """
        streams = self._streams[self._known(component or self.this_component_id)]
        if stream not in streams:
            msg = f"no stream {stream!r}; there are {', '.join(map(repr, streams)) or 'none'}"
            raise KeyError(msg)
        return streams[stream]

    @property
    def this_streams(self) -> tuple[str, ...]:
        """The streams that this component declares."""
        return tuple(self._streams[self.this_component_id])

    @property
    def this_sources(self) -> tuple[GlobalStreamId, ...]:
        """The streams that this component subscribes to."""
        return tuple(self.sources(self.this_component_id))

    @property
    def this_input_fields(self) -> Mapping[GlobalStreamId, Fields]:
        """The fields of each stream that this component subscribes to."""
        return {source: self._streams[source.component][source.stream] for source in self.this_sources}

    @property
    def this_targets(self) -> Mapping[str, tuple[str, ...]]:
        """The components that subscribe to each of this component's streams."""
        return {stream: tuple(targets) for stream, targets in self.targets(self.this_component_id).items()}

    def sources(self, component: str) -> Mapping[GlobalStreamId, Grouping]:
        """Return the streams that a component subscribes to, each with its grouping."""
        self._known(component)
        return {
            GlobalStreamId(s, stream): grouping for s, stream, t, grouping in self._edges if t == component
        }

    def targets(self, component: str) -> Mapping[str, Mapping[str, Grouping]]:
        """Return the subscribers of each of a component's streams, each with its grouping."""
        found: dict[str, dict[str, Grouping]] = {
            stream: {} for stream in self._streams[self._known(component)]
        }
        for source, stream, target, grouping in self._edges:
            if source == component:
                found[stream][target] = grouping
        return found

    def _known(self, component: str) -> str:
        if component not in self._tasks:
            msg = f"no component {component!r}; there are {', '.join(map(repr, self._tasks))}"
            raise KeyError(msg)
        return component

    # -- shared data (A28) -----------------------------------------------------------------------------------

    def set_task_data(self, name: str, value: Any) -> None:
        """Keep a value for this task under a name."""
        self._task_data[name] = value

    def get_task_data(self, name: str) -> Any:
        """Return the value that `set_task_data` kept under ``name``, or None."""
        return self._task_data.get(name)

    def set_executor_data(self, name: str, value: Any) -> None:
        """Keep a value under a name, for this task and all others of its executor (A17)."""
        self._executor_data[name] = value

    def get_executor_data(self, name: str) -> Any:
        """Return the value that `set_executor_data` kept under ``name``, or None."""
        return self._executor_data.get(name)

    def get_resource(self, name: str) -> Any:
        """Return the resource that a worker hook set under ``name`` for all tasks of this worker, or None (A5)."""
        return self._resources.get(name)

    @property
    def shared_executor(self) -> Executor:
        """A pool of ``topology.worker.shared.thread.pool.size`` threads that all tasks of this worker share."""
        return self._services.shared_executor

    # -- time ------------------------------------------------------------------------------------------------

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        """Call ``callback`` every ``seconds``, between tuples, on the thread that executes the task's tuples (W20).

        A task may set any number of timers. The first call comes after ``first`` seconds, by default after ``seconds``.
        With ``first``, a component that keeps a timer in its state can resume the timer where it stopped. A ``first`` below
        zero means that a call was missed. One call makes up for all calls that a timer has missed, for example while the worker
        was busy.
        An exception in ``callback`` counts as raised by the component. Raises ValueError unless ``seconds`` is positive, and
        TypeError if ``callback`` is written with ``async``.
        """
        if not seconds > 0:
            msg = f"a timer's seconds must be more than 0, got {seconds!r}"
            raise ValueError(msg)
        refuse_coroutine(callback, "a timer's callback")
        self._services.set_timer(seconds, callback, first)

    def now_ms(self) -> int:
        """Return the milliseconds since 1970 by the worker's clock.

        This clock never goes back and never jumps. Tests may simulate it.
        """
        return int(self._services.now() * 1000)

    # -- hooks (J21) -----------------------------------------------------------------------------------------

    def add_task_hook(self, hook: TaskHook) -> None:
        """Call ``hook`` for each event of this task from now on. Raises RuntimeError after ``open`` or ``prepare``."""
        self._services.add_hook(hook)
        self._hooks.append(hook)

    @property
    def hooks(self) -> tuple[TaskHook, ...]:
        """The hooks of this task."""
        return tuple(self._hooks)

    # -- metrics (J18) ---------------------------------------------------------------------------------------

    def register_metric(self, name: str, metric: _M, bucket_secs: float = _METRIC_SECS) -> _M:
        """Read ``metric`` every ``bucket_secs`` and show it in the statistics; return it.

        Raises RuntimeError after ``open`` or ``prepare``, and for a name that this task already uses (J18).

        >>> from stormspark.metrics import CountMetric
        >>> class Bolt:
        ...     def prepare(self, conf, context, collector):
        ...         self.seen = context.register_metric("seen", CountMetric(), 10)
        """
        self._services.add_metric(name, metric, bucket_secs)
        return metric

    def register_counter(self, name: str) -> Counter:
        """Register a counter that is never reset."""
        return self.register_metric(name, Counter())

    def register_gauge(self, name: str, value_of: Callable[[], Any]) -> Gauge:
        """Register a gauge, which calls ``value_of`` each time it is read."""
        return self.register_metric(name, Gauge(value_of))

    def register_meter(self, name: str) -> Meter:
        """Register a meter, which counts events and computes their rate."""
        return self.register_metric(name, Meter(self._services.now))

    def register_timer(self, name: str) -> Timer:
        """Register a timer, which measures how long something takes."""
        return self.register_metric(name, Timer())

    def register_histogram(self, name: str) -> Distribution:
        """Register a histogram, which summarises the distribution of numbers."""
        return self.register_metric(name, Distribution())
