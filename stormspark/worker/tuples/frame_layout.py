"""The layout of a frame of tuples. A frame has a table of trees, and blocks of columns. `lanes` packs frames, and `unpacking`
reads them.

A frame's bytes have three parts: the length of the second part, the pickled `Trees`, and a pickle of the blocks and the
`Orders`.
"""

from __future__ import annotations

import struct
from array import array
from typing import NamedTuple, TypeAlias

from stormspark.acker import RemoteEdges
from stormspark.worker.tuples.columns import Column

__all__ = ["LENGTH", "Block", "Orders", "Trees"]

#: The format of the first part: the length of the pickled table.
LENGTH = struct.Struct("<Q")


class Block(NamedTuple):
    """Tuples of one stream from task ``sender`` to task ``target``, in order. ``columns``: their values, by column."""

    target: int
    sender: int
    stream: str
    count: int  # type: ignore[assignment]  # hides a tuple's method of that name, which nobody needs
    columns: list[Column]


class Trees(NamedTuple):
    """The trees of a frame, and which of them each tuple belongs to.

    Tuples that belong to the same trees share one *key*: None, the index of their tree in ``edges``, or several such indices.
    ``references`` has one array per block. An array holds, for each tuple of the block, the index of its key in ``keys``. All
    arrays are None if the frame has no trees. If every tuple has exactly one tree, ``keys`` is None, and the arrays hold the
    indices of the trees themselves.
    """

    edges: RemoteEdges
    keys: list[int | tuple[int, ...] | None] | None
    references: list[array[int] | None]


#: The order of tuples in lanes with several streams. The key is the index of the lane's first block. The value is a pair: how
#: many blocks the lane has, and for each tuple in order the index of its block among these.
Orders: TypeAlias = "dict[int, tuple[int, array[int]]]"
