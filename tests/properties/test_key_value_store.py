"""The store of a task's state against a dict, and against the table that its changes would have made."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.checkpoint.ordered_keys import encode_key

TEXTS = st.text("ab\x00ÿ", max_size=2)
#: Few, so that the same ones come again, and of all kinds.
KEYS = st.sampled_from(
    [
        "",
        "a",
        "ab",
        "a\x00",
        "ÿ",
        b"",
        b"a",
        0,
        -1,
        256,
        ("",),
        ("a",),
        ("a", 1),
        ("\x00",),
        ("a", None),
        None,
    ]
)
VALUES = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
SOME = st.lists(st.tuples(KEYS, VALUES), max_size=5)


class StoreAndDict(RuleBasedStateMachine):
    """C35: puts, deletes, iterations, commits, rollbacks and restarts in any order, with a cache of none, some or all values."""

    def __init__(self) -> None:
        super().__init__()
        self.cache_bytes = self.recent_bytes = 0
        self.looks = True
        self.store = self.new_store()
        self.model: dict[Any, Any] = {}
        self.prepared: dict[Any, Any] | None = None
        self.committed: dict[Any, Any] = {}
        self.table: dict[bytes, bytes] = {}
        self.ever: dict[Any, None] = {}
        self.txid = 0

    def new_store(self) -> KeyValueStore:
        return KeyValueStore(
            "component 'count', task 3", cache_bytes=self.cache_bytes, recent_bytes=self.recent_bytes
        )

    @initialize(
        cache_bytes=st.sampled_from([0, 700, 10_000]),
        recent_bytes=st.sampled_from([0, 500, 10_000]),
        looks=st.booleans(),
    )
    def make_with_a_cache(self, cache_bytes, recent_bytes, looks):
        self.store.close()
        self.cache_bytes, self.recent_bytes, self.looks = cache_bytes, recent_bytes, looks
        self.store = self.new_store()

    def teardown(self) -> None:
        self.looks = True
        self.the_store_is_the_dict()
        self.store.close()

    @rule(pairs=SOME)
    def put(self, pairs):
        for key, value in pairs:
            self.store.put(key, value)
            self.model[key] = value
            self.ever[key] = None

    @rule(key=KEYS)
    def get(self, key):
        assert self.store.get(key, "nothing") == self.model.get(key, "nothing")
        assert (key in self.store) == (key in self.model)

    @rule(key=KEYS)
    def delete(self, key):
        assert self.store.delete(key) == self.model.pop(key, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete_what_is_there(self, data):
        key = data.draw(st.sampled_from(sorted(self.model, key=encode_key)))
        assert self.store.delete(key) == self.model.pop(key)

    @rule()
    def clear(self):
        self.store.clear()
        self.model.clear()

    @rule(prefix=TEXTS | st.tuples(TEXTS) | st.binary(max_size=1))
    def iterate_by_prefix(self, prefix):
        expected = {
            key: value
            for key, value in self.model.items()
            if type(key) is type(prefix)
            and (key[: len(prefix)] == prefix if isinstance(key, tuple) else key.startswith(prefix))
        }
        assert list(self.store.iterate(prefix)) == in_order(expected)

    @rule(key=KEYS, value=VALUES, after=st.integers(0, 3))
    def change_while_iterating(self, key, value, after):
        before = in_order(self.model)
        pairs = self.store.iterate()
        seen = [pair for _, pair in zip(range(after), pairs, strict=False)]
        self.store[key] = self.model[key] = value
        if seen:  # it had begun, so it has not seen the change
            assert seen + list(pairs) == before

    @rule()
    def prepare(self):
        self.prepared = dict(self.model)
        self.store.prepare_commit(self.txid)

    @rule(pairs=SOME, deleted=st.lists(KEYS, max_size=3))
    def whole_batch(self, pairs, deleted):
        self.put(pairs)
        for key in deleted:
            self.delete(key)
        self.prepare()
        self.every_key_has_its_value()
        self.commit()

    @precondition(lambda self: self.prepared is not None)
    @rule()
    def commit(self):
        assert self.prepared is not None
        changes = self.store.changes()
        assert changes == sorted(changes)
        for key, value in changes:
            if value is None:
                self.table.pop(key, None)
            else:
                self.table[key] = value
        self.store.commit(self.txid)
        self.committed, self.prepared = self.prepared, None
        self.txid += 1
        assert self.store.changes() == []

    @rule()
    def rollback(self):
        self.store.rollback()
        self.model, self.prepared = dict(self.committed), None

    @rule(at_once=st.integers(1, 4), deleted=KEYS)
    def restart(self, at_once, deleted):
        """Another process loads what the table has, in pieces, with what was deleted among it."""
        rows: list[tuple[bytes, bytes | None]] = [*self.table.items()]
        rows[:0] = [(encode_key(deleted), b"older"), (encode_key(deleted), None)]
        schema = pa.schema([("key", pa.binary()), ("value", pa.binary())])
        self.store.close()
        self.store = self.new_store()
        self.store.load(
            pa.RecordBatch.from_pylist(
                [{"key": key, "value": value} for key, value in rows[at : at + at_once]], schema
            )
            for at in range(0, len(rows), at_once)
        )
        self.model, self.prepared = dict(self.committed), None

    @invariant()
    def the_store_is_the_dict(self):
        if not self.looks:
            return  # to iterate puts all that is recent into the database
        assert list(self.store.iterate()) == in_order(self.model)
        assert len(self.store) == len(self.model)

    @invariant()
    def every_key_has_its_value(self):
        for key in self.ever:
            assert self.store.get(key, "nothing") == self.model.get(key, "nothing")

    @invariant()
    def the_table_is_what_was_committed(self):
        assert self.table.keys() == {encode_key(key) for key in self.committed}
        assert all(
            pickle.loads(self.table[encode_key(key)]) == value for key, value in self.committed.items()
        )


def in_order(model: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return sorted(model.items(), key=lambda pair: encode_key(pair[0]))


TestStoreAndDict = StoreAndDict.TestCase
TestStoreAndDict.settings = settings(stateful_step_count=25)
