"""The layout of a frame of tuples, which `lanes` packs and `unpacking` reads: a table of trees, and blocks of columns.

A frame's bytes are the length of the pickled table, the pickled `Trees`, and a pickle of the blocks with their orders.
"""

from __future__ import annotations

import struct
from array import array
from typing import NamedTuple, TypeAlias

from stormspark.acker import RemoteEdges
from stormspark.worker.tuples.columns import Column

__all__ = ["LENGTH", "Block", "Orders", "Trees"]

#: The length of the pickled table.
LENGTH = struct.Struct("<Q")


class Block(NamedTuple):
    """Tuples of one stream of task ``sender`` for task ``target``, in order, by column."""

    target: int
    sender: int
    stream: str
    count: int  # type: ignore[assignment]  # hides a tuple's method of that name, which nobody needs
    columns: list[Column]


class Trees(NamedTuple):
    """The trees of a frame, and which of them each tuple belongs to.

    ``keys``: the distinct values that a tuple's roots have in this frame: None, the number of a tree, or several numbers. It is
    None itself if every tuple has one tree; then a key is the number of a tree. ``references``: for each block, the positions
    of its tuples' keys; None if the frame has no trees at all.
    """

    edges: RemoteEdges
    keys: list[int | tuple[int, ...] | None] | None
    references: list[array[int] | None]


#: For a lane with several streams, by the number of its first block: how many blocks it has, and the block of each tuple in
#: order.
Orders: TypeAlias = "dict[int, tuple[int, array[int]]]"
