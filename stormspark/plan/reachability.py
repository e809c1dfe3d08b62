"""Reachability in the graph of components: which components tuples can reach, and which components form a loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["reachable", "strong_components"]


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
