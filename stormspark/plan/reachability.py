"""Reachability in the graph of components: which components tuples can reach, and which components form a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stormspark.plan.physical import ComponentPlan, EdgePlan

__all__ = ["reachable", "spouts_of", "strong_components"]


def spouts_of(
    components: Mapping[str, ComponentPlan], edges: Iterable[EdgePlan]
) -> dict[str, frozenset[str]]:
    """Return, for each component, the spouts whose tuples it emits or executes, directly or through other bolts.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout())
    >>> _ = builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    >>> plan = plan_topology(builder.create_topology("demo"))
    >>> spouts_of(plan.components, plan.edges)
    {'words': frozenset({'words'}), 'count': frozenset({'words'})}
    """
    successors: dict[str, set[str]] = {component: set() for component in components}
    for edge in edges:
        successors[edge.source].add(edge.target)
    spouts: dict[str, set[str]] = {component: set() for component in components}
    for component in components.values():
        if component.kind == "spout":
            for reached in reachable(component.id, successors) | {component.id}:
                spouts[reached].add(component.id)
    return {component: frozenset(names) for component, names in spouts.items()}


def reachable(start: str, successors: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the nodes that can be reached from ``start`` along one or more edges; ``start`` is among them if it is in a loop.

    >>> edges = {"a": ["b"], "b": ["c"], "c": ["b"]}
    >>> sorted(reachable("a", edges)), sorted(reachable("b", edges))
    (['b', 'c'], ['b', 'c'])
    """
    seen: set[str] = set()
    waiting = list(successors[start])
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting.extend(successors[node])
    return seen


def strong_components(successors: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Number the strongly connected components: nodes have the same number if each can reach the other.

    >>> groups = strong_components({"a": ["b"], "b": ["c"], "c": ["b"]})
    >>> groups["b"] == groups["c"] != groups["a"]
    True
    """
    reach = {node: reachable(node, successors) for node in successors}
    numbers: dict[str, int] = {}
    for node in successors:
        if node not in numbers:
            together = {other for other in reach[node] if node in reach[other]} | {node}
            numbers.update(dict.fromkeys(together, len(set(numbers.values()))))
    return numbers
