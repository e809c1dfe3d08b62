"""Finds the edges (subscriptions) whose tuples may go to another worker. All other edges need no exchange."""

from __future__ import annotations

from dataclasses import replace

from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import EdgePlan, PhysicalPlan, TaskPlan

__all__ = ["find_crossings"]


def find_crossings(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Mark each subscription in which some sender may choose a task of another worker.

    A local-or-shuffle edge does not cross if each worker with a sender has a target too. A global edge does not cross if all
    senders live in the worker of the target with the lowest id. With one worker no edge crosses.
    """
    by_component: dict[str, list[TaskPlan]] = {}
    for task in plan.tasks.values():
        by_component.setdefault(task.component, []).append(task)
    edges = tuple(
        replace(edge, crosses=_crosses(edge, by_component[edge.source], by_component[edge.target], plan))
        for edge in plan.edges
    )
    return replace(plan, edges=edges)


def _crosses(edge: EdgePlan, senders: list[TaskPlan], targets: list[TaskPlan], plan: PhysicalPlan) -> bool:
    all_ids = tuple(task.id for task in targets)
    crosses = False
    for sender in senders:
        local = tuple(task.id for task in targets if task.worker == sender.worker)
        crosses |= any(
            plan.tasks[id].worker != sender.worker for id in edge.grouping.candidates(all_ids, local)
        )
    return crosses
