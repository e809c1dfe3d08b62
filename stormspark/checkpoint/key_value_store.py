"""Where a worker keeps the state of a task: what is committed on the local disk, what is not in memory (C35).

The checkpoint table is the truth; a store is a copy of one task's part of it, made anew after every restart. So it is written
without a care for crashes, to an SQLite database in the temporary directory that vanishes with its process.

A key is looked up in five places, and the first that knows it is right:

    changed     since the last prepare_commit: objects, as they were put
    prepared    by prepare_commit, and not committed yet: bytes, as they go to the table
    cache       objects of keys that were read or written lately, so many bytes of them
    recent      committed lately, and not in the database yet: so many bytes
    committed   the database

``prepare_commit`` moves what has changed to prepared, ``commit`` moves that on to recent, ``rollback`` drops both. So
the cost of a batch follows what changed in it, and memory what changed, what is recent and the cache, however many keys
there are.

A page of the database holds neighbours. Keys that change in each batch and lie far apart would cost a page each, from the
disk where the state is large; so they wait in recent, and go to the database together when these are too many, or when
somebody iterates.

Values are pickled once a batch and not once a put: a counter that is put a thousand times in a batch is pickled once. Of CPU, a
get or put of a key in memory takes about 0.5 us, a get from a database of a million keys 5 us; a change takes 1 us more when
it is prepared, 0.3 us when it is committed and 5-8 us when it goes to the database.
"""

from __future__ import annotations

import pickle
import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from stormspark.api.state import KeyValueState
from stormspark.checkpoint.ordered_keys import decode_key, encode_key, prefix_range
from stormspark.errors import SerializationError, StateError
from stormspark.pickling import pickled

__all__ = ["KeyValueStore"]

_ABSENT: Final = object()
_UNKNOWN: Final = object()
#: Behind every key: no type of key has this code.
_BEHIND_ALL: Final = b"\xff"
#: What the objects around a key and its value take, about.
_AROUND: Final = 200
#: Rows that are read at once while iterating: nothing stays open in between, so the state may change.
_ROWS_AT_ONCE: Final = 1000

_PRAGMAS: Final = (
    "journal_mode = MEMORY",  # a write that fails, on a full disk, can be taken back
    "synchronous = OFF",
    "locking_mode = EXCLUSIVE",
    "cache_size = -8192",  # KiB
)
_PUT: Final = "INSERT OR REPLACE INTO state VALUES (?, ?)"
_DELETE: Final = "DELETE FROM state WHERE key = ?"


