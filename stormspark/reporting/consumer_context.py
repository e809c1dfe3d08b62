"""The context of a metrics consumer: it knows the topology, but is no task of a worker."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import NoReturn

from stormspark.api import Fields, TaskHook, TopologyContext
from stormspark.grouping import without_wrapping
from stormspark.metrics import Metric
from stormspark.plan.physical import PhysicalPlan

__all__ = ["ConsumerContext"]


class _NoTask:
    """Stands for the services of a worker."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, what: str) -> NoReturn:
        msg = f"{self._name} can't {what}: a metrics consumer lives in the driver, and is no task"
        raise RuntimeError(msg)

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        self._refuse("set a timer")

    def now(self) -> float:
        self._refuse("read the clock of a worker")

    def add_hook(self, hook: TaskHook) -> None:
        self._refuse("add a hook")

    def add_metric(self, name: str, metric: Metric, bucket_secs: float) -> None:
        self._refuse("register a metric")

    @property
    def shared_executor(self) -> Executor:
        self._refuse("use the threads of a worker")


class ConsumerContext(TopologyContext):
    """The context. Its task has the id -1, as Storm's system tasks have, and no worker.

    ``log_folder`` is the folder with the topology's logs on the driver's host, if there is one.
    """

    def __init__(self, plan: PhysicalPlan, storm_id: str, component: str, log_folder: str | None) -> None:
        components = plan.components.values()
        super().__init__(
            topology=plan.topology,
            storm_id=storm_id,
            component=component,
            task=-1,
            worker=-1,
            tasks={one.id: one.tasks for one in components},
            worker_tasks=(),
            streams={
                one.id: {stream.id: Fields(stream.fields) for stream in one.streams.values()}
                for one in components
            },
            edges=tuple((e.source, e.stream, e.target, without_wrapping(e.grouping)) for e in plan.edges),
            services=_NoTask(component),
            max_message_timeout=max(one.settings.message_timeout_secs for one in components),
        )
        self.log_folder = log_folder
