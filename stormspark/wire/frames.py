"""The row that Spark carries between workers.

A frame holds thousands of tuples (or acks), so that Spark's cost a row disappears; Heron batches for the same
reason. Spark promises no order between rows fetched from different map tasks, so each frame says who sent it
and its place among the frames of that sender; `frames_from` puts them in order again. That is what keeps
tuples between one sender task and one receiver task in order (E31).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa

__all__ = ["FRAME_DDL", "FRAME_SCHEMA", "Frame", "FrameKind", "frames_from", "frames_to_batch"]


class FrameKind(IntEnum):
    """What the payload of a frame is."""

    TICK = 0  # a row of the topology's own source: begins superstep 0, has no payload
    TUPLES = 1  # tuples for tasks of the target worker
    ACKS = 2  # parts of trees' XORs, and fails, for the worker that owns these trees
    REPORT = 3  # what a worker tells the driver at the end of a batch; target is the worker itself
    ROWS = 5  # rows of a source for task ``sender``: partition ``sequence``, an Arrow IPC stream
    BATCHES = 6  # rows for vectorised tasks of the target worker, or of theirs for others, as Arrow
    UNSETTLED = (
        7  # the sender has work left of a batch that is a transaction: nobody may prepare it in this round
    )
    LOADS = 4  # how many tuples wait for the sender's tasks, for choosers that follow load (D6); no count


class Frame(NamedTuple):
    """One row. ``target`` and ``sender`` are worker indices; ``count`` is the number of tuples or acks
    inside.
    """

    target: int
    kind: int
    sender: int
    sequence: int
    count: int  # type: ignore[assignment]  # a tuple's method of that name is not needed
    payload: bytes


#: The columns of a frame for Spark; `FRAME_SCHEMA` is the same for Arrow.
FRAME_DDL = "target int, kind int, sender int, sequence bigint, count bigint, payload binary"
FRAME_SCHEMA = pa.schema(
    [
        ("target", pa.int32()),
        ("kind", pa.int32()),
        ("sender", pa.int32()),
        ("sequence", pa.int64()),
        ("count", pa.int64()),
        ("payload", pa.binary()),
    ]
)


def frames_to_batch(frames: Sequence[Frame]) -> pa.RecordBatch:
    """Lay frames out as one Arrow batch.

    >>> frames_to_batch([Frame(1, FrameKind.ACKS, 0, 7, 2, b"..")]).num_rows
    1
    """
    columns = list(zip(*frames, strict=True)) or [()] * len(FRAME_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, FRAME_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=FRAME_SCHEMA)


def frames_from(batches: Iterable[pa.RecordBatch]) -> list[Frame]:
    """Read frames back, in the order (sender, sequence).

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
