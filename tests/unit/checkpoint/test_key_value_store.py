"""A task's state: what the state machine of `tests/properties` does not say."""

from __future__ import annotations

import gc
import pickle
import resource
import sqlite3
import threading
from collections import namedtuple
from collections.abc import Iterator

import pyarrow as pa
import pytest

from stormspark.api.state import KeyValueState
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.checkpoint.ordered_keys import decode_key, encode_key, prefix_range
from stormspark.errors import SerializationError, StateError

Point = namedtuple("Point", "x y")


@pytest.fixture
def store() -> Iterator[KeyValueStore]:
    with_owner = KeyValueStore("component 'count', task 3")
    yield with_owner
    with_owner.close()


def values(changes: list[tuple[bytes, bytes | None]]) -> dict[object, object]:
    return {decode_key(key): None if value is None else pickle.loads(value) for key, value in changes}


def test_it_is_a_key_value_state_and_a_map(store):
    """C35: Storm's methods, and those of a dict."""
    assert isinstance(store, KeyValueState)
    store.update({"b": 2, "a": 1})
    assert store.setdefault("a", 9) == 1
    assert store.pop("b") == 2
    assert list(store.items()) == [("a", 1)]
    assert store == {"a": 1}
    with pytest.raises(KeyError):
        store["b"]
    with pytest.raises(KeyError):
        del store["b"]


def test_a_hot_key_is_one_change_with_its_last_value(store):
    """Many writes of one key are one change, with the last value (C35)."""
    for n in range(1000):
        store.put("hot", n)
    store.prepare_commit(1)
    assert values(store.changes()) == {"hot": 999}


def test_what_was_deleted_is_a_change_too(store):
    """C35: also what came and went in one batch, which the table can not know."""
    store.put("kept", 1)
    store.commit()
    store.delete("kept")
    store.put("brief", 1)
    store.delete("brief")
    store.delete("never there")
    store.prepare_commit(1)
    assert values(store.changes()) == {"kept": None, "brief": None}


def test_nothing_is_prepared_over_a_prepared_transaction(store):
    """C35: the same one may be prepared again, with what has come since."""
    store.put("a", 1)
    store.prepare_commit(7)
    store.put("b", 2)
    store.prepare_commit(7)
    assert values(store.changes()) == {"a": 1, "b": 2}
    with pytest.raises(
        StateError, match="component 'count', task 3: transaction 8 can't be prepared while 7 is"
    ):
        store.prepare_commit(8)
    store.commit(7)
    store.prepare_commit(8)


@pytest.mark.parametrize("prepared", [None, 6])
def test_only_what_was_prepared_is_committed(store, prepared):
    """A transaction that was not prepared can't be committed, and a rollback undoes its changes (C35)."""
    store.put("a", 1)
    if prepared is not None:
        store.prepare_commit(prepared)
    with pytest.raises(
        StateError, match=f"transaction 7 can't be committed, because {str(prepared).lower()} is prepared"
    ):
        store.commit(7)
    store.rollback()
    assert dict(store) == {}


def test_a_commit_without_a_number_takes_all(store):
    """C35: a component that manages its own state."""
    store.put("a", 1)
    store.prepare_commit(7)
    store.put("b", 2)
    store.commit()
    store.rollback()
    assert dict(store) == {"a": 1, "b": 2}


def test_a_value_that_can_not_be_pickled_is_named_and_nothing_is_prepared(store):
    """A value that can't be pickled is named with its key, and prepares nothing until it is gone (C35)."""
    store.put("fine", 1)
    store.put(("user", 7), {"lock": threading.Lock()})
    with pytest.raises(SerializationError) as error:
        store.prepare_commit(1)
    assert "component 'count', task 3: the value of key ('user', 7), of type dict, can't be pickled" in str(
        error.value
    )
    assert store.changes() == []
    store.delete(("user", 7))
    store.prepare_commit(1)
    assert values(store.changes()) == {"fine": 1, ("user", 7): None}


def test_values_of_classes_without_a_module_are_kept(store):
    """C35: those of a script or a notebook."""

    class Session:
        clicks = 3

    store.put("a", Session())
    store.commit()
    store.rollback()  # empties the cache
    assert store["a"].clicks == 3


@pytest.mark.parametrize(
    "key", [["a"], {"a": 1}, frozenset([1]), ("a", frozenset([1])), threading.Lock(), lambda: None]
)
def test_keys_that_could_not_be_found_again_are_refused_where_they_are_used(store, key):
    """C35: what can't be hashed or pickled, and equal sets that may list their contents in different orders."""
    with pytest.raises(SerializationError, match="can't be a key of a state"):
        store.put(key, 1)


def test_objects_are_keys_by_their_fields(store):
    """C35: whether two fields are one object does not matter; a named tuple is no tuple."""
    text = "".join(["a", "b"])
    store.put(Point(text, text), 1)
    store.put(Point("ab", "".join(["a", "b"])), 2)
    store.put(("ab", "ab"), 3)
    assert sorted(store.iterate(), key=lambda pair: pair[1]) == [(Point("ab", "ab"), 2), (("ab", "ab"), 3)]
    assert [type(key) for key, _ in store.iterate()] == [tuple, Point]