class KeyValueStore(KeyValueState[Any, Any]):
    """The state of one task, as `KeyValueState` has it.

    ``owner`` says in errors whose state it is; ``cache_bytes`` bounds the pickled size of the values that are kept as objects,
    ``recent_bytes`` what is kept of changes that are not in the database yet.
    The database is in ``SQLITE_TMPDIR``, else ``TMPDIR``, as soon as it exceeds 8 MiB.

    >>> store = KeyValueStore("component 'count', task 3")
    >>> store.load([pa.record_batch({"key": [encode_key("storm")], "value": [pickle.dumps(7)]})])
    >>> store["spark"] = 1
    >>> del store["storm"]
    >>> store.prepare_commit(5)
    >>> [(decode_key(key), value and pickle.loads(value)) for key, value in store.changes()]
    [('spark', 1), ('storm', None)]
    >>> store.commit(5)
    >>> dict(store), store.changes()
    ({'spark': 1}, [])
    """

    def __init__(
        self, owner: str = "a state", *, cache_bytes: int = 32 << 20, recent_bytes: int = 16 << 20
    ) -> None:
        self._owner = owner
        self._changed: dict[bytes, Any] = {}
        self._prepared: dict[bytes, bytes | None] = {}
        self._txid: int | None = None
        self._recent: dict[bytes, bytes | None] = {}
        self._recent_size, self._most_recent = 0, recent_bytes
        self._cache = _Cache(cache_bytes)
        # No file of this name: a database of this connection alone, deleted by the system when it ends.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        weakref.finalize(
            self, self._database.close
        )  # from Python 3.13 on one that is only forgotten is warned of
        for pragma in _PRAGMAS:
            self._database.execute(f"PRAGMA {pragma}")
        self._database.execute("CREATE TABLE state (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")

    def put(self, key: Any, value: Any) -> None:
        """See `KeyValueState.put`."""
        self._changed[encode_key(key)] = value

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of ``key``, else ``default``."""
        value = self._lookup(encode_key(key))
        return default if value is _ABSENT else value

    def delete(self, key: Any) -> Any:
        """See `KeyValueState.delete`."""
        data = encode_key(key)
        value = self._lookup(data)
        if value is _ABSENT:
            return None
        self._changed[data] = _ABSENT
        return value

    def iterate(self, prefix: str | bytes | tuple[Any, ...] | None = None) -> Iterator[tuple[Any, Any]]:
        """See `KeyValueState.iterate`."""
        low, high = (b"", _BEHIND_ALL) if prefix is None else prefix_range(prefix)
        return ((decode_key(data), self._value(data, found)) for data, found in self._between(low, high))

    def clear(self) -> None:
        """Delete all keys; as many changes as there were keys."""
        self._changed = {data: _ABSENT for data, _ in self._between(b"", _BEHIND_ALL)} | dict.fromkeys(
            self._changed, _ABSENT
        )

    def __getitem__(self, key: Any) -> Any:
        value = self._lookup(encode_key(key))
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        self._changed[encode_key(key)] = value

    def __delitem__(self, key: Any) -> None:
        data = encode_key(key)
        if self._lookup(data) is _ABSENT:
            raise KeyError(key)
        self._changed[data] = _ABSENT

    def __contains__(self, key: object) -> bool:
        return self._lookup(encode_key(key)) is not _ABSENT

    def __iter__(self) -> Iterator[Any]:
        return (decode_key(data) for data, _ in self._between(b"", _BEHIND_ALL))

    def __len__(self) -> int:
        """Counts: about 20 ms for a million keys."""
        self._write_recent()
        (count,) = self._database.execute("SELECT count(*) FROM state").fetchone()
        overlay: dict[bytes, Any] = {
            data: _ABSENT if value is None else value for data, value in self._prepared.items()
        }
        overlay.update(self._changed)
        for data, value in overlay.items():
            count += (value is not _ABSENT) - (self._committed(data) is not None)
        return int(count)

    def __repr__(self) -> str:
        return f"KeyValueStore({self._owner!r}, {len(self._changed) + len(self._prepared)} changes)"

    def changes(self) -> list[tuple[bytes, bytes | None]]:
        """What was prepared: encoded keys and pickled values, None where a key was deleted, in the order of keys."""
        return sorted(self._prepared.items())

    def prepare_commit(self, txid: int) -> None:
        """See `State.prepare_commit`. Raises `SerializationError` naming the key whose value can't be pickled, and then
        nothing is prepared.
        """
        if self._txid not in {None, txid}:
            msg = (
                f"{self._owner}: transaction {txid} can't be prepared while {self._txid} is; commit that one or "
                "roll it back first (C35)"
            )
            raise StateError(msg)
        done = {
            data: None if value is _ABSENT else self._pickled(data, value)
            for data, value in self._changed.items()
        }
        for data, value in done.items():
            if value is None:
                self._cache.forget(data)
            else:
                self._cache.keep(data, self._changed[data], len(value))
        self._prepared.update(done)
        self._changed.clear()
        self._txid = txid

    def commit(self, txid: int | None = None) -> None:
        """See `State.commit`."""
        if txid is None:
            self.prepare_commit(-1 if self._txid is None else self._txid)
        elif txid != self._txid:
            found = "none" if self._txid is None else str(self._txid)
            msg = f"{self._owner}: transaction {txid} can't be committed, {found} is prepared; prepare it first (C35)"
            raise StateError(msg)
        recent, size = self._recent, self._recent_size
        for data, value in self._prepared.items():
            if data in recent:
                size -= len(recent[data] or b"")
            else:
                size += len(data) + _AROUND
            size += len(value or b"")
        recent.update(self._prepared)
        self._recent_size = size
        self._prepared.clear()
        self._txid = None
        if self._recent_size >= self._most_recent:
            # The batch is committed, whatever this copy's disk says: what does not fit there stays in memory until it does.
            with suppress(sqlite3.Error):
                self._write_recent()

    def rollback(self) -> None:
        """See `State.rollback`."""
        self._changed.clear()
        self._prepared.clear()
        self._txid = None
        # Its objects may have been changed in place in what is taken back.
        self._cache.clear()

    def load(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Forget everything and hold what the columns ``key`` and ``value`` of ``batches`` say, the later over the earlier.

        A value that is null deletes its key. Quickest if keys come sorted: about 2 us of CPU each.
        """
        self.rollback()
        with self._transaction():
            self._database.execute("DELETE FROM state")
            for batch in batches:
                keys, values = batch.column("key"), batch.column("value")
                self._apply(zip(keys.to_pylist(), values.to_pylist(), strict=True))
        self._forget_recent()

    def close(self) -> None:
        """Give the disk space back."""
        self._database.close()

    def _transaction(self) -> sqlite3.Connection:
        self._database.execute("BEGIN")
        return self._database  # as a context, it ends the transaction

    def _write_recent(self) -> None:
        """Put what is recent into the database, in the order of its keys."""
        if not self._recent:
            return
        recent = sorted(self._recent.items())
        with self._transaction():
            self._apply((data, value) for data, value in recent if value is not None)
            self._apply((data, value) for data, value in recent if value is None)
        self._forget_recent()

    def _forget_recent(self) -> None:
        self._recent.clear()
        self._recent_size = 0

    def _apply(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        # One after the other, so that a key may come twice; in runs of one kind, because executemany is three times as fast.
        put: list[tuple[bytes, bytes]] = []
        deleted: list[tuple[bytes]] = []
        for data, value in rows:
            if value is None:
                if put:
                    self._database.executemany(_PUT, put)
                    put = []
                deleted.append((data,))
            else:
                if deleted:
                    self._database.executemany(_DELETE, deleted)
                    deleted = []
                put.append((data, value))
        self._database.executemany(_PUT, put)
        self._database.executemany(_DELETE, deleted)

    def _lookup(self, data: bytes) -> Any:
        value = self._changed.get(data, _UNKNOWN)
        if value is not _UNKNOWN:
            return value
        value = self._cache.get(data)
        if value is not _ABSENT:
            return value
        stored = self._prepared[data] if data in self._prepared else self._committed(data)
        if stored is None:
            return _ABSENT
        value = self._read(data, stored)
        self._cache.keep(data, value, len(stored))
        return value

    def _read(self, data: bytes, stored: bytes) -> Any:
        try:
            return pickle.loads(stored)
        except Exception as error:
            msg = (
                f"{self._owner}: the value of key {decode_key(data)!r} can't be unpickled, {type(error).__name__}: {error}; put "
                f"plain data, or let its class say how it is made again (__reduce__)"
            )
            raise SerializationError(msg) from error

    def _value(self, data: bytes, found: bytes | tuple[Any]) -> Any:
        return self._read(data, found) if isinstance(found, bytes) else found[0]

    def _committed(self, data: bytes) -> bytes | None:
        if data in self._recent:
            return self._recent[data]
        row = self._database.execute("SELECT value FROM state WHERE key = ?", (data,)).fetchone()
        return None if row is None else row[0]

    def _between(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes | tuple[Any]]]:
        """Encoded keys in order, and pickled values or, in a tuple, objects: committed ones and, over them, what is not."""
        self._write_recent()
        changed: dict[bytes, Any] = {
            data: _ABSENT if value is None else value
            for data, value in self._prepared.items()
            if low <= data < high
        }
        changed |= {
            data: value if value is _ABSENT else (value,)
            for data, value in self._changed.items()
            if low <= data < high
        }
        waiting = sorted(changed, reverse=True)
        for data, value in self._committed_between(low, high):
            while waiting and waiting[-1] < data:
                first = waiting.pop()
                if changed[first] is not _ABSENT:
                    yield first, changed[first]
            if data not in changed:
                yield data, value
        for data in reversed(waiting):
            if changed[data] is not _ABSENT:
                yield data, changed[data]

    def _committed_between(self, low: bytes, high: bytes) -> Iterator[tuple[bytes, bytes]]:
        rows = "SELECT key, value FROM state WHERE key {} ? AND key < ? ORDER BY key LIMIT ?"
        some = self._database.execute(rows.format(">="), (low, high, _ROWS_AT_ONCE)).fetchall()
        while some:
            yield from some
            some = self._database.execute(rows.format(">"), (some[-1][0], high, _ROWS_AT_ONCE)).fetchall()

    def _pickled(self, data: bytes, value: Any) -> bytes:
        try:
            return pickle.dumps(value, 5)
        except Exception:  # classes of a notebook or a script have no module to be found in
            place = (
                f"{self._owner}: the value of key {decode_key(data)!r}, of type {type(value).__qualname__},"
            )
            return pickled(value, place, "put plain data")


class _Cache:
    """Objects that were used lately, by the sum of their sizes."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._kept: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()

    def get(self, data: bytes) -> Any:
        found = self._kept.get(data)
        if found is None:
            return _ABSENT
        self._kept.move_to_end(data)
        return found[0]

    def keep(self, data: bytes, value: Any, size: int) -> None:
        self.forget(data)
        size += len(data) + _AROUND
        self._kept[data] = value, size
        self._free -= size
        while self._free < 0:
            _, (_, freed) = self._kept.popitem(last=False)
            self._free += freed

    def forget(self, data: bytes) -> None:
        found = self._kept.pop(data, None)
        if found is not None:
            self._free += found[1]

    def clear(self) -> None:
        for data in list(self._kept):
            self.forget(data)
