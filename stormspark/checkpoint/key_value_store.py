"""The store in which a worker keeps the state of a task. What was committed some time ago is in a database on the local disk, and
the rest in memory (C35).

Only the state table is authoritative. A store is a copy of one task's part of that table, and is made anew after every restart.
So the store need not survive a crash. Its SQLite database has no name, and vanishes with the process.

The store looks a key up in these places, one after the other. The first place that has the key, or a deletion of the key,
decides:

    changed     changes since the last prepare_commit: objects, as they were put
    cache       objects of keys that were read or prepared lately, up to a number of bytes
    prepared    changes that are prepared and not committed: bytes, as they go to the table
    recent      changes that were committed lately and are not in the database yet, up to a number of bytes
    committed   the database

``prepare_commit`` moves entries from ``changed`` to ``prepared``, ``commit`` moves them on to ``recent``, and ``rollback``
empties ``changed``, ``prepared`` and ``cache``. So the cost of a batch depends only on its changes and on the keys that it reads.
And the memory depends only on the first four places, however many keys there are.

A page of the database holds neighbouring keys. If the keys that change in a batch lie far apart, each key costs the write of a
page. If the state is large, the page also has to be read from disk. So committed changes wait in ``recent``. They go to the
database together: once they take too many bytes, or when somebody iterates, clears the store or asks for the number of keys.

Values are pickled once per batch, and not with each put. So a counter that is put a thousand times in a batch is pickled once. A
get or put of a key in memory takes about 0.5 us of CPU time, and a get from a database of a million keys takes 5 us. A change
takes 1 us more when it is prepared, 0.3 us when it is committed, and 5-8 us when it goes to the database.
"""

from __future__ import annotations

import pickle
import sqlite3
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final

from stormspark.api.state import KeyValueState
from stormspark.checkpoint.ordered_keys import decode_key, encode_key, prefix_range
from stormspark.errors import SerializationError, StateError
from stormspark.extras import pyarrow as pa
from stormspark.pickling import pickled

__all__ = ["KeyValueStore"]

_ABSENT: Final = object()
_UNKNOWN: Final = object()
#: A bound that sorts behind every encoded key. A key begins with a code for its type, and this byte is no such code.
_BEHIND_ALL: Final = b"\xff"
#: About how many bytes the objects around a key and its value take.
_AROUND: Final = 200
#: An iteration reads this many rows at once. Between two reads it holds nothing open, so the state may change.
_ROWS_AT_ONCE: Final = 1000

_PRAGMAS: Final = (
    "journal_mode = MEMORY",  # a write that fails on a full disk can be taken back
    "synchronous = OFF",
    "locking_mode = EXCLUSIVE",
    "cache_size = -8192",  # KiB
)
_PUT: Final = "INSERT OR REPLACE INTO state VALUES (?, ?)"
_DELETE: Final = "DELETE FROM state WHERE key = ?"


class KeyValueStore(KeyValueState[Any, Any]):
    """The state of one task, with the interface of `KeyValueState`.

    ``owner`` names the owner of the state in errors. ``cache_bytes`` bounds the pickled size of the values that are kept as
    objects. ``recent_bytes`` bounds the committed changes that are not in the database yet. As soon as the database exceeds
    8 MiB, SQLite writes it to a file in the folder ``SQLITE_TMPDIR``, else ``TMPDIR``, else the system's folder for such files.

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
        # Without a name, the database belongs to this connection alone, and disappears with it.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        # From Python 3.13 on, a connection that was never closed causes a warning.
        weakref.finalize(self, self._database.close)
        for pragma in _PRAGMAS:
            self._database.execute(f"PRAGMA {pragma}")
        self._database.execute("CREATE TABLE state (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")

    def put(self, key: Any, value: Any) -> None:
        """See `KeyValueState.put`."""
        self._changed[encode_key(key)] = value

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default`` if there is none."""
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
        """Delete all keys. Each deleted key is one change."""
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
        """Return the number of keys. The database has to count them, which takes about 20 ms for a million keys."""
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
        """Return the prepared changes in the order of keys: encoded keys and pickled values, with None for a deleted key."""
        return sorted(self._prepared.items())

    def prepare_commit(self, txid: int) -> None:
        """See `State.prepare_commit`.

        Raises `SerializationError`, which names the key, if a value can't be pickled. Then none of the changes is prepared.
        Raises `StateError` if another transaction is prepared.
        """
        if self._txid not in {None, txid}:
            msg = (
                f"{self._owner}: transaction {txid} can't be prepared while {self._txid} is; commit that one or "
                "roll it back first"
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
            msg = f"{self._owner}: transaction {txid} can't be committed, because {found} is prepared; prepare it first"
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
            # The batch is committed, even if this copy can't be written to disk. Then its changes stay in memory for now.
            with suppress(sqlite3.Error):
                self._write_recent()

    def rollback(self) -> None:
        """See `State.rollback`."""
        self._changed.clear()
        self._prepared.clear()
        self._txid = None
        # User code may have changed cached objects in place in the batch that is rolled back.
        self._cache.clear()

    def load(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Replace the whole contents with the columns ``key`` and ``value`` of ``batches``. Later rows override earlier ones.

        A null value deletes its key. Sorted keys are the fastest, at about 2 us of CPU per key.
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
        """Move the recent changes to the database, in the order of their keys."""
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
        # A key may come twice, so keep the order. Neighbouring puts, and neighbouring deletes, go into one executemany, which is
        # three times as fast.
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
                f"plain data, or define __reduce__ in its class"
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
        """Yield the encoded keys of a range in order, each with its value: pickled, or as an object in a tuple of its own.

        Uncommitted changes override what is committed.
        """
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
        except Exception:  # pickle finds no module for the classes of a notebook or a script
            place = (
                f"{self._owner}: the value of key {decode_key(data)!r}, of type {type(value).__qualname__},"
            )
            return pickled(value, place, "put plain data")


class _Cache:
    """A cache of objects that were used lately, bounded by the sum of their sizes."""

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
