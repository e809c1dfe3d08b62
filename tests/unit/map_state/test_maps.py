"""Maps of state: what the properties do not say. `tests/properties/test_map_state.py` has replays and deaths."""

from __future__ import annotations

import pytest

from stormspark.errors import StateError
from stormspark.map_state import (
    CachedMap,
    LRUMemoryMapState,
    MemoryBackingMap,
    MemoryMapState,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    SnapshottableMap,
    TransactionalMap,
    TransactionalValue,
)


def plus(amount):
    return lambda before: (before or 0) + amount


def commit(counts, txid, key="a", amount=1):
    counts.begin_commit(txid)
    values = counts.multi_update([key], [plus(amount)])
    counts.commit(txid)
    return values


@pytest.fixture
def forget():
    yield
    MemoryMapState.forget_all()
    LRUMemoryMapState.forget_all()


def test_what_a_transactional_map_stores():
    """G8, G15: (txid, value)."""
    store = MemoryBackingMap()
    commit(TransactionalMap(store), 3)
    assert store.rows == {"a": TransactionalValue(3, 1)}


def test_what_an_opaque_map_stores():
    """G8, G15: (txid, value before, value)."""
    store = MemoryBackingMap()
    counts = OpaqueMap(store)
    commit(counts, 3)
    commit(counts, 4, amount=5)
    assert store.rows["a"] == OpaqueValue(4, curr=6, prev=1)
    commit(counts, 4, amount=7)
    assert store.rows["a"] == OpaqueValue(4, curr=8, prev=1)


@pytest.mark.parametrize("make", [TransactionalMap, OpaqueMap])
def test_a_batch_behind_the_stored_one_is_refused(make):
    """G15: it names the key."""
    store = MemoryBackingMap()
    commit(make(store), 5)
    with pytest.raises(StateError, match=r"batch 4 is behind the state: key .* was changed by batch 5"):
        commit(make(store), 4)


def test_a_row_of_a_later_batch_is_refused_also_without_a_journal():
    """G15: a store that Storm, or another partition, has written."""
    counts = OpaqueMap(MemoryBackingMap({"a": OpaqueValue(5, 1)}))
    with pytest.raises(StateError, match="batch 4 is behind the state: key 'a' was changed by batch 5"):
        commit(counts, 4)
    assert commit(counts, 6) == [2]


def test_a_replay_begins_from_the_value_before_also_without_a_journal():
    """G8, G15: Storm's rule for each key."""
    store = MemoryBackingMap({"a": OpaqueValue(5, curr=3, prev=1)})
    assert commit(OpaqueMap(store), 5, amount=7) == [8]
    assert store.rows["a"] == OpaqueValue(5, curr=8, prev=1)


@pytest.mark.parametrize("make", [TransactionalMap, OpaqueMap])
def test_only_the_batch_that_has_begun_is_committed(make):
    """Only the batch that has begun can be committed; the error says which one that is (G14)."""
    counts = make(MemoryBackingMap())
    with pytest.raises(StateError, match="batch 3 can't be committed, because none has begun"):
        counts.commit(3)
    counts.begin_commit(2)
    with pytest.raises(
        StateError, match=r"batch 3 can't be committed, because batch 2 has begun; call begin_commit\(3\)"
    ):
        counts.commit(3)


@pytest.mark.parametrize("make", [TransactionalMap, OpaqueMap])
def test_outside_of_a_batch_changes_are_stored_at_once(make):
    """G14: and count as older than any batch."""
    store = MemoryBackingMap()
    counts = make(store)
    assert counts.multi_update(["a", "a"], [plus(1), plus(2)]) == [1, 3]
    counts.multi_put(["b"], [7])
    assert make(store).multi_get("ab") == [3, 7]
    assert commit(counts, 1) == [4]


@pytest.mark.parametrize("make", [TransactionalMap, OpaqueMap])
def test_a_map_outside_of_a_batch_reads_what_is_stored_now(make):
    """G14: a query beside the task that writes."""
    store = MemoryBackingMap()
    reader = make(store)
    assert reader.multi_get(["a"]) == [None]
    commit(make(store), 1)
    assert reader.multi_get(["a"]) == [1]


