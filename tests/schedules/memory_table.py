"""The state table in memory: what `StateTable` promises, and nothing that a disk costs."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from stormspark.checkpoint.handed_state import HandedRows, in_hand
from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.state_files import SCHEMA, TaskChanges
from stormspark.errors import CheckpointError, FencedError

__all__ = ["HandedTable", "MemoryTable", "Storage", "changes_in_memory"]

_Key = tuple[str, int, str, bytes]


class Changes(NamedTuple):
    """`ChangedRows` without their pickling, and as frozen."""

    generation: int
    txid: int
    rows: dict[_Key, bytes | None]


def changes_in_memory(changes: Iterable[TaskChanges], *, generation: int, txid: int) -> Changes | None:
    """In place of `changed_rows`."""
    rows = {(one.component, one.task, one.kind, key): value for one in changes for key, value in one.items}
    return Changes(generation, txid, rows) if rows else None


class Storage:
    """What outlives drivers."""

    def __init__(self) -> None:
        self.rows: dict[_Key, bytes] = {}
        self.last, self.generation = -1, -1
        self.announced_txid = -1
        self.announced: dict[bytes, bytes] = {}

    def state(self, component: str) -> dict[Any, Any]:
        """The state of all tasks of a component."""
        return {
            decode_key(key): pickle.loads(value)
            for (name, _, kind, key), value in self.rows.items()
            if name == component and kind == "state"
        }


class MemoryTable:
    """A driver's hand on a `Storage`: a `BatchTable`."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._generation = -1

    @property
    def last_txid(self) -> int:
        return self._storage.last

    @property
    def oldest_txid(self) -> int:
        return self._storage.last

    def open(self, generation: int, first_txid: int = 0) -> None:
        storage = self._storage
        if storage.generation > generation or (storage.generation == generation != self._generation):
            msg = f"a driver of generation {storage.generation} has the table, this one's is {generation}"
            raise FencedError(msg)
        self._generation = storage.generation = generation
        if storage.last < 0 < first_txid:
            storage.last = first_txid - 1

    def commit(
        self, txid: int, files: Sequence[Any], metadata: Mapping[bytes, bytes | None] | None = None
    ) -> None:
        storage = self._writing(txid)
        for file in files:
            if file is None:
                continue
            assert isinstance(file, Changes), file
            if (file.generation, file.txid) != (self._generation, txid):
                msg = f"changes of batch {file.txid} and generation {file.generation} can't be part of batch {txid}"
                raise CheckpointError(msg)
            for name, value in file.rows.items():
                if value is None:
                    storage.rows.pop(name, None)
                else:
                    storage.rows[name] = value
        for key, told in (metadata or {}).items():
            assert told is not None
            storage.rows["", -1, "metadata", key] = told
        storage.last = txid

    def announce(self, txid: int, metadata: Mapping[bytes, bytes]) -> None:
        storage = self._writing(txid)
        if storage.announced_txid == txid:
            msg = f"batch {txid} was announced already"
            raise CheckpointError(msg)
        storage.announced_txid, storage.announced = txid, dict(metadata)

    def announced(self) -> tuple[int, dict[bytes, bytes]]:
        storage = self._storage
        if storage.announced_txid <= storage.last:
            return -1, {}
        return storage.announced_txid, dict(storage.announced)

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        return {key: value for (_, _, kind, key), value in self._storage.rows.items() if kind == "metadata"}

    def compact(self, budget_secs: float) -> bool:
        return False

    def vacuum(self, budget_secs: float) -> int:
        return 0

    def close(self) -> None:
        pass

    def _writing(self, txid: int) -> Storage:
        storage = self._storage
        if storage.generation != self._generation:
            raise FencedError("another driver has taken the table over")
        if txid != storage.last + 1:
            msg = f"batch {txid} can't come after {storage.last}"
            raise CheckpointError(msg)
        return storage


class HandedTable:
    """What a worker that begins is handed of it, in place of `HandedState`'s file."""

    #: Of the run: there is one at a time.
    storage: Storage

    def __init__(self, path: str, location: str) -> None:
        self.location = location

    def metadata(self, as_of: int | None = None) -> dict[bytes, bytes]:
        return MemoryTable(self.storage).metadata()

    def plan_restore(self, component: str, task: int | None, as_of: int | None, kind: str) -> HandedRows:
        """See `StateTable.plan_restore`."""
        assert task is None and as_of == self.storage.last
        found = [
            {"component": name, "task": of_task, "kind": of_kind, "key": key, "value": value, "txid": as_of}
            for (name, of_task, of_kind, key), value in self.storage.rows.items()
            if (name, of_kind) == (component, kind)
        ]
        return in_hand(pa.Table.from_pylist(found, SCHEMA))

    def restore(self, component: str, task: int, as_of: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        assert as_of == self.storage.last, "a worker begins with the state of a batch that is not the last"
        pairs = sorted(
            (key, value)
            for (name, of_task, kind, key), value in self.storage.rows.items()
            if (name, of_task, kind) == (component, task, "state")
        )
        if pairs:
            keys, values = zip(*pairs, strict=True)
            yield pa.record_batch(
                {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
            )
