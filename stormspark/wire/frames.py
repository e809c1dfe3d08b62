"""The rows that Spark carries between workers: frames.

A frame holds many tuples (or acks), up to thousands, so that Spark's cost per row hardly matters. Heron sends tuples in batches
for the same reason. Spark promises no order between rows fetched from different map tasks. So each frame carries its sender and
its sequence number among the sender's frames, and `frames_from` restores the order. In this way, tuples from one sender task to
one receiver task stay in order (E31).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from stormspark.extras import or_missing
from stormspark.extras import pyarrow as pa

__all__ = ["FRAME_DDL", "FRAME_SCHEMA", "Frame", "FrameKind", "frames_from", "frames_to_batch"]


class FrameKind(IntEnum):
    """The kind of a frame's payload."""

    TICK = 0  # one row per worker and batch, without payload; the Spark task that reads it begins superstep 0
    TUPLES = 1  # tuples for tasks of the target worker
    ACKS = 2  # what the sender knows of trees (their parts, XORs and fails), for the home of these trees
    REPORT = 3  # a worker's report to the driver at the end of a round; target is the worker itself
    ROWS = 5  # rows of a source, as an Arrow IPC stream; ``sender`` is the task that gets them, ``sequence`` their partition
    BATCHES = 6  # rows for vectorised tasks of the target worker, or from such tasks to others, as Arrow
    UNSETTLED = (
        7  # the sender has work left in a batch that is a transaction: no worker may prepare in this round
    )
    LOADS = 4  # how many tuples wait for the sender's tasks, for choosers that follow load (D6)


class Frame(NamedTuple):
    """One frame, which is one row of the shuffle.

    ``target`` and ``sender`` are indices of workers, except for ``ROWS``. ``count`` is the number of tuples, rows or acks inside.
    """

    target: int
    kind: int
    sender: int
    sequence: int
    count: int  # type: ignore[assignment]  # hides the method `tuple.count`, which is not needed
    payload: bytes


#: The columns of a frame for Spark. `FRAME_SCHEMA` has the same columns for Arrow.
FRAME_DDL = "target int, kind int, sender int, sequence bigint, count bigint, payload binary"
FRAME_SCHEMA = or_missing(
    lambda: pa.schema(
        [
            ("target", pa.int32()),
            ("kind", pa.int32()),
            ("sender", pa.int32()),
            ("sequence", pa.int64()),
            ("count", pa.int64()),
            ("payload", pa.binary()),
        ]
    )
)


def frames_to_batch(frames: Sequence[Frame]) -> pa.RecordBatch:
    """Convert frames to one Arrow record batch.

    >>> frames_to_batch([Frame(1, FrameKind.ACKS, 0, 7, 2, b"..")]).num_rows
    1
    """
    columns = list(zip(*frames, strict=True)) or [()] * len(FRAME_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FRAME_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAME_SCHEMA)


def frames_from(batches: Iterable[pa.RecordBatch]) -> list[Frame]:
    """Convert record batches back to frames, in the order (sender, sequence).

    >>> two = [Frame(1, FrameKind.TUPLES, 0, 8, 1, b"b"), Frame(1, FrameKind.TUPLES, 0, 7, 1, b"a")]
    >>> [frame.payload for frame in frames_from([frames_to_batch(two)])]
    [b'a', b'b']
    """
    frames = [
        Frame(*row)
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
    frames.sort(key=lambda frame: (frame.sender, frame.sequence))
    return frames