@pytest.mark.parametrize("make", [TransactionalMap, OpaqueMap])
def test_an_updater_that_raises_leaves_nothing_of_its_batch(make):
    """When an updater raises, nothing of its batch is stored, and the batch can run again (G14)."""
    store = MemoryBackingMap()
    counts = make(store)
    counts.begin_commit(1)
    counts.multi_put(["a"], [5])
    with pytest.raises(ZeroDivisionError):
        counts.multi_update(["b"], [lambda _: 1 // 0])
    assert store.rows == {}
    assert commit(counts, 1, "b") == [1]
    assert counts.multi_get("ab") == [None, 1]


@pytest.mark.parametrize("make", [NonTransactionalMap, TransactionalMap, OpaqueMap])
def test_keys_and_updaters_come_in_pairs(make):
    """`multi_update` needs one updater per key (G14)."""
    counts = make(MemoryBackingMap())
    with pytest.raises(ValueError, match="zip"):
        counts.multi_update(["a", "b"], [plus(1)])


def test_values_that_are_put_are_replaced_by_their_replay():
    """G8, G15: and the value before is that before the batch."""
    store = MemoryBackingMap()
    counts = OpaqueMap(store)
    for txid, value in (1, 10), (2, 20), (2, 30):
        counts.begin_commit(txid)
        counts.multi_put(["a"], [value])
        counts.commit(txid)
    assert store.rows["a"] == OpaqueValue(2, curr=30, prev=10)


def test_a_key_that_only_a_failed_attempt_had_is_put_back():
    """G16: with Storm's rule alone it would be 2 when its tuple comes in the next batch."""
    store = MemoryBackingMap()
    commit(OpaqueMap(store), 1, "a")
    again = OpaqueMap(store)
    commit(again, 1, "b")
    assert again.multi_get("ab") == [None, 1]
    commit(again, 2, "a")
    assert again.multi_get("ab") == [1, 1]


class Calls(MemoryBackingMap):
    def __init__(self):
        super().__init__()
        self.calls = []

    def multi_get(self, keys):
        self.calls.append(("get", *keys))
        return super().multi_get(keys)

    def multi_put(self, keys, values):
        self.calls.append(("put", *keys))
        super().multi_put(keys, values)


def test_a_store_is_asked_once_and_written_once_a_batch():
    """G14: the journal comes first, and is read once by each map."""
    store = Calls()
    counts = OpaqueMap(store, partition=4)
    for txid in 1, 2:
        counts.begin_commit(txid)
        counts.multi_get(["a"])
        counts.multi_update(["a", "b", "a"], [plus(1)] * 3)
        counts.multi_update(["b"], [plus(1)])
        counts.commit(txid)
    batch = [("get", "a"), ("get", "b"), ("put", ("$journal", 4), "a", "b")]
    assert store.calls == [("get", ("$journal", 4)), *batch, *batch]


def test_a_batch_without_changes_writes_nothing():
    """Committing a batch without changes does not touch the store (G14)."""
    store = Calls()
    counts = TransactionalMap(store)
    counts.begin_commit(1)
    counts.commit(1)
    assert store.calls == []


def test_a_cache_asks_for_what_it_does_not_know():
    """G14: that a key has no value is known too."""
    store = Calls()
    store.rows.update(a=1, b=2, c=3)
    cached = CachedMap(store, 3)
    assert cached.multi_get(["a", "b", "none"]) == [1, 2, None]
    assert cached.multi_get(["none", "a"]) == [None, 1]
    assert cached.multi_get(["c", "a"]) == [3, 1]
    assert cached.multi_get(["b"]) == [2]
    assert store.calls == [("get", "a", "b", "none"), ("get", "c"), ("get", "b")]


def test_a_cache_remembers_no_write_that_failed():
    """G14: in Storm it does."""

    class Broken(MemoryBackingMap):
        def multi_put(self, keys, values):
            raise OSError("no route to the store")

    cached = CachedMap(Broken({"a": 1}), 10)
    assert cached.multi_get(["a"]) == [1]
    with pytest.raises(OSError, match="no route"):
        cached.multi_put(["a"], [2])
    assert cached.multi_get(["a"]) == [1]


def test_a_cache_of_no_size_is_refused():
    """A cache must hold one entry at least (G14)."""
    with pytest.raises(ValueError, match="a cache must hold at least one entry, got size 0"):
        CachedMap(MemoryBackingMap(), 0)


def test_a_snapshottable_map_is_a_value_and_a_map():
    """A snapshottable map has one value of its own beside the keys of the map (G14)."""
    state = SnapshottableMap(OpaqueMap(MemoryBackingMap()), key="total")
    state.begin_commit(1)
    assert state.get() is None
    assert state.update(plus(2)) == 2
    state.multi_put(["a"], [5])
    state.commit(1)
    assert (state.get(), state.multi_get(["a", "total"])) == (2, [5, 2])
    state.set(9)
    assert state.get() == 9


def test_states_of_one_name_share_their_contents(forget):
    """G14: and count a replay once, also after a restart of the task."""
    assert commit(MemoryMapState("counts"), 1, ("storm", 1)) == [1]
    again = MemoryMapState("counts")
    assert commit(again, 1, ("storm", 1)) == [1]
    again.set(5)
    assert list(again.get_tuples()) == [("storm", 1, 1)]
    assert MemoryMapState("others").multi_get([("storm", 1)]) == [None]
    assert MemoryMapState().multi_get([("storm", 1)]) == [None]


def test_removed_keys_go_when_their_batch_is_final():
    """G14: a replay still knows the value before; a key that was put again stays, other than in Storm."""
    state = MemoryMapState()
    state.begin_commit(1)
    state.multi_put(["a", "b"], [1, 2])
    state.commit(1)
    state.begin_commit(2)
    state.multi_remove(["a", "b"])
    state.multi_put(["b"], [3])
    state.commit(2)
    assert list(state.get_tuples()) == [("b", 3)]
    assert commit(state, 2, "a") == [2]  # the replay does not remove it
    state.begin_commit(3)
    state.multi_remove(["a"])
    state.commit(3)
    state.begin_commit(4)
    assert "a" not in state._rows
    assert state.multi_get("ab") == [None, 2]


def test_an_lru_state_holds_what_was_used_last(forget):
    """An LRU state holds the keys that were used last, and a second one of the same name shares them (G14)."""
    state = LRUMemoryMapState(2, "recent")
    for txid, key in enumerate("abac", 1):
        commit(state, txid, key)
    assert sorted(LRUMemoryMapState(2, "recent").get_tuples()) == [("a", 2), ("c", 1)]
