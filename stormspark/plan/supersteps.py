"""Cuts a topology into supersteps.

A superstep is one exchange between the workers, and the work after it: each worker goes on until it has no work left, or until
the deadline. In this module an *edge* is a subscription: an arrow of the topology. An edge *crosses* if its tuples may go to
another worker. So a tuple tree needs at most as many exchanges as there are crossing edges on the longest path of its tuples.

The graph may have loops (A15), for which no number of exchanges is enough. Therefore each edge of a loop counts once. For that,
the whole loop is treated as one node. The weight of this node is the number of its crossing edges. Tuples that go round a loop
again wait for the next round. If a tuple has to cross more edges than were counted, it arrives one round later. No tuple is lost.

Storm needs no supersteps, because it sends messages at any time. In Spark each exchange costs one more stage of the batch. Edges
that do not cross avoid that cost, because they need no exchange.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from graphlib import TopologicalSorter

from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import EdgePlan, PhysicalPlan
from stormspark.plan.reachability import strong_components

__all__ = ["count_supersteps", "cut_supersteps", "forward_order", "stages"]


def cut_supersteps(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Decide how many supersteps a round has."""
    return replace(plan, supersteps=count_supersteps(plan.edges))


def count_supersteps(edges: Iterable[EdgePlan]) -> int:
    """Return S: the number of crossing edges on the longest path, with the edges of a loop counted once."""
    return max(stages((), edges).values(), default=0)


def stages(components: Iterable[str], edges: Iterable[EdgePlan]) -> dict[str, int]:
    """Return, for each component, the superstep in which the last of its input arrives. Edges of a loop count once."""
    edges = list(edges)
    successors: dict[str, set[str]] = {component: set() for component in components}
    for edge in edges:
        successors.setdefault(edge.source, set()).add(edge.target)
        successors.setdefault(edge.target, set())
    group_of = strong_components(successors)
    inside: dict[int, int] = dict.fromkeys(group_of.values(), 0)
    predecessors: dict[int, set[int]] = {group: set() for group in inside}
    crossing: dict[tuple[int, int], bool] = {}
    for edge in edges:
        source, target = group_of[edge.source], group_of[edge.target]
        if source == target:
            inside[source] += edge.crosses
        else:
            predecessors[target].add(source)
            crossing[source, target] = crossing.get((source, target), False) or edge.crosses
    longest: dict[int, int] = {}
    for group in TopologicalSorter(predecessors).static_order():
        before = (longest[one] + crossing[one, group] for one in predecessors[group])
        longest[group] = max(before, default=0) + inside[group]
    return {component: longest[group] for component, group in group_of.items()}


def forward_order(components: Iterable[str], edges: Iterable[EdgePlan]) -> dict[str, int]:
    """Return a position for each component. Every edge that is not in a loop leads to a higher position.

    Inside a loop, components come in the order in which tuples from outside of the loop reach them.
    """
    edges = list(edges)
    successors: dict[str, list[str]] = {component: [] for component in components}
    for edge in edges:
        successors[edge.source].append(edge.target)
    group_of = strong_components(successors)
    predecessors: dict[int, set[int]] = {group: set() for group in group_of.values()}
    for edge in edges:
        if group_of[edge.source] != group_of[edge.target]:
            predecessors[group_of[edge.target]].add(group_of[edge.source])
    positions: dict[str, int] = {}
    for group in TopologicalSorter(predecessors).static_order():
        members = [component for component in successors if group_of[component] == group]
        # Begin with components that receive tuples from outside of the loop, then follow the loop.
        entries = [
            one for one in members if any(e.target == one and group_of[e.source] != group for e in edges)
        ]
        waiting = entries or members[:1]
        while waiting:
            component = waiting.pop(0)
            if component not in positions:
                positions[component] = len(positions)
                waiting.extend(n for n in successors[component] if group_of[n] == group)
    return positions
