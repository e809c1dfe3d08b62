"""Assigns executors to workers, as Storm's even scheduler does (J23)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan, TaskPlan

__all__ = ["pack", "pack_tasks"]


def pack_tasks(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Deal the executors out to the plan's workers."""
    return replace(plan, tasks=pack(plan.tasks.values(), plan.workers))


def pack(tasks: Iterable[TaskPlan], workers: int) -> dict[int, TaskPlan]:
    """Deal executors out to workers in turn, in the order of their first task. An executor's tasks stay together.

    >>> tasks = [TaskPlan(number + 1, "a", number, number // 2, worker=0) for number in range(6)]
    >>> [task.worker for task in pack(tasks, 2).values()]
    [0, 0, 1, 1, 0, 0]
    """
    placed: dict[int, TaskPlan] = {}
    dealt: dict[tuple[str, int], int] = {}
    for task in sorted(tasks, key=lambda task: task.id):
        worker = dealt.setdefault((task.component, task.executor), len(dealt) % workers)
        placed[task.id] = replace(task, worker=worker)
    return placed
