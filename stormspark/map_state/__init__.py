"""Maps that keep state by Storm's rules, so that a replayed batch can count once. They work with any store (G8, G14-G16).

A batch has a number, its txid. Batches are committed in the order of their numbers, and a failed batch comes again under
the same number until it is committed.

A spout may replay a batch with the same number or without a number, and with the same tuples or other ones. How often a map
counts a replayed batch depends on the number and on the tuples (G16). A `-` means that the map promises nothing:

| the spout replays a batch with | same number, same tuples | same number, other tuples | no numbers |
| --- | --- | --- | --- |
| such a spout is called | transactional | opaque | non-transactional |
| `TransactionalMap` stores (txid, value) | exactly once | - | - |
| `OpaqueMap` stores (txid, value before, value) | exactly once | exactly once | - |
| `NonTransactionalMap` stores the value | at least once | at least once | at least once |

A map keeps its values in a `BackingMap`, a store that needs only two methods. `SqlBackingMap` is for databases, and `CachedMap`
is a cache in front of a remote store. `MemoryMapState` is a whole map in memory, for tests.

>>> counts = OpaqueMap(MemoryBackingMap())
>>> def batch(txid, *words):
...     counts.begin_commit(txid)
...     for word in words:
...         counts.multi_update([word], [lambda count: (count or 0) + 1])
...     counts.commit(txid)
>>> batch(1, "storm", "spark")
>>> batch(2, "storm", "storm")
>>> batch(2, "storm", "heron")  # again, with other tuples
>>> counts.multi_get(["storm", "spark", "heron"])
[2, 1, 1]
"""

from stormspark.map_state.backing import BackingMap, Key, MapState, Updater
from stormspark.map_state.cached import CachedMap
from stormspark.map_state.memory import LRUMemoryMapState, MemoryBackingMap, MemoryMapState
from stormspark.map_state.non_transactional import NonTransactionalMap
from stormspark.map_state.opaque import OpaqueMap
from stormspark.map_state.snapshottable import SnapshottableMap
from stormspark.map_state.transactional import TransactionalMap
from stormspark.map_state.values import OpaqueValue, StateType, TransactionalValue

__all__ = [
    "BackingMap",
    "CachedMap",
    "Key",
    "LRUMemoryMapState",
    "MapState",
    "MemoryBackingMap",
    "MemoryMapState",
    "NonTransactionalMap",
    "OpaqueMap",
    "OpaqueValue",
    "SnapshottableMap",
    "StateType",
    "TransactionalMap",
    "TransactionalValue",
    "Updater",
]
