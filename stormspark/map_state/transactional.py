"""A map in which a replayed batch counts once, if its replays bring the same tuples (G8, G15)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stormspark.map_state.backing import BackingMap, Key, MapState, Updater
from stormspark.map_state.batch import Batch, raise_behind
from stormspark.map_state.values import TransactionalValue

__all__ = ["TransactionalMap"]

V = TypeVar("V")


class TransactionalMap(MapState[V]):
    """A map that stores (txid, value). `multi_update` does not change a key that an earlier attempt at the batch has stored.

    `multi_update` raises `StateError` if a later batch has changed the key. In Storm only the opaque map raises this error.
    Storm's transactional map would count the older batch a second time.

    >>> from stormspark.map_state import MemoryBackingMap
    >>> counts = TransactionalMap(MemoryBackingMap())
    >>> for attempt in "first", "replayed":
    ...     counts.begin_commit(7)
    ...     print(attempt, counts.multi_update([("storm",)], [lambda count: (count or 0) + 1]))
    ...     counts.commit(7)
    first [1]
    replayed [1]
    """

    def __init__(self, backing: BackingMap[TransactionalValue[V]]) -> None:
        self._batch = Batch(backing)

    def begin_commit(self, txid: int | None) -> None:
        """See `MapState.begin_commit`."""
        self._batch.begin(txid)

    def commit(self, txid: int | None) -> None:
        """See `MapState.commit`."""
        self._batch.end(txid, {})

    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """See `MapState.multi_get`."""
        self._batch.read(keys)
        return [None if found is None else found.value for found in map(self._now, keys)]

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[Updater[V]]) -> list[V]:
        """See `MapState.multi_update`."""
        batch, txid = self._batch, self._batch.txid
        batch.read(keys)
        values = []
        for key, update in zip(keys, updaters, strict=True):
            now = self._now(key)
            if now is None or not self._is_done(key):
                now = TransactionalValue(txid, update(None if now is None else now.value))
                batch.change(key, now)
            values.append(now.value)
        batch.changes_are_done()
        return values

    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """See `MapState.multi_put`."""
        for key, value in zip(keys, values, strict=True):
            self._batch.change(key, TransactionalValue(self._batch.txid, value))
        self._batch.changes_are_done()

    def _now(self, key: Key) -> TransactionalValue[V] | None:
        changed = self._batch.changed(key)
        return self._batch.stored(key) if changed is None else changed

    def _is_done(self, key: Key) -> bool:
        """Whether an earlier attempt at this batch has stored ``key``. The stored value then has all the batch's changes."""
        stored, txid = self._batch.stored(key), self._batch.txid
        if stored is None or stored.txid is None or txid is None or self._batch.changed(key) is not None:
            return False
        if stored.txid > txid:
            raise_behind(key, txid, stored.txid)
        return stored.txid == txid
