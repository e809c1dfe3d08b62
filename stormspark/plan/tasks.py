"""How many tasks and executors each component has, and which ids they get (A16-A18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stormspark.api import ComponentDeclaration
from stormspark.config import Settings, merged

__all__ = ["NumberedTask", "Size", "executor_runs", "number_tasks", "size_component"]

_ACKER = "__acker"


class Size(NamedTuple):
    """Numbers of tasks (instances) and of executors (in Storm: threads) of a component."""

    tasks: int
    executors: int


class NumberedTask(NamedTuple):
    """A task with its id, its index in its component and its executor's index in its component."""

    id: int
    component: str
    index: int  # type: ignore[assignment]  # a tuple's method of that name is not needed
    executor: int


def size_component(component: ComponentDeclaration, settings: Settings) -> Size:
    """Storm's rule (A16): tasks = set_num_tasks, else ``topology.tasks``, else the parallelism; capped by
    ``topology.max.task.parallelism``; and no more executors than tasks.
    """
    own = Settings.read(merged({"topology.tasks": settings.tasks}, component.conf))
    tasks = component.num_tasks or own.tasks or component.parallelism
    cap = own.max_task_parallelism or settings.max_task_parallelism
    if cap is not None:
        tasks = min(tasks, cap)
    return Size(tasks, min(component.parallelism, tasks))


def executor_runs(tasks: int, executors: int) -> list[int]:
    """Cut tasks into contiguous runs, larger runs first (A17).

    >>> executor_runs(10, 3)
    [4, 3, 3]
    """
    small, larger = divmod(tasks, executors)
    return [small + 1] * larger + [small] * (executors - larger)


def number_tasks(sizes: Mapping[str, Size], ackers: int) -> list[NumberedTask]:
    """Give out task ids from 1 over all components in byte order of their ids, the acker's among them (A18).

    The acker's ids stay unused here (the ledger lives in the workers), but user tasks have the ids that Storm
    gives them.

    >>> number_tasks({"words": Size(1, 1), "Upper": Size(1, 1)}, ackers=2)
    [NumberedTask(id=1, component='Upper', index=0, executor=0), NumberedTask(id=4, component='words', index=0, executor=0)]
    """
    everyone = dict(sizes)
    if ackers:
        everyone[_ACKER] = Size(ackers, ackers)
    numbered: list[NumberedTask] = []
    next_id = 1
    for component in sorted(everyone, key=str.encode):
        tasks, executors = everyone[component]
        index = 0
        for executor, run in enumerate(executor_runs(tasks, executors)):
            for _ in range(run):
                if component != _ACKER:
                    numbered.append(NumberedTask(next_id, component, index, executor))
                index += 1
                next_id += 1
    return numbered
