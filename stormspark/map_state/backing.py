"""Two interfaces: the store behind a map of state, and the map's methods, which topologies call (G14)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

__all__ = ["BackingMap", "Key", "MapState", "Updater"]

V = TypeVar("V")

#: A key of a map. Usually it is a tuple of the values by which tuples are grouped.
Key: TypeAlias = Hashable
#: Storm's ValueUpdater: a function that gets the current value, or None if there is none, and returns the new value.
Updater: TypeAlias = Callable[[V | None], V]


class BackingMap(Protocol[V]):
    """A store with the two methods that a map needs (G14, Storm's IBackingMap).

    >>> class Shelf:
    ...     def __init__(self):
    ...         self.rows = {}
    ...     def multi_get(self, keys):
    ...         return [self.rows.get(key) for key in keys]
    ...     def multi_put(self, keys, values):
    ...         self.rows.update(zip(keys, values, strict=True))
    >>> from stormspark.map_state import NonTransactionalMap
    >>> NonTransactionalMap(Shelf()).multi_update([("storm",)], [lambda count: (count or 0) + 1])
    [1]
    """

    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """Return the values of ``keys``, in their order; None for a key without a value."""

    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """Store values durably before returning.

        If the process dies meanwhile, some values may be stored. They must be the first ones, in the order of ``keys``.
        """


class MapState(ABC, Generic[V]):
    """A map that is updated by batches (G14).

    Only one task writes to a map. For each batch it calls `begin_commit`, then `multi_update` and `multi_put`, then `commit`.
    If the batch fails in between, the task calls `begin_commit` again. Within the batch `multi_get` returns changed values.
    `commit` stores them, each key once. Storm's maps store with every call instead. In Storm a batch that updates a key in
    two calls is not counted exactly once if the process dies between them. A `NonTransactionalMap` does not distinguish batches.
    It stores with every call, and its `begin_commit` and `commit` do nothing.
    """

    @abstractmethod
    def begin_commit(self, txid: int | None) -> None:
        """Begin the changes of batch ``txid``, or of a batch without a number if ``txid`` is None.

        Uncommitted changes of an earlier attempt at the batch are forgotten. Call this method for every attempt, even for an
        attempt that changes nothing, because the `begin_commit` of an `OpaqueMap` takes back the changes that an earlier attempt
        has stored. In an `OpaqueMap`, this method raises `StateError` if a later batch is stored. In a `TransactionalMap`,
        `multi_update` raises it, for a key that a later batch has changed.
        """

    @abstractmethod
    def commit(self, txid: int | None) -> None:
        """Store the changes of batch ``txid``. Raises `StateError` if that is not the batch that has begun."""

    @abstractmethod
    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """Return the values of ``keys``; None for a key without a value."""

    @abstractmethod
    def multi_update(self, keys: Sequence[Key], updaters: Sequence[Updater[V]]) -> list[V]:
        """Apply an updater to each key's value. Return the new values; outside of a batch, these are stored at once."""

    @abstractmethod
    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """Set values, whatever they were before. Outside of a batch, the new values are stored at once."""
