"""A map in which a replayed batch counts once, even if its replays bring other tuples (G8, G15).

The map follows the rule of Storm's OpaqueMap: with each key, it also stores an earlier value, from before the last batch that
changed the key. A replay of that batch begins from the earlier value. This rule is right for keys that the replay changes too.
But if only a failed attempt at the batch changed a key, the key would keep that change. When the tuples of that change come in a
later batch, they would be counted a second time. Storm accepts this error. stormspark's map avoids it: before it stores a batch's
values, it stores which keys the batch has changed. This list of keys is the map's *journal*, an ordinary row of the store. When a
batch begins again, the map first gives the keys in the journal their values from before the batch. The journal costs one more
write per batch that changes the map. Its row is as long as the batch's keys together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from stormspark.checkpoint.ordered_keys import decode_key, encode_key
from stormspark.map_state.backing import BackingMap, Key, MapState, Updater
from stormspark.map_state.batch import Batch, raise_behind
from stormspark.map_state.values import OpaqueValue

__all__ = ["JOURNAL", "OpaqueMap"]

V = TypeVar("V")

#: A partition's journal has the key (JOURNAL, partition).
JOURNAL: Final = "$journal"


class OpaqueMap(MapState[V]):
    """A map that stores, for each key, (txid, value before, value). A batch that comes again begins from the values before it.

    ``partition`` distinguishes the maps of several tasks in one store. A batch that is older than a stored batch raises
    `StateError`. If one attempt at a batch adds a key, and the next one does not, the key's row stays in the store. The row's
    value is None, which means that there is no value.

    >>> from stormspark.map_state import MemoryBackingMap
    >>> counts = OpaqueMap(MemoryBackingMap())
    >>> def attempt(txid, word, count):
    ...     counts.begin_commit(txid)
    ...     counts.multi_update([word], [lambda before: (before or 0) + count])
    ...     counts.commit(txid)
    >>> attempt(1, "storm", 5)
    >>> attempt(2, "storm", 3)
    >>> attempt(2, "storm", 4)
    >>> counts.multi_get(["storm"])
    [9]
    """

    # Any, because the journal's row has a list where the other rows have a V.
    def __init__(self, backing: BackingMap[OpaqueValue[Any]], partition: int = 0) -> None:
        self._backing = backing
        self._batch = Batch(backing)
        self._journal_key = (JOURNAL, partition)
        #: The stored journal, once it is known. Nobody else writes it.
        self._journal: OpaqueValue[Any] | None = None

    def begin_commit(self, txid: int | None) -> None:
        """See `MapState.begin_commit`. Takes back the changes that an earlier attempt at the batch has stored."""
        if txid is not None:
            self._take_back(txid)
        self._batch.begin(txid)

    def commit(self, txid: int | None) -> None:
        """See `MapState.commit`."""
        journal: dict[Key, OpaqueValue[Any]] = {}
        if txid is not None:
            # The journal has the keys as strings, so that the store's own conversions do not change them.
            keys = [encode_key(key).hex() for key in self._batch.changed_keys()]
            journal[self._journal_key] = OpaqueValue(txid, keys)
        known, self._journal = self._journal, None  # unknown if the commit fails
        written = bool(self._batch.changed_keys())
        self._batch.end(txid, journal)
        self._journal = journal.get(self._journal_key, known) if written else known

    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """See `MapState.multi_get`."""
        self._batch.read(keys)
        return [self._now(key) for key in keys]

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[Updater[V]]) -> list[V]:
        """See `MapState.multi_update`."""
        self._batch.read(keys)
        values = []
        for key, update in zip(keys, updaters, strict=True):
            value = update(self._now(key))
            self._batch.change(key, OpaqueValue(self._batch.txid, value, self._before(key)))
            values.append(value)
        self._batch.changes_are_done()
        return values

    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """See `MapState.multi_put`."""
        self._batch.read(keys)
        for key, value in zip(keys, values, strict=True):
            self._batch.change(key, OpaqueValue(self._batch.txid, value, self._before(key)))
        self._batch.changes_are_done()

    def _now(self, key: Key) -> V | None:
        changed = self._batch.changed(key)
        return self._before(key) if changed is None else changed.curr

    def _before(self, key: Key) -> V | None:
        """Return the value from before this batch; outside of a batch, the stored value."""
        stored, txid = self._batch.stored(key), self._batch.txid
        if stored is None:
            return None
        if txid is None or stored.txid is None or stored.txid < txid:
            return stored.curr
        if stored.txid > txid:
            raise_behind(key, txid, stored.txid)
        return stored.prev

    def _take_back(self, txid: int) -> None:
        if self._journal is None:
            (self._journal,) = self._backing.multi_get([self._journal_key])
        journal = self._journal
        if journal is None or journal.txid is None or journal.txid < txid:
            return
        if journal.txid > txid:
            raise_behind(self._journal_key, txid, journal.txid)
        keys = [decode_key(bytes.fromhex(key)) for key in journal.curr or ()]
        back = {
            key: OpaqueValue(txid, stored.prev, stored.prev)
            for key, stored in zip(keys, self._backing.multi_get(keys), strict=True)
            if stored is not None and stored.txid == txid
        }
        if back:
            self._backing.multi_put(list(back), list(back.values()))
