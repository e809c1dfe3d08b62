"""Recorded inputs: the tuples that bolts got and emitted in a batch, kept beside the state table for replays.

    inputs/<generation>-<txid>-<random>       written by a worker: one `Chunk` after another, pickled
    inputs/plan-<generation>                  the code that ran: `sys.path` and the plan, pickled

A worker writes chunks while it executes them, in the order of execution. The batch's commit decides which attempt at the batch
counts: for each worker, it has a row of kind ``inputs`` that names the worker's files. Files that no commit names come from
attempts that were rolled back. They are deleted together with the files of batches that can't be restored any more.
"""

from __future__ import annotations

import contextlib
import pickle
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import is_
from typing import Any, NamedTuple

import cloudpickle

from stormspark.checkpoint.state_files import Folder
from stormspark.checkpoint.state_table import StateTable, TaskChanges
from stormspark.errors import CheckpointError
from stormspark.extras import pyarrow as pa

__all__ = [
    "Chunk",
    "InputFile",
    "InputFiles",
    "Unpicklable",
    "dump_pairs",
    "generation_of_inputs",
    "load_pairs",
    "named",
]

_KIND, _KEY = "inputs", b"files"
_INPUTS = re.compile(r"(?:inputs/)?(\d+)-(\d+)-[0-9a-f]{32}")
#: At most this many ranges of batches are listed.
_RANGES_SHOWN = 8
_PLAN = re.compile(r"(?:inputs/)?plan-(\d+)")
#: A worker writes about this many bytes at once.
_BUFFER = 1 << 18


class Chunk(NamedTuple):
    """Tuples that a task executed one after the other, and the tuples that it emitted meanwhile.

    ``inputs`` has the source and the values of each input tuple (`load_pairs`). The first ``executed`` of these tuples were
    executed; the rest comes again in another chunk. ``emits`` has the stream and the values of each emitted tuple. If a call of
    an `AsyncBolt` made the emit, it has the stream and the number of the call's input in place of the stream. The inputs of a
    batch have the numbers 1, 2, 3 and so on.

    If ``executed`` is 0, the task emitted its other tuples outside of ``execute``. In that case ``inputs`` may have an event in
    place of tuples: a batch begins or ends.
    """

    component: str
    task: int
    executed: int
    inputs: bytes
    emits: bytes


class Unpicklable(NamedTuple):
    """A placeholder for a value that could not be recorded."""

    shown: str


def dump_pairs(origins: Sequence[Any], values: Sequence[Any]) -> bytes:
    """Pickle values, each with its origin or destination. If all values have the same origin or destination, it is stored only
    once.

    Values of classes that a notebook defines can be pickled, too. A value that can't be pickled becomes an `Unpicklable`.
    """
    first = origins[0]
    pairs = (
        [first] if sum(map(is_, origins, repeat(first))) == len(origins) else list(origins),
        list(values),
    )
    try:
        return pickle.dumps(pairs, 5)
    except Exception:
        # A value that stays in its worker need not be picklable. It may be a lock, a generator, or an object of a notebook's
        # class.
        return cloudpickle.dumps((pairs[0], [_recordable(value) for value in values]), 5)  # type: ignore[no-any-return]


def load_pairs(data: bytes) -> list[tuple[Any, Any]]:
    """Read the pairs that `dump_pairs` has written. Raises any error of unpickling.

    >>> load_pairs(dump_pairs(["a", "a"], [1, 2])), load_pairs(b"")
    ([('a', 1), ('a', 2)], [])
    """
    if not data:
        return []
    origins, values = pickle.loads(data)
    return list(zip(origins * len(values) if len(origins) == 1 else origins, values, strict=True))


def _recordable(value: Any) -> Any:
    try:
        cloudpickle.dumps(value, 5)
    except Exception:
        return Unpicklable(repr(value)[:200])
    return value


class InputFile:
    """A worker's file of one attempt at one batch. It is created when there is something to write."""

    def __init__(self, folder: Folder, generation: int, txid: int) -> None:
        self._folder = folder
        self.path = f"inputs/{generation}-{txid}-{uuid.uuid4().hex}"
        self._sink: Any = None
        self._buffer = bytearray()

    def add(self, chunk: Chunk) -> None:
        """Add a chunk. Raises OSError if the file can't be written."""
        self._buffer += pickle.dumps(tuple(chunk), 5)
        if len(self._buffer) >= _BUFFER:
            self._flush()

    def close(self) -> None:
        """Close the file. It is on disk when this returns. Raises OSError."""
        self._flush()
        self._folder.close(self._sink)

    def abandon(self) -> None:
        """Delete the file, because the attempt is rolled back."""
        if self._sink is not None:
            with contextlib.suppress(OSError):
                self._sink.close()
                self._folder.delete(self.path)

    def _flush(self) -> None:
        if self._sink is None:
            self._sink = self._folder.create(self.path)
        view = memoryview(self._buffer)
        while view:
            written = self._sink.write(view)
            view = view[written:]
        view.release()
        self._buffer = bytearray()


