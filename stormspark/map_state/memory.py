"""State in the memory of this process, for tests and for values that may be lost (G14)."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any, ClassVar, TypeVar

from stormspark.map_state.backing import Key
from stormspark.map_state.cached import LRU
from stormspark.map_state.opaque import JOURNAL, OpaqueMap
from stormspark.map_state.snapshottable import SnapshottableMap
from stormspark.map_state.values import OpaqueValue

__all__ = ["LRUMemoryMapState", "MemoryBackingMap", "MemoryMapState"]

V = TypeVar("V")

_SNAPSHOT = ("$snapshot",)


class MemoryBackingMap:
    """A `BackingMap` over a dict."""

    def __init__(self, rows: MutableMapping[Key, Any] | None = None) -> None:
        self.rows: MutableMapping[Key, Any] = {} if rows is None else rows

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """See `BackingMap.multi_get`."""
        return [self.rows.get(key) for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """See `BackingMap.multi_put`."""
        for key, value in zip(keys, values, strict=True):
            self.rows[key] = value


class MemoryMapState(SnapshottableMap[V]):
    """An opaque map in memory. In one process, maps with the same ``name`` share their contents.

    So a map with a name keeps its contents when a task begins anew.

    >>> MemoryMapState("counts").multi_put([("storm",)], [3])
    >>> list(MemoryMapState("counts").get_tuples())
    [('storm', 3)]
    >>> MemoryMapState.forget_all()
    >>> list(MemoryMapState("counts").get_tuples())
    []
    """

    _named: ClassVar[dict[str, MutableMapping[Key, Any]]] = {}

    def __init__(self, name: str | None = None) -> None:
        rows = self._new_rows() if name is None else self._named.setdefault(name, self._new_rows())
        self._rows = rows
        self._removed: list[Key] = []
        self._txid: int | None = None
        super().__init__(OpaqueMap(MemoryBackingMap(rows)), _SNAPSHOT)

    def _new_rows(self) -> MutableMapping[Key, Any]:
        return {}

    @classmethod
    def forget_all(cls) -> None:
        """Forget the contents of all names, so that new maps begin empty. Maps that are in use keep their contents."""
        cls._named.clear()

    def begin_commit(self, txid: int | None) -> None:
        """See `MapState.begin_commit`."""
        if txid is None or txid != self._txid:
            # The batch that removed these keys is final now. It may have put some of them again.
            for key in self._removed:
                stored = self._rows.get(key)
                if stored is not None and stored.curr is None:
                    del self._rows[key]
        self._removed, self._txid = [], txid
        super().begin_commit(txid)

    def multi_remove(self, keys: Sequence[Key]) -> None:
        """Remove keys. They have no value from now on, and their rows are deleted when the next batch begins."""
        self.multi_put(keys, [None] * len(keys))  # type: ignore[list-item]  # None stands for no value
        self._removed.extend(keys)

    def get_tuples(self) -> Iterator[tuple[Any, ...]]:
        """Yield one tuple per stored key: the values of which the key consists, then the value that is stored for the key.

        The single value of `SnapshottableMap`, the rows of journals and removed keys are left out.
        """
        for key, stored in dict(self._rows).items():
            if isinstance(key, tuple) and (key == _SNAPSHOT or (len(key) == 2 and key[0] == JOURNAL)):
                continue
            if isinstance(stored, OpaqueValue) and stored.curr is not None:
                yield (*(key if isinstance(key, tuple) else (key,)), stored.curr)


class LRUMemoryMapState(MemoryMapState[V]):
    """A `MemoryMapState` that keeps only the ``size`` keys that were used last, such as the users that were active lately."""

    _named: ClassVar[dict[str, MutableMapping[Key, Any]]] = {}

    def __init__(self, size: int, name: str | None = None) -> None:
        self._size = size + 1  # plus one for the journal
        super().__init__(name)

    def _new_rows(self) -> MutableMapping[Key, Any]:
        return LRU(self._size)
