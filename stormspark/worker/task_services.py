"""The part of a task that serves its instance. A `TopologyContext` passes on to it whatever the instance asks for: timers, the
time, a pool of threads, metrics and hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from stormspark.api import TaskHook
from stormspark.coroutines import problem_with_coroutine
from stormspark.metrics import Metric
from stormspark.plan.physical import ComponentPlan, TaskPlan
from stormspark.worker.task_batches import TaskInBatches
from stormspark.worker.task_host import Host
from stormspark.worker.task_metrics import TaskMetrics
from stormspark.worker.tuples.hooked_outlets import add_hooks
from stormspark.worker.tuples.outlets import Outlet

__all__ = ["ServesInstance"]

#: The methods of a hook, none of which may be a coroutine.
_OF_HOOK = tuple(name for name in vars(TaskHook) if not name.startswith("_"))


class ServesInstance(TaskInBatches):
    """The part of a `stormspark.worker.task.Task` that serves its instance."""

    def __init__(self, plan: TaskPlan, component: ComponentPlan, conf: Mapping[str, Any], host: Host) -> None:
        super().__init__(plan, component)
        self._conf = conf
        self._host = host
        self._clock = host.clock
        self.outlets: dict[str, Outlet] = {}
        self.hooks: list[TaskHook] = []
        self.metrics = TaskMetrics(self)
        #: Whether the instance is starting. Only then may it register metrics and add hooks.
        self._starting = False

    def set_timer(self, seconds: float, callback: Callable[[], None], first: float | None = None) -> None:
        """Call ``callback`` every ``seconds`` until the instance ends. ``first`` is the delay of the first call, if given."""
        self._host.set_timer(self, seconds, callback, first)  # type: ignore[arg-type]

    def now(self) -> float:
        """Return the time, in seconds since 1970."""
        return self._host.epoch() + self._clock()

    @property
    def shared_executor(self) -> Executor:
        """The thread pool of the worker. Once this property was read, collectors check which thread calls them.

        Otherwise the pool's threads might go unnoticed, because another task may have started them.
        """
        self._host.guard()
        return self.shared_pool

    @property
    def shared_pool(self) -> Executor:
        """The same pool, without a change of the collectors."""
        return self._host.shared_executor

    def add_metric(self, name: str, metric: Metric, bucket_secs: float) -> None:
        """Read ``metric`` once per ``bucket_secs`` (J18)."""
        self.set_timer(bucket_secs, self.register_metric(name, metric, bucket_secs))

    def register_metric(self, name: str, metric: Metric, bucket_secs: float) -> Callable[[], None]:
        """Register a metric. Return the function that has to be called once per ``bucket_secs``."""
        if not self._starting:
            msg = f"{self.name}: metric {name!r} is registered too late: register it in open or prepare"
            raise RuntimeError(msg)
        return self.metrics.register(name, metric, bucket_secs)

    def add_hook(self, hook: TaskHook) -> None:
        """Call ``hook`` for each emit, execute, ack and fail of this task (J21)."""
        self.check_hook(hook)
        self.append_hook(hook)
        self.prepare_hook(hook)

    def check_hook(self, hook: TaskHook) -> None:
        """Raise an error if ``hook`` comes too late or is no hook."""
        if not self._starting:
            msg = f"{self.name}: the hook {hook!r} is added too late: add it in open or prepare"
            raise RuntimeError(msg)
        if not isinstance(hook, TaskHook):
            msg = f"{self.name}: a hook must be a TaskHook, got {hook!r}"
            raise TypeError(msg)
        problem = problem_with_coroutine(hook, _OF_HOOK)
        if problem is not None:
            msg = f"{self.name}: a hook's {problem}"
            raise TypeError(msg)

    def append_hook(self, hook: TaskHook) -> None:
        """Call ``hook`` from now on, on the worker's thread or on the executor's own."""
        if not self.hooks:
            self._call_hooks_for_emits()
        self.hooks.append(hook)

    def prepare_hook(self, hook: TaskHook) -> None:
        """Call the ``prepare`` of a hook."""
        hook.prepare(self._conf, self._host.context(self))  # type: ignore[arg-type]

    def _call_hooks_for_emits(self) -> None:
        """From now on, call the hooks for each emit of the instance."""
        add_hooks(self.outlets, self.id, self.hooks)
        self.connect()

    def connect(self) -> None:
        """Let the instance use the current outlets, because they have changed."""
