"""heronpy's tuples (C21)."""

from __future__ import annotations

from collections import namedtuple

__all__ = ["HeronTuple", "Tuple", "TupleHelper"]

#: The fields of heronpy's public tuple. ``values`` is a list, and ``task`` is the id of the task that emitted the tuple.
Tuple = namedtuple("Tuple", "id component stream task values")

#: The tuple that ``process`` and ``process_tick`` get. ``roots`` is the engine's own tuple, which acks and anchors need. In a
#: tick, ``task``, ``values`` and ``roots`` are None.
HeronTuple = namedtuple("HeronTuple", "id component stream task values creation_time roots")


class TupleHelper:
    """The names of the component and stream of a tick."""

    TICK_TUPLE_ID = "__tick"
    TICK_SOURCE_COMPONENT = "__system"
