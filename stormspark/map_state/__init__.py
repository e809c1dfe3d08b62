"""Storm's state rules: maps that count each batch once, though batches are replayed, in any store (G8, G14-G16).

A batch has a number, its txid; batches are committed in the order of their numbers, and one that failed comes again
under the same number until it is committed. What a map promises depends on what a replay brings (G16):

| the spout | same number, same tuples | same number, other tuples | no numbers |
| --- | --- | --- | --- |
| is called | transactional | opaque | non-transactional |
| `TransactionalMap` stores (txid, value) | exactly once | - | - |
| `OpaqueMap` stores (txid, value before, value) | exactly once | exactly once | - |
| `NonTransactionalMap` stores the value | at least once | - | at least once |

A map does that over a `BackingMap`: two methods, which are all that a store needs. There are `SqlBackingMap` for databases,
`CachedMap` in front of a store that is far away, and `MemoryMapState` for tests.

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
