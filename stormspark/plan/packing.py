"""Which worker hosts which executor: Storm's even scheduler (J23)."""

from __future__ import annotations

from collections.abc import Iterable

from stormspark.plan.physical import TaskPlan
from stormspark.plan.tasks import NumberedTask

__all__ = ["pack"]


def pack(tasks: Iterable[NumberedTask], workers: int) -> dict[int, TaskPlan]:
    """Deal executors out to workers in turn, in the order of their first task; an executor's tasks stay
    together.

    >>> [task.worker for task in pack([NumberedTask(i + 1, "a", i, i // 2) for i in range(6)], 2).values()]
    [0, 0, 1, 1, 0, 0]
    """
    placed: dict[int, TaskPlan] = {}
    dealt: dict[tuple[str, int], int] = {}
    for task in sorted(tasks):
        worker = dealt.setdefault((task.component, task.executor), len(dealt) % workers)
        placed[task.id] = TaskPlan(task.id, task.component, task.index, task.executor, worker)
    return placed