def named(worker: int, paths: Iterable[str]) -> TaskChanges:
    """Return the row by which a batch's commit names a worker's files. It names no file if nothing was recorded."""
    return TaskChanges("", worker, [(_KEY, "\n".join(paths).encode())], _KIND)


class InputFiles:
    """The recorded inputs beside the state table at ``location``."""

    def __init__(self, location: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.location = location
        self.folder = Folder(location, storage_options)
        self._options = storage_options

    def keep_plan(self, generation: int, data: bytes) -> None:
        """Store the plan that runs as this generation. Raises OSError."""
        path = f"inputs/plan-{generation}"
        self.folder.delete(path)
        sink = self.folder.create(path)
        view = memoryview(data)
        while view:
            view = view[sink.write(view) :]
        self.folder.close(sink)

    def plan(self, generation: int) -> bytes:
        """Return the plan that ran as this generation. Raises `CheckpointError` if the plan is not stored."""
        return self._read(f"inputs/plan-{generation}", "the plan that ran")

    def newest_plan(self) -> int | None:
        """Return the last generation whose plan is stored; None if there is none. Raises OSError."""
        return max(
            (int(found[1]) for path in self.folder.list("inputs") if (found := _PLAN.fullmatch(path))),
            default=None,
        )

    def of_batch(self, txid: int) -> list[str]:
        """Return the files of a committed batch. Raises `CheckpointError` if the batch was not recorded."""
        table = StateTable(self.location, storage_options=self._options)
        table.refresh()
        paths = []
        for rows in table.plan_restore("", None, txid, _KIND).rows():
            for row in rows.to_pylist():
                if row["txid"] == txid:
                    paths += row["value"].decode().split()
        if not paths:
            msg = (
                f"{self.location} has no recorded inputs of batch {txid}: the topology ran without stormspark.record.inputs, or "
                f"no bolt executed a tuple in that batch; {self._recorded(table)}"
            )
            raise CheckpointError(msg)
        return paths

    def _recorded(self, table: StateTable) -> str:
        """Say which batches of the table were recorded."""
        kept = range(table.oldest_txid, table.last_txid + 1)
        found = (_INPUTS.fullmatch(path) for path in self.folder.list("inputs"))
        batches = sorted({int(one[2]) for one in found if one} & set(kept))
        if not batches:
            return "no batch was recorded"
        return f"recorded {'is batch' if len(batches) == 1 else 'are the batches'} {_ranges(batches)}"

    def chunks(self, paths: list[str], component: str, task: int) -> Iterator[Chunk]:
        """Yield the chunks of a task, in order. Raises `CheckpointError` if a file is missing or damaged."""
        for path in paths:
            data = memoryview(self._read(path, "the inputs"))
            source = pa.BufferReader(data)
            try:
                while source.tell() < len(data):
                    chunk = Chunk(*pickle.load(source))
                    if (chunk.component, chunk.task) == (component, task):
                        yield chunk
            except (pickle.UnpicklingError, EOFError, TypeError, ValueError) as error:
                msg = f"{path} of the state table {self.location} is damaged: {error}"
                raise CheckpointError(msg) from error

    def forget(self, up_to: int) -> None:
        """Delete the inputs of the batches up to batch ``up_to``, and old plans to which no inputs belong any more.

        Raises OSError.
        """
        kept, plans = set(), {}
        for path in self.folder.list("inputs"):
            if found := _INPUTS.fullmatch(path):
                if int(found[2]) <= up_to:
                    self.folder.delete(path)
                else:
                    kept.add(int(found[1]))
            elif found := _PLAN.fullmatch(path):
                plans[int(found[1])] = path
        for generation, path in plans.items():
            if generation < max(plans) and generation not in kept:
                self.folder.delete(path)

    def _read(self, path: str, content: str) -> bytes:
        try:
            with self.folder.read(path) as source:
                data: bytes = source.read()
                return data
        except OSError as error:
            msg = f"{path} of the state table {self.location}, {content}, can't be read: {error}"
            raise CheckpointError(msg) from error


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers in words, the last ones if there are many.

    >>> _ranges([1, 2, 3, 5, 8, 9])
    '1 to 3, 5, 8 to 9'
    """
    ends: list[list[int]] = []
    for number in numbers:
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    shown = [str(first) if first == last else f"{first} to {last}" for first, last in ends[-_RANGES_SHOWN:]]
    return ", ".join(["...", *shown] if len(ends) > _RANGES_SHOWN else shown)


def generation_of_inputs(path: str) -> int:
    """Return the generation in a file's name.

    >>> generation_of_inputs("inputs/3-17-" + "0" * 32)
    3
    """
    found = _INPUTS.fullmatch(path)
    assert found is not None, path
    return int(found[1])
