"""The two interfaces of a map of state: the store behind it, and the methods that topologies call (G14)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

__all__ = ["BackingMap", "Key", "MapState", "Updater"]

V = TypeVar("V")

#: Usually the tuple of a group's values.
Key: TypeAlias = Hashable
#: Receives the current value, or None if there is none, and returns the new one: Storm's ValueUpdater.
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

        If the process dies meanwhile, only the first few, in the given order, may be stored.
        """


class MapState(ABC, Generic[V]):
    """A map that batches update (G14).

    One task writes a map, by the calls `begin_commit`, updates, `commit`. A batch that fails in between begins again. The
    changes of a batch are visible in it at once. `commit` stores them, each key once. Storm stores with every call instead.
    There, a batch that updates a key in two calls is not counted exactly once if it dies between them.
    """

    @abstractmethod
    def begin_commit(self, txid: int | None) -> None:
        """Begin the changes of batch ``txid``, or of one without a number if it is None.

        Uncommitted changes of an earlier attempt are gone. Call this for every attempt at a batch, even if it changes
        nothing: an `OpaqueMap` takes back here what an earlier attempt has stored. Raises `StateError` if a later batch is
        stored.
        """

    @abstractmethod
    def commit(self, txid: int | None) -> None:
        """Store the changes of batch ``txid``. Raises `StateError` if that is not the batch that has begun."""

    @abstractmethod
    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """Return the values of ``keys``; None for a key without a value."""

    @abstractmethod
    def multi_update(self, keys: Sequence[Key], updaters: Sequence[Updater[V]]) -> list[V]:
        """Apply an updater to each key's value, and return the new values. Outside of a batch they are stored at once."""

    @abstractmethod
    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """Set values, whatever they were before. Outside of a batch they are stored at once."""
