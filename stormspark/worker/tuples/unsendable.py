"""Takes tuples that can't be sent to another worker out of their frame, and fails them with a reason.

As long as all tuples can be sent, this module is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import cloudpickle

from stormspark.acker import Roots
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.salvage import error_text

__all__ = ["FailUnsent", "Taken", "too_large", "unpicklable", "without"]

#: The content of a lane: its sender, its target and its deliveries.
Taken: TypeAlias = tuple[int, int, list[Delivery]]
#: A function that fails tuples that can't be sent. It takes the id of the sending task, the roots of each tuple, and the reason.
FailUnsent = Callable[[int, Iterable[Roots], str], None]


def without(taken: list[Taken], problem: Callable[[Delivery], str | None], fail: FailUnsent) -> list[Taken]:
    """Return ``taken`` without the tuples for which ``problem`` returns a reason. These tuples fail with that reason."""
    sendable = []
    for sender, target, lane in taken:
        kept = []
        for delivery in lane:
            reason = problem(delivery)
            if reason is None:
                kept.append(delivery)
                continue
            _, source, roots = delivery
            fail(source.task, (roots,), reason)
        if kept:
            sendable.append((sender, target, kept))
    return sendable


def unpicklable(delivery: Delivery) -> str | None:
    """Return which value of a tuple can't be pickled and why; None if all values can."""
    values, source, _ = delivery
    error = _pickle_error(values)
    if error is None:
        return None
    name, cause = error
    return (
        f"field {name} of a tuple on stream {source.stream!r} of {source.component!r} can't be pickled, so it "
        f"can't go to another worker: {cause}"  # C8
    )


def too_large(delivery: Delivery, size: int, most_bytes: int) -> str | None:
    """Return the reason if a tuple of ``size`` bytes is too large to be sent; None if it is not too large."""
    source = delivery[1]
    if size <= most_bytes:
        return None
    return (
        f"a tuple on stream {source.stream!r} of {source.component!r} has {size:,} bytes, and a tuple for another "
        f"worker may have {most_bytes:,} (stormspark.tuple.max.bytes): emit it in parts, or emit a reference to it"
    )


def _pickle_error(values: tuple[Any, ...]) -> tuple[str, str] | None:
    """Return which of ``values`` can't be pickled and why; None if all of them can."""
    for position, value in enumerate(values):
        try:
            cloudpickle.dumps(value)
        except (Exception, SystemExit) as error:
            return f"{position} ({type(value).__name__})", error_text(error)
    return None
