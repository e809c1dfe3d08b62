"""The loop that calls a spout's ``ack`` once per acked tree. It is part of the tuple path."""

# verdicts.pxd beside this module gives C types for the variables of `deliver_acks`. Cython compiles this module with these
# types. When you add, rename or retype a variable, change both files and check with `make compiled`.

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from stormspark.acker.tree import Tree
from stormspark.acker.verdict import ACKED

__all__ = ["deliver_acks"]


def deliver_acks(
    ended: list[Tree],
    begin: int,
    most: int,
    ack: Callable[[Hashable], Any],
    now: float,
    latencies: list[float],
) -> int:
    """Call ``ack`` for up to ``most`` trees, from position ``begin`` on. Stop at the first tree that was not acked (B7).

    Returns the position of the first tree that is left. For each tree before that position, ``latencies`` gets the seconds from
    the tree's emit until ``now``, even if its ``ack`` raises.
    """
    place = begin
    end = min(len(ended), begin + most)
    while place < end:
        tree = ended[place]
        if tree.verdict is not ACKED:
            break
        place += 1
        latencies.append(now - tree.emitted_at)
        ack(tree.message_id)
    return place
