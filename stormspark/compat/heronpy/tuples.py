"""heronpy's tuples (C21)."""

from __future__ import annotations

from collections import namedtuple

__all__ = ["HeronTuple", "Tuple", "TupleHelper"]

#: What a component may rely on: ``values`` is a list, ``task`` the id of the task that emitted it.
Tuple = namedtuple("Tuple", "id component stream task values")

#: What ``process`` is given: a tick has values None. ``roots`` is the engine's own tuple, which acks and anchors go by; None of
#: a tick. A pickled one belongs to no tree.
HeronTuple = namedtuple("HeronTuple", "id component stream task values creation_time roots")


class TupleHelper:
    """The names that a tick goes by."""

    TICK_TUPLE_ID = "__tick"
    TICK_SOURCE_COMPONENT = "__system"
