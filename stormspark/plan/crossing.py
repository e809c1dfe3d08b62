"""Which edges can cross workers: the others need no exchange."""

from __future__ import annotations

from collections.abc import Mapping

from stormspark.api import Topology
from stormspark.plan.physical import EdgePlan, TaskPlan

__all__ = ["cut_edges"]


def cut_edges(topology: Topology, tasks: Mapping[int, TaskPlan]) -> tuple[EdgePlan, ...]:
    """Every subscription, with whether some sender may choose a task of another worker.

    A local-or-shuffle edge does not cross where each worker with a sender has a target too, a global one does
    not where all senders live beside the lowest target, and with one worker nothing does.
    """
    by_component: dict[str, list[TaskPlan]] = {}
    for task in tasks.values():
        by_component.setdefault(task.component, []).append(task)
    edges = []
    for component in topology.components.values():
        targets = by_component[component.id]
        all_ids = tuple(task.id for task in targets)
        for (source, stream), grouping in component.inputs.items():
            crosses = False
            for sender in by_component[source]:
                local = tuple(task.id for task in targets if task.worker == sender.worker)
                crosses |= any(
                    tasks[id].worker != sender.worker for id in grouping.candidates(all_ids, local)
                )
            edges.append(EdgePlan(source, stream, component.id, grouping, crosses))
    return tuple(edges)
