"""Orders the flushes at the end of the input: bolts that are nearer to the spouts flush first.

A bolt *flushes* what it holds when its input has ended: windows fire, and batches are written. That may emit tuples to bolts
behind it. So a bolt flushes only after all bolts before it have flushed, and all tuples that they have emitted are executed. Each
bolt has a *turn*. In between, the driver waits until no tuple waits in any worker (`stormspark.driver.end_of_input`).

In a loop of the topology no bolt is the first one. So the bolts of a loop have the same turn. What goes round the loop after
that turn is flushed when all turns begin anew.
"""

from __future__ import annotations

from dataclasses import replace
from graphlib import TopologicalSorter

from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.reachability import reachable, strong_components

__all__ = ["bolts_in_loops", "order_flushes"]


def order_flushes(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Decide in which turn each bolt flushes."""
    group_of = strong_components(_successors(plan))
    before: dict[int, set[int]] = {group: set() for group in group_of.values()}
    for edge in plan.edges:
        source, target = group_of[edge.source], group_of[edge.target]
        if source != target:
            before[target].add(source)
    flushing = {group_of[one.id] for one in plan.components.values() if one.flushes}
    turn_of: dict[int, int] = {}
    for group in TopologicalSorter(before).static_order():
        turn_of[group] = max((turn_of[one] for one in before[group]), default=0) + (group in flushing)
    turns = {one.id: turn_of[group_of[one.id]] for one in plan.components.values() if one.flushes}
    return replace(plan, flush_turns=dict(sorted(turns.items(), key=lambda item: (item[1], item[0]))))


def bolts_in_loops(plan: PhysicalPlan) -> list[str]:
    """Return the bolts that flush and are in a loop of the topology."""
    successors = _successors(plan)
    return [bolt for bolt in plan.flush_turns if bolt in reachable(bolt, successors)]


def _successors(plan: PhysicalPlan) -> dict[str, list[str]]:
    successors: dict[str, list[str]] = {component: [] for component in plan.components}
    for edge in plan.edges:
        successors[edge.source].append(edge.target)
    return successors
