"""A map that does not distinguish batches, so it counts at least once (G14, G16)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from stormspark.map_state.backing import BackingMap, Key, MapState, Updater

__all__ = ["NonTransactionalMap"]

V = TypeVar("V")


class NonTransactionalMap(MapState[V]):
    """A map that stores only values, and stores them at every call. A replayed batch is counted again."""

    def __init__(self, backing: BackingMap[V]) -> None:
        self._backing = backing

    def begin_commit(self, txid: int | None) -> None:
        """Do nothing: batches are not distinguished."""

    def commit(self, txid: int | None) -> None:
        """Do nothing: all changes are already stored."""

    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """See `MapState.multi_get`."""
        return self._backing.multi_get(keys)

    def multi_update(self, keys: Sequence[Key], updaters: Sequence[Updater[V]]) -> list[V]:
        """See `MapState.multi_update`."""
        known: dict[Key, V | None] = dict(zip(keys, self._backing.multi_get(keys), strict=True))
        changed: dict[Key, V] = {}
        values = []
        for key, update in zip(keys, updaters, strict=True):
            known[key] = changed[key] = update(known[key])
            values.append(changed[key])
        if changed:
            self._backing.multi_put(list(changed), list(changed.values()))
        return values

    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """See `MapState.multi_put`."""
        if keys:
            self._backing.multi_put(keys, values)
