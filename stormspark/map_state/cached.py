"""A bounded cache in front of a remote store (G14)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Generic, TypeVar

from stormspark.map_state.backing import BackingMap, Key

__all__ = ["LRU", "CachedMap"]

V = TypeVar("V")


class LRU(MutableMapping[Key, V]):
    """A dict that holds only the ``size`` entries that were used last."""

    def __init__(self, size: int) -> None:
        if size < 1:
            msg = f"a cache must hold at least one entry, got size {size}"
            raise ValueError(msg)
        self._size = size
        self._entries: OrderedDict[Key, V] = OrderedDict()

    def __getitem__(self, key: Key) -> V:
        value = self._entries[key]
        self._entries.move_to_end(key)
        return value

    def __setitem__(self, key: Key, value: V) -> None:
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def __delitem__(self, key: Key) -> None:
        del self._entries[key]

    def __contains__(self, key: object) -> bool:
        return key in self._entries  # a check does not count as use

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class CachedMap(Generic[V]):
    """A `BackingMap` that caches the ``size`` keys that were used last, including keys that have no value.

    Use it between a store and an `OpaqueMap` or `TransactionalMap`. Every put goes on to the store. Nothing else may write
    these keys to the store, because the cache would not notice.
    """

    def __init__(self, backing: BackingMap[V], size: int = 1000) -> None:
        self._backing = backing
        self._cache: LRU[V | None] = LRU(size)

    def multi_get(self, keys: Sequence[Key]) -> list[V | None]:
        """See `BackingMap.multi_get`. The keys that are not cached are read from the store in one call."""
        known = {key: self._cache[key] for key in keys if key in self._cache}
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        if missing:
            found = dict(zip(missing, self._backing.multi_get(missing), strict=True))
            self._cache.update(found)
            known |= found
        return [known[key] for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[V]) -> None:
        """See `BackingMap.multi_put`."""
        for key in keys:
            self._cache.pop(key, None)  # if the put fails, the key's value is unknown
        self._backing.multi_put(keys, values)
        self._cache.update(zip(keys, values, strict=True))