def test_prefixes_end_where_they_should(store):
    """Iterating by a string or a tuple prefix finds the right keys, committed or not, in order (C35)."""
    for key in [
        "st",
        "storm",
        "sz",
        b"st",
        ("st",),
        ("user", 7),
        ("user", 7, None),
        ("user", 70),
        ("user",),
        5,
    ]:
        store.put(key, 0)
    store.commit()
    store.put("star", 0)
    assert [key for key, _ in store.iterate("st")] == ["st", "star", "storm"]
    assert [key for key, _ in store.iterate(("user", 7))] == [("user", 7), ("user", 7, None)]
    assert [key for key, _ in store.iterate(())] == [
        ("st",),
        ("user",),
        ("user", 7),
        ("user", 7, None),
        ("user", 70),
    ]
    with pytest.raises(TypeError, match="a prefix of keys must be a string, bytes or a tuple, got 5"):
        store.iterate(5)  # type: ignore[arg-type]


def test_a_zero_in_a_key_is_no_end_of_a_prefix():
    """A zero character in a string is no part of the range of the empty string in a tuple (C35)."""
    low, high = prefix_range(("",))
    assert not low <= encode_key(("\0",)) < high
    assert low <= encode_key(("", None)) < high


@pytest.mark.parametrize("data", [b"", b"\x7f", encode_key("a") + b"x", encode_key(("a",))[:-1]])
def test_what_is_no_key_is_not_decoded(data):
    """Decoding rejects bytes that are no encoded key (C35)."""
    with pytest.raises((ValueError, IndexError)):
        decode_key(data)


@pytest.mark.parametrize(
    "prepared_or_committed", [KeyValueStore.prepare_commit, lambda store, _: store.commit()]
)
def test_what_was_read_before_is_not_what_is_read_after_a_change(store, prepared_or_committed):
    """C35: of a key that is in the cache."""
    for value in 1, 2:
        store.put("a", value)
        prepared_or_committed(store, 1)
        assert store.get("a") == value
    store.delete("a")
    prepared_or_committed(store, 1)
    assert "a" not in store


def test_a_rollback_undoes_what_was_changed_in_place(store):
    """C35: the object that was in memory is not the committed value any more."""
    store.put("list", [1])
    store.commit()
    clicks = store.get("list")
    clicks.append(2)
    store.put("list", clicks)
    store.rollback()
    assert store.get("list") == [1]


def test_a_load_forgets_what_was_there(store):
    """C35: in memory, prepared and on disk."""
    store.put("old", 1)
    store.commit()
    store.put("prepared", 1)
    store.prepare_commit(1)
    store.put("changed", 1)
    store.load([pa.record_batch({"key": [encode_key("new")], "value": [pickle.dumps(2)]})])
    assert dict(store) == {"new": 2}
    assert store.changes() == []
    store.prepare_commit(9)


def test_a_load_that_breaks_off_leaves_no_half_state(store):
    """A load that fails in the middle leaves the state as it was (C35)."""

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"key": [encode_key("a")], "value": [pickle.dumps(1)]})
        raise OSError("the table is gone")

    store.put("old", 1)
    store.commit()
    with pytest.raises(OSError, match="the table is gone"):
        store.load(broken())
    assert dict(store) == {"old": 1}


@pytest.mark.slow
def test_more_state_than_the_cache_holds_takes_no_memory(store):
    """C35: 60 MB of values through a store that keeps 1 MB of them."""
    small = KeyValueStore(cache_bytes=1 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value = bytes(10_000)
    for batch in range(60):
        for n in range(100):
            small.put((batch, n), value + bytes([batch, n]))
        small.prepare_commit(batch)
        small.commit(batch)
    assert sum(1 for _ in small.iterate()) == 6000
    assert all(small.get((batch, 7))[-2:] == bytes([batch, 7]) for batch in range(60))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    small.close()
    assert grown < 40_000  # KiB


def test_keys_that_change_in_each_batch_go_to_the_database_together() -> None:
    """They are hot and lie far apart: written at once in order, where each batch would have written them."""
    store = KeyValueStore(recent_bytes=100_000)
    written: list[int] = []
    write = store._write_recent

    def write_recent() -> None:
        written.append(len(store._recent))
        write()

    store._write_recent = write_recent  # type: ignore[method-assign]
    for batch in range(50):
        for key in range(0, 100_000, 1000):
            store[key] = batch
        store.prepare_commit(batch)
        store.commit(batch)
    assert written == [], "a hundred keys are no more for having changed fifty times"
    assert store[5000] == 49
    for batch in range(50, 60):
        for key in range(100):
            store[batch, key] = batch
        store.prepare_commit(batch)
        store.commit(batch)
    assert len(written) == 2 and all(count * 200 < 130_000 for count in written), written
    assert (len(store), store[0], store[59, 99]) == (1100, 49, 59)


def test_a_store_that_is_forgotten_is_closed() -> None:
    store = KeyValueStore()
    database = store._database
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        database.execute("SELECT 1")


def test_a_full_disk_takes_no_committed_batch_away() -> None:
    """C35: the copy that a task has for itself may have no room; what is committed is so, and is written when there is."""
    store = KeyValueStore(recent_bytes=1 << 16)
    for n in range(3):
        store[n] = "x" * 100_000
        store.prepare_commit(n)
        store._database.execute("PRAGMA max_page_count=1")
        store.commit(n)
    store[3] = 1
    store.prepare_commit(3)
    store.commit(3)
    assert [store[n][:1] for n in range(3)] == ["x"] * 3 and store[3] == 1
    with pytest.raises(sqlite3.OperationalError, match="full"):
        len(store)
    store._database.execute("PRAGMA max_page_count=1073741823")
    assert len(store) == 4
    store[4] = 1
    store.prepare_commit(4)
    store.commit(4)
    assert sorted(store) == [0, 1, 2, 3, 4]
