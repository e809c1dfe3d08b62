"""Finds how many tuples per second take each subscription, from what components sent and executed.

A bolt with several subscriptions counts what it executes by each of them. A bolt with one executes what comes by it, and a
component with one subscriber sends it everything. What is left over elsewhere is known, too, if it is one subscription's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["edge_rates"]


def edge_rates(
    ends: Sequence[tuple[str, str]],
    sent: Mapping[str, float],
    executed: Mapping[str, float],
    counted: Sequence[float | None] = (),
) -> list[float | None]:
    """Return the rate of each subscription, which leads from one component to another; None where it can't be told.

    ``counted`` has the rates that are known already.

    >>> edge_rates([("a", "b"), ("a", "c"), ("b", "c")], {"a": 30.0, "b": 5.0}, {"b": 10.0, "c": 25.0})
    [10.0, 20.0, 5.0]
    >>> edge_rates([("a", "b"), ("a", "b")], {"a": 30.0}, {"b": 30.0})
    [None, None]
    >>> edge_rates([("a", "b"), ("a", "b")], {"a": 30.0}, {"b": 30.0}, [10.0, 20.0])
    [10.0, 20.0]
    """
    rates = list(counted) or [None] * len(ends)
    groups: list[tuple[float, list[int]]] = []
    for side, totals in ((1, executed), (0, sent)):
        by_end: dict[str, list[int]] = {}
        for number, one in enumerate(ends):
            by_end.setdefault(one[side], []).append(number)
        groups += [(totals[name], numbers) for name, numbers in by_end.items() if name in totals]
    moved = True
    while moved:
        moved = False
        for total, numbers in groups:
            unknown = [number for number in numbers if rates[number] is None]
            if len(unknown) == 1:
                rates[unknown[0]] = max(0.0, total - sum(rates[number] or 0.0 for number in numbers))
                moved = True
    return rates
