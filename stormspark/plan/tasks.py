"""Decides how many tasks and executors each component has, and which ids the tasks get (A16-A18)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from stormspark.api import ComponentDeclaration
from stormspark.config import Settings
from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan, TaskPlan

__all__ = [
    "NumberedTask",
    "Size",
    "create_tasks",
    "enter_tasks",
    "executor_runs",
    "number_tasks",
    "size_component",
    "system_tasks",
    "wanted_tasks",
]


class Size(NamedTuple):
    """The numbers of tasks (instances) and of executors (in Storm: threads) of a component."""

    tasks: int
    executors: int


class NumberedTask(NamedTuple):
    """A task with its id, its index within the component and the index of its executor within the component."""

    id: int
    component: str
    index: int  # type: ignore[assignment]  # a tuple's method of that name is not needed
    executor: int


def create_tasks(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Give each component its executors and tasks, and each task its id. Until tasks are packed, all are in worker 0."""
    settings, declared = plan.settings, context.topology.components
    sizes = {one.id: size_component(one, context.own_settings(one), settings) for one in declared.values()}
    plan = enter_tasks(plan, sizes)
    wanted = {one.id: wanted_tasks(one, settings) for one in declared.values()}
    components = {one.id: replace(one, wanted_tasks=wanted[one.id]) for one in plan.components.values()}
    return replace(plan, components=components)


def enter_tasks(plan: PhysicalPlan, sizes: Mapping[str, Size]) -> PhysicalPlan:
    """Give each component this number of executors and tasks, and each task its id. All tasks are in worker 0."""
    numbered = number_tasks(sizes, system_tasks(plan.settings, plan.conf))
    components = {
        one.id: replace(
            one,
            parallelism=sizes[one.id].executors,
            tasks=tuple(task.id for task in numbered if task.component == one.id),
        )
        for one in plan.components.values()
    }
    tasks = {
        task.id: TaskPlan(task.id, task.component, task.index, task.executor, worker=0) for task in numbered
    }
    return replace(plan, components=components, tasks=tasks)


def wanted_tasks(component: ComponentDeclaration, settings: Settings) -> int:
    """Return the number of tasks by Storm's rule (A16): by set_num_tasks, else by ``topology.tasks``, else the parallelism."""
    return component.num_tasks or settings.tasks or component.parallelism


def size_component(component: ComponentDeclaration, own_settings: Settings, settings: Settings) -> Size:
    """Return the number of tasks, at most ``topology.max.task.parallelism``, and of executors, at most one per task (A16).

    A cap among the component's ``own_settings`` overrides the topology's.
    """
    tasks = wanted_tasks(component, settings)
    cap = own_settings.max_task_parallelism or settings.max_task_parallelism
    if cap is not None:
        tasks = min(tasks, cap)
    return Size(tasks, min(component.parallelism, tasks))


def executor_runs(tasks: int, executors: int) -> list[int]:
    """Cut tasks into contiguous runs, one per executor, with the larger runs first (A17). Return the lengths of the runs.

    >>> executor_runs(10, 3)
    [4, 3, 3]
    """
    small, larger = divmod(tasks, executors)
    return [small + 1] * larger + [small] * (executors - larger)


def system_tasks(settings: Settings, conf: Mapping[str, Any]) -> dict[str, int]:
    """Return how many tasks each of Storm's own components has: ackers, event loggers, metrics consumers (A13, A18).

    ``__system`` has task -1 and does not count. If a consumer's class is registered twice, the second id ends with ``#2``.

    >>> system_tasks(Settings(), {"topology.metrics.consumer.register": [{"class": "m:Log", "parallelism.hint": 2}]})
    {'__acker': 1, '__eventlogger': 0, '__metrics_m:Log': 2}
    """
    tasks = {"__acker": settings.acker_executors, "__eventlogger": settings.event_loggers}
    seen: Counter[str] = Counter()
    for consumer in conf.get("topology.metrics.consumer.register") or ():
        name = consumer["class"]
        seen[name] += 1
        id = f"__metrics_{name}" + (f"#{seen[name]}" if seen[name] > 1 else "")
        tasks[id] = consumer.get("parallelism.hint") or 1
    return tasks


def number_tasks(sizes: Mapping[str, Size], system: Mapping[str, int]) -> list[NumberedTask]:
    """Number all tasks from 1, including those of Storm's own components. Components come in the byte order of their ids (A18).

    ``system`` says how many tasks each of Storm's own components has (see `system_tasks`). These components have no tasks in
    stormspark, so their ids stay unused. Thus the user's tasks have the ids that Storm would assign.

    >>> number_tasks({"words": Size(1, 1), "Upper": Size(1, 1)}, {"__acker": 2})
    [NumberedTask(id=1, component='Upper', index=0, executor=0), NumberedTask(id=4, component='words', index=0, executor=0)]
    """
    everyone = {**sizes, **{id: Size(tasks, tasks) for id, tasks in system.items() if tasks}}
    numbered: list[NumberedTask] = []
    next_id = 1
    for component in sorted(everyone, key=str.encode):
        tasks, executors = everyone[component]
        index = 0
        for executor, run in enumerate(executor_runs(tasks, executors)):
            for _ in range(run):
                if component in sizes:
                    numbered.append(NumberedTask(next_id, component, index, executor))
                index += 1
                next_id += 1
    return numbered
