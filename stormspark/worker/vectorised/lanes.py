"""Lanes of record batches to other workers. They are like the lanes of `stormspark.worker.tuples.lanes`, but carry Arrow data.

A sealed frame is a table of trees, followed by blocks. In the table each tree has one edge for all of its rows in the frame. A
block has the receiver and the sender of a record batch, and the columns as an Arrow IPC message. It also has one number per row,
which says to which trees the row belongs, or one such number for all rows. Both sides know the schema from the plan, so the
message does not contain it. If a schema has dictionaries, the columns are a whole IPC stream instead.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from stormspark.acker import Branch, Ledger, RemoteEdges, Roots
from stormspark.api import TupleSource
from stormspark.extras import pyarrow as pa
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.unsendable import FailUnsent
from stormspark.worker.vectorised.outlets import Receive
from stormspark.worker.vectorised.roots import BatchRoots

__all__ = ["BatchLanes", "unpack_batches"]

_LENGTH = struct.Struct("<Q")
#: Blocks begin at multiples of this many bytes, so that the columns are aligned as Arrow needs them.
_ALIGNMENT = 64


class _Block(NamedTuple):
    """Rows of one stream from task ``sender`` to task ``target``.

    ``keys``: the index of each row's key (see `BatchRoots`), as packed 32-bit ints. If all rows have the same key, ``keys`` is
    a single index.
    """

    target: int
    sender: int
    stream: str
    rows: int
    keys: int | bytes
    size: int


class _Waiting(NamedTuple):
    target: int
    batch: pa.RecordBatch
    source: TupleSource
    roots: BatchRoots


class BatchLanes:
    """All lanes of record batches from this worker to one other worker. Rows from one task to another stay in order (E31)."""

    def __init__(
        self,
        worker: int,
        ledger: Ledger,
        fail: FailUnsent = lambda task, roots, reason: None,
        frame_bytes: int = 4 << 20,
        most_bytes: int = 1 << 30,
    ) -> None:
        self.worker = worker
        self._ledger = ledger
        self._fail = fail
        self._frame_bytes, self._most_bytes = frame_bytes, most_bytes
        self._waiting: list[_Waiting] = []
        self._rows = 0
        #: The bytes of all waiting rows.
        self.bytes = 0

    def inbox(self, target: int) -> Receive:
        """Return the function that takes rows for task ``target``."""

        def receive(batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> None:
            for part, its_roots in self._parts(batch, roots):
                self._waiting.append(_Waiting(target, part, source, its_roots))
            self._rows += batch.num_rows
            self.bytes += batch.nbytes

        return receive

    def __len__(self) -> int:
        return self._rows

    def waiting(self) -> Counter[int]:
        """Count the waiting rows by target task."""
        waiting: Counter[int] = Counter()
        for one in self._waiting:
            waiting[one.target] += one.batch.num_rows
        return waiting

    def by_target(self, sender: int | None = None) -> Iterator[tuple[int, list[Delivery]]]:
        """Iterate over the waiting rows as deliveries without values, by target task.

        If a ``sender`` is given, the result is empty, because the caller wants the lists that the sender itself appends to, and
        these lanes have no such lists.
        """
        for one in self._waiting if sender is None else ():
            roots = one.roots.each()
            yield one.target, [((), one.source, next(roots)) for _ in range(one.batch.num_rows)]

    def clear(self) -> None:
        """Drop all waiting rows."""
        self._waiting, self._rows, self.bytes = [], 0, 0

    def _parts(self, batch: pa.RecordBatch, roots: BatchRoots) -> Iterator[tuple[pa.RecordBatch, BatchRoots]]:
        """Split a record batch into parts that fit into a frame. A single row that does not fit becomes a part, too."""
        rows = batch.num_rows
        # A record batch with dictionaries is not split, because each part would carry the whole dictionaries.
        if rows < 2 or batch.nbytes <= self._frame_bytes or _has_dictionaries(batch.schema):
            yield batch, roots
            return
        for part in (slice(0, rows // 2), slice(rows // 2, rows)):
            its_roots = roots if roots.rows is None else BatchRoots(roots.keys, roots.rows[part])
            yield from self._parts(batch.slice(part.start, part.stop - part.start), its_roots)

    def seal(self) -> list[tuple[int, bytes]]:
        """Take all waiting rows, and return them as payloads in sending order, each as (number of rows, bytes).

        A row with more than ``most_bytes`` bytes fails, and so does a record batch with dictionaries that is as large.
        """
        waiting = self._waiting
        if not waiting:
            return []
        self.clear()
        pieces: list[list[_Waiting]] = [[]]
        size = 0
        for one in waiting:
            if one.batch.nbytes > self._most_bytes:
                self._fail_too_large(one)
                continue
            if size and size + one.batch.nbytes > self._frame_bytes:
                pieces.append([])
                size = 0
            pieces[-1].append(one)
            size += one.batch.nbytes
        return [self._sealed(piece) for piece in pieces if piece]

    def _fail_too_large(self, one: _Waiting) -> None:
        source = one.source
        reason = (
            f"{'a row' if one.batch.num_rows == 1 else 'a batch with dictionaries'} on stream {source.stream!r} of "
            f"{source.component!r} has {one.batch.nbytes:,} bytes, and what goes to another worker in one piece may have "
            f"{self._most_bytes:,} (stormspark.tuple.max.bytes): emit it in parts, or emit a reference to it"
        )
        self._fail(source.task, islice(one.roots.each(), one.batch.num_rows), reason)

    def _sealed(self, waiting: list[_Waiting]) -> tuple[int, bytes]:
        edges, keys, numbers = self._trees(waiting)
        blocks, parts = [], []
        for one, number in zip(waiting, numbers, strict=True):
            data = _encoded(one.batch)
            size = data.size
            blocks.append(
                _Block(one.target, one.source.task, one.source.stream, one.batch.num_rows, number, size)
            )
            parts += [data, bytes(-size % _ALIGNMENT)]
        head = pickle.dumps((edges, keys, blocks), 5)
        start = _LENGTH.size + len(head)
        rows = sum(one.batch.num_rows for one in waiting)
        return rows, b"".join((_LENGTH.pack(len(head)), head, bytes(-start % _ALIGNMENT), *parts))

    def _trees(self, waiting: list[_Waiting]) -> tuple[RemoteEdges, list[Any], list[int | bytes]]:
        """Give each tree of the frame its edge.

        Return the table of trees, the trees of each key, and the index of each row's key.
        """
        places: dict[Roots, int] = {}
        by_tree: Counter[Branch] = Counter()
        numbers: list[int | bytes] = []
        for one in waiting:
            roots = one.roots
            if roots.rows is None:
                numbers.append(places.setdefault(roots.keys[0], len(places)))
            else:
                there = np.flatnonzero(np.bincount(roots.rows))
                place_of = np.empty(len(roots.keys), np.int32)
                place_of[there] = [places.setdefault(roots.keys[at], len(places)) for at in there.tolist()]
                numbers.append(place_of[roots.rows].tobytes())
            for key, count in roots.counted(one.batch.num_rows):
                for tree in key if isinstance(key, tuple) else (key,):
                    if tree is not None:
                        by_tree[tree] += count
        number_of = {tree: number for number, tree in enumerate(by_tree)}
        keys = [
            tuple(number_of[tree] for tree in key)
            if isinstance(key, tuple)
            else None
            if key is None
            else number_of[key]
            for key in places
        ]
        return self._ledger.send(by_tree), keys, numbers


def unpack_batches(
    payload: bytes | memoryview,
    ledger: Ledger,
    sources: Mapping[tuple[int, str], TupleSource],
    schema_of: Callable[[TupleSource], pa.Schema],
    receive_of: Mapping[int, Receive],
    traced: list[Branch] | None = None,
) -> int:
    """Give a frame's rows to their tasks, and their edges to the ledger. Return the number of rows.

    While the ledger takes in the edges, it collects the branches of traced trees (`stormspark.worker.stories`) in the list
    ``traced``. This function records in the traces of these branches which tasks the frame's rows are for, and clears the list.
    The columns stay in ``payload``, so nothing is copied.
    """
    view = memoryview(payload)
    split = _LENGTH.size + _LENGTH.unpack_from(view)[0]
    edges, of_keys, blocks = pickle.loads(view[_LENGTH.size : split])
    trees: list[Any] = ledger.receive(edges)
    keys = [
        None if key is None else trees[key] if type(key) is int else tuple(trees[one] for one in key)
        for key in of_keys
    ]
    buffer = pa.py_buffer(view)
    at = split + -split % _ALIGNMENT
    received = 0
    for target, sender, stream, count, numbers, size in blocks:
        source = sources[sender, stream]
        batch = _decoded(buffer.slice(at, size), schema_of(source))
        at += size + -size % _ALIGNMENT
        one_key = type(numbers) is int
        roots = BatchRoots(
            [keys[numbers]] if one_key else keys, None if one_key else np.frombuffer(numbers, np.int32)
        )
        if traced:
            _tell_arrivals(traced, target, roots, count)
        receive_of[target](batch, source, roots)
        received += count
    if traced:
        traced.clear()
    return received


def _tell_arrivals(traced: list[Any], target: int, roots: BatchRoots, count: int) -> None:
    """Record in the traces of branches how many rows a block has for its task."""
    for key, rows in roots.counted(count):
        branches: tuple[Any, ...] = key if isinstance(key, tuple) else (key,)
        for branch in branches:
            if branch in traced:
                branch.trace.arrived(target, rows)


def _encoded(batch: pa.RecordBatch) -> pa.Buffer:
    if not _has_dictionaries(batch.schema):
        return batch.serialize()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _decoded(buffer: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    if not _has_dictionaries(schema):
        return pa.ipc.read_record_batch(buffer, schema)
    with pa.ipc.open_stream(buffer) as reader:
        return reader.read_next_batch()


def _has_dictionaries(schema: pa.Schema) -> bool:
    return any(_is_dictionary(kind) for kind in schema.types)


def _is_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_is_dictionary(kind.field(at).type) for at in range(kind.num_fields))
