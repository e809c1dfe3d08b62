"""The context of a task, for tests of one component without any engine (J25, W10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from stormspark.api import Component, Fields, OutputFieldsDeclarer, TaskHook, TopologyContext
from stormspark.local import SimulatedClock
from stormspark.metrics import Metric

__all__ = ["RecordingContext", "make_context"]

_T = TypeVar("_T")


class RecordingContext(TopologyContext):
    """A `TopologyContext` for tests. The test controls its time, and can read the component's metrics.

    `make_context` makes such a context.
    """

    _services: _Services

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The registered metrics, by name."""
        return self._services.metrics

    def advance_time(self, seconds: float) -> None:
        """Let time pass. Calls the callback of each timer as often as it is due in this time."""
        self._services.advance(seconds)


def make_context(
    component: str = "component",
    instance: Component | None = None,
    *,
    parallelism: int = 1,
    index: int = 0,
    topology: str = "test",
) -> RecordingContext:
    """Return the context of one task of ``component``, in a topology that has only this component.

    The component has ``parallelism`` tasks. ``index`` is the task's index among them, from 0. Task ids begin at 1. ``instance``
    declares the component's streams.

    >>> context = make_context("count", parallelism=4, index=2)
    >>> context.this_task_id, context.this_task_index, context.component_tasks("count")
    (3, 2, [1, 2, 3, 4])
    >>> ticks = []
    >>> context.set_timer(10, lambda: ticks.append(context.now_ms()))
    >>> context.advance_time(25); ticks
    [10000, 20000]
    """
    if not 0 <= index < parallelism:
        msg = f"index must be one of 0..{parallelism - 1}, the tasks of {component!r}, got {index!r}"
        raise ValueError(msg)
    declarer = OutputFieldsDeclarer(component)
    if instance is not None:
        instance.declare_output_fields(declarer)
    tasks = tuple(range(1, parallelism + 1))
    streams: dict[str, Fields] = {name: stream.fields for name, stream in declarer.streams.items()}
    return RecordingContext(
        topology=topology,
        storm_id=f"{topology}-1",
        component=component,
        task=tasks[index],
        worker=0,
        tasks={component: tasks},
        worker_tasks=tasks,
        streams={component: streams},
        edges=(),
        services=_Services(),
    )


class _Services:
    """The services of a worker for a task, as far as a test needs them."""

    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}
        self._clock = SimulatedClock()
        self._timers: list[tuple[float, float, Callable[[], None]]] = []  # due, period, callback
        self._executor = _AtOnce()

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        self._timers.append(
            (self._clock() + max(0.0, seconds if first is None else first), seconds, callback)
        )

    def now(self) -> float:
        return self._clock()

    def advance(self, seconds: float) -> None:
        end = self._clock() + seconds
        while self._timers:
            due, period, callback = min(self._timers, key=lambda timer: timer[0])
            if due > end:
                break
            self._timers.remove((due, period, callback))
            self._timers.append((due + period, period, callback))
            self._clock.advance(due - self._clock())
            callback()
        self._clock.advance(end - self._clock())

    def add_hook(self, hook: TaskHook) -> None:
        """Do nothing. The context keeps the hooks, and a test without an engine never calls them."""

    def add_metric(self, name: str, metric: Metric, bucket_secs: float) -> None:
        if name in self.metrics:
            msg = f"there is a metric {name!r} already; choose another name"  # J18
            raise RuntimeError(msg)
        self.metrics[name] = metric

    @property
    def shared_executor(self) -> Executor:
        return self._executor


class _AtOnce(Executor):
    """Runs each function at once, in the calling thread, so that tests need not wait."""

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        future: Future[_T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future
