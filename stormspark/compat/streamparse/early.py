"""What components of streamparse 1 and 2 had, and those of streamparse 3 have not (A37).

Components of a topology in Clojure get this. ``emit`` returns task ids unless ``need_task_ids`` is false. The attributes of
streamparse 1 begin with an underscore, such as ``self._task_id``. A `BatchingBolt` without ticks processes its batches every
``secs_between_batches``, as in streamparse 1. Before 1.0 that attribute was in capital letters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stormspark.compat.streamparse.bolt import BatchingBolt, Bolt

__all__ = ["secs_between_batches", "with_task_ids"]

_TICKS = "topology.tick.tuple.freq.secs"
#: How long streamparse 1 collects tuples, unless the class says another number.
_SECS = 2.0


def with_task_ids(emit: Callable[..., list[int] | None]) -> Callable[..., list[int] | None]:
    """Return an ``emit`` that returns task ids by default."""

    def emit_with_task_ids(*args: Any, **kwargs: Any) -> list[int] | None:
        if len(args) == 5:  # from Bolt.emit or Spout.emit, whose fifth argument is need_task_ids
            return emit(*args[:4], args[4] is not False)
        if kwargs.get("need_task_ids") is None:
            kwargs["need_task_ids"] = True
        return emit(*args, **kwargs)

    return emit_with_task_ids


def secs_between_batches(bolt: Bolt, conf: Mapping[str, Any]) -> float | None:
    """Return the time between two batches of a bolt of streamparse 1; None if ticks end the batches, or if it has no batches."""
    if not isinstance(bolt, BatchingBolt) or conf.get(_TICKS):
        return None
    return float(getattr(bolt, "secs_between_batches", getattr(bolt, "SECS_BETWEEN_BATCHES", _SECS)))
