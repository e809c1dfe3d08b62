"""A map of state that can also be used as a single value (G14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stormspark.map_state.backing import Key, MapState, Updater

__all__ = ["SnapshottableMap"]

V = TypeVar("V")


class SnapshottableMap(MapState[V]):
    """A map over ``delegate`` with methods for the one entry ``key``. That entry is the state of an aggregation without groups.

    >>> from stormspark.map_state import MemoryBackingMap, OpaqueMap
    >>> total = SnapshottableMap(OpaqueMap(MemoryBackingMap()))
    >>> total.begin_commit(1)
    >>> total.update(lambda before: (before or 0) + 5)
    5
    >>> total.commit(1)
    >>> total.get()
    5
    """

    def __init__(self, delegate: MapState[V], key: Key = ("$snapshot",)) -> None:
        self._delegate = delegate
        self._key = key

    def get(self) -> V | None:
        """Return the value; None if there is none."""
        return self.multi_get([self._key])[0]

    def set(self, value: V) -> None:
        """Set the value, whatever it was."""
        self.multi_put([self._key], [value])

    def update(self, updater: Updater[V]) -> V:
        """Apply ``updater`` to the value and return the new one."""
        return self.multi_update([self._key], [updater])[0]

    def begin_commit(self, txid: int | None) -> None:
        """See `MapState.begin_commit`."""
        self._delegate.begin_commit(txid)

    def commit(self, txid: int | None) -> None:
        """See `MapState.commit`."""
        self._delegate.commit(txid)

    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """See `MapState.multi_get`."""
        return self._delegate.multi_get(keys)

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[Updater[V]]) -> list[V]:
        """See `MapState.multi_update`."""
        return self._delegate.multi_update(keys, updaters)

    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """See `MapState.multi_put`."""
        self._delegate.multi_put(keys, values)
