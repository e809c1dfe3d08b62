"""The two sides of a map of state: the store behind it, and what topologies call (G14)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

__all__ = ["BackingMap", "Key", "MapState", "Updater"]

V = TypeVar("V")

#: Mostly the tuple of a group's values.
Key: TypeAlias = Hashable
#: Gets the value as it is, None if there is none, and returns the new one: Storm's ValueUpdater.
Updater: TypeAlias = Callable[[V | None], V]


class BackingMap(Protocol[V]):
    """A store, as a map needs it (G14, Storm's IBackingMap).

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
        """The values of ``keys``, in their order; None where there is none."""

    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """Store values, durably when it returns. All or, if the process dies meanwhile, the first few in the order given."""


class MapState(ABC, Generic[V]):
    """A map that batches update (G14).

    One task writes a map, in calls of `begin_commit`, updates, `commit`. A batch that fails in between begins again. What a batch
    changes is seen in it at once, and is stored by `commit`, each key once: Storm stores with every call, and then a batch that
    updates a key in two calls is not counted exactly once if it dies between them.
    """

    @abstractmethod
    def begin_commit(self, txid: int | None) -> None:
        """The changes of batch ``txid`` come, None for one without a number. What an attempt before has not committed is gone.

        To be called for every attempt of a batch, also where there is nothing to change: an `OpaqueMap` takes back here what an
        earlier attempt has stored. Raises `StateError` if a later batch is stored.
        """

    @abstractmethod
    def commit(self, txid: int | None) -> None:
        """Store what batch ``txid`` has changed. Raises `StateError` if it is not the one that has begun."""

    @abstractmethod
    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """The values of ``keys``, None where there is none."""

    @abstractmethod
    def multi_update(self, keys: Sequence[Key], updaters: Sequence[Updater[V]]) -> list[V]:
        """Apply an updater to each key's value, and return the new values. Outside of a batch they are stored at once."""

    @abstractmethod
    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """Set values, whatever they were. Outside of a batch they are stored at once."""
