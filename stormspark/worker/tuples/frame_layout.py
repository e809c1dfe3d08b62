"""The layout of a frame of tuples, which `lanes` packs and `unpacking` reads: a table of trees, and blocks of columns.

A frame's bytes are three parts: the length of the second part, the pickled `Trees`, and a pickle of the blocks and `Orders`.
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
    """Tuples of one stream of task ``sender`` for task ``target``, in order, by column."""

    target: int
    sender: int
    stream: str
    count: int  # type: ignore[assignment]  # hides a tuple's method of that name, which nobody needs
    columns: list[Column]


class Trees(NamedTuple):
    """The trees of a frame, and which of them each tuple belongs to.

    ``keys`` are the distinct values that a tuple's roots have in this frame: None, the number of a tree, or several numbers.
    ``references`` has one array per block, with each tuple's position in ``keys``; all are None if the frame has no trees. If
    every tuple has exactly one tree, ``keys`` is None, and ``references`` has the numbers of the trees themselves.
    """

    edges: RemoteEdges
    keys: list[int | tuple[int, ...] | None] | None
    references: list[array[int] | None]


#: The order of tuples in lanes with several streams. The key is the number of the lane's first block. The value says how many
#: blocks the lane has and, for each tuple in order, in which of these blocks the tuple is.
Orders: TypeAlias = "dict[int, tuple[int, array[int]]]"
