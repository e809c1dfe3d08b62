"""What a task has counted on one of its streams. Only tasks that have several streams count by stream: otherwise the totals of
the task are those of its stream.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

__all__ = ["StreamCounts", "merged_streams"]

_Key = TypeVar("_Key", bound=Hashable)


class StreamCounts(NamedTuple):
    """Running totals of one stream of one task, with the meanings of `TaskCounters`.

    A stream that the task emits on has ``emitted`` and ``transferred``; if the task is a spout's, also ``acked``, ``failed`` and
    the complete latency: ``calls`` trees took ``call_seconds`` together. A stream that a bolt reads has ``executed``, ``acked``
    and ``failed``, and ``calls`` calls of execute took ``call_seconds``. Of these tuples, ``processed`` were acked after their
    execute had returned, ``process_seconds`` after its start, together.
    """

    emitted: int = 0
    transferred: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    calls: int = 0
    call_seconds: float = 0.0
    processed: int = 0
    process_seconds: float = 0.0

    def plus(self, other: StreamCounts) -> StreamCounts:
        """Return the totals of both."""
        return StreamCounts._make(mine + theirs for mine, theirs in zip(self, other, strict=True))


def merged_streams(
    one: Mapping[_Key, StreamCounts], other: Mapping[_Key, StreamCounts]
) -> dict[_Key, StreamCounts]:
    """Return the totals of two tasks, or of two incarnations of a task, by stream.

    >>> merged_streams({"default": StreamCounts(3, 3)}, {"default": StreamCounts(1, 2), "late": StreamCounts(5)})["default"][:2]
    (4, 5)
    """
    found = dict(one)
    for stream, counts in other.items():
        before = found.get(stream)
        found[stream] = counts if before is None else before.plus(counts)
    return found
