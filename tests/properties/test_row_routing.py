"""Batches of rows against tuples: the same tasks, the same hashes, the same values, the same counts of edges."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormspark.acker import Ledger, SpoutAccount, Tree
from stormspark.errors import ValueNotHashableError
from stormspark.grouping import (
    AllGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    GroupingContext,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)
from stormspark.grouping import columns as grouping_columns
from stormspark.grouping.columns import ascii_hashes, double_hashes
from stormspark.grouping.hashing import value_hash
from stormspark.wire.column_hashes import column_hashes
from stormspark.wire.python_values import python_values
from stormspark.worker.vectorised.lanes import BatchLanes, unpack_batches
from stormspark.worker.vectorised.roots import BatchRoots
from stormspark.worker.vectorised.routing import make_route
from stormspark.worker.vectorised.rows import batch_of, rows_of

texts = st.text(max_size=12)
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), texts),
    (pa.large_string(), st.text("abc é", max_size=4)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.binary(), st.binary(max_size=6)),
    (pa.null(), st.none()),
    (pa.decimal128(12, 3), st.decimals(-999, 999, places=3)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    (pa.list_(pa.string()), st.lists(texts | st.none(), max_size=3)),
    (pa.list_(pa.list_(pa.int64())), st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2)),
    (
        pa.struct({"x": pa.int64(), "y": pa.string()}),
        st.fixed_dictionaries({"x": st.integers(0, 9), "y": texts}),
    ),
    (pa.map_(pa.string(), pa.int64()), st.dictionaries(texts, st.integers(0, 9), max_size=3)),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b", "é"])),
    (pa.dictionary(pa.int32(), pa.float64()), st.sampled_from([0.0, -0.0, 1.5])),
]
INTS = st.sampled_from(["long", "integer", "json"])


@st.composite
def columns(draw: st.DrawFn, rows: int | None = None) -> pa.Array:
    """A column of some type with nulls in it, also a part of one."""
    kind, values = draw(st.sampled_from(COLUMNS))
    size = st.integers(0, 12) if rows is None else st.just(rows)
    count = draw(size)
    skipped = draw(st.integers(0, 3))
    every = draw(st.lists(values | st.none(), min_size=count + skipped, max_size=count + skipped))
    return pa.array(every, kind).slice(skipped)


@given(columns(), INTS)
def test_a_column_hashes_as_its_values(column: pa.Array, ints: str) -> None:
    """Hashing an Arrow column of any type gives the hash of each of its values (D2, D3)."""
    values = python_values(column)
    assert column_hashes(column, ints).view(np.int32).tolist() == [
        value_hash(value, ints) for value in values
    ]


@given(st.lists(st.text(st.sampled_from("abcxyz"), max_size=9), min_size=1, max_size=9), st.integers(1, 20))
@settings(max_examples=min(30, settings().max_examples))
def test_long_texts_hash_block_by_block(some: list[str], block: int) -> None:
    """D2: also a text that is longer than a block."""
    data = "".join(some).encode()
    ends = np.cumsum([0, *map(len, some)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping_columns, "_BLOCK", block)
        hashes = ascii_hashes(np.frombuffer(data, np.uint8), ends).view(np.int32).tolist()
    assert hashes == [value_hash(one) for one in some]


def test_no_texts_at_all() -> None:
    assert ascii_hashes(np.array([], np.uint8), np.array([0])).tolist() == []
    assert double_hashes(np.array([])).tolist() == []


FIELDS = ("a", "b")
GROUPINGS: list[Grouping] = [
    FieldsGrouping("a"),
    FieldsGrouping(["b", "a"]),
    FieldsGrouping([]),
    PartialKeyGrouping("b"),
    ShuffleGrouping(),
    LocalOrShuffleGrouping(),
    NoneGrouping(),
    AllGrouping(),
    GlobalGrouping(),
]


def context_for(targets: int, ints: str, seed: int) -> GroupingContext:
    tasks = tuple(range(3, 3 + targets))
    return GroupingContext("source", "default", FIELDS, 1, tasks, tasks[1:3], Random(seed), ints)


@st.composite
def batches(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Batches of two columns of the same types."""
    rows = draw(st.integers(0, 20))
    table = pa.record_batch([draw(columns(rows)), draw(columns(rows))], FIELDS)
    cut = draw(st.integers(0, rows))
    return [table.slice(0, cut), table.slice(cut)]


@pytest.mark.parametrize("grouping", GROUPINGS, ids=lambda grouping: grouping.describe())
@given(batches(), st.integers(1, 5), INTS, st.integers(0, 9))
@settings(max_examples=min(20, settings().max_examples))
def test_each_row_goes_where_its_tuple_goes(
    grouping: Grouping, batches: list[pa.RecordBatch], targets: int, ints: str, seed: int
) -> None:
    """D1, D5, D7-D10, D12: and the rows of a task stay in order (E31)."""
    context = context_for(targets, ints, seed)
    by_row = make_route(grouping, grouping.chooser(context), context)
    again = context_for(targets, ints, seed)
    choose = grouping.chooser(again)
    got: dict[int, list[Any]] = defaultdict(list)
    wanted: dict[int, list[Any]] = defaultdict(list)
    number = 0
    for batch in batches:
        for task, rows in by_row(batch):
            got[task] += [number + row for row in (range(batch.num_rows) if rows is None else rows.tolist())]
        for values in rows_of(batch):
            for task in (choose(values),) if grouping.single else choose(values):
                wanted[task].append(number)
            number += 1
    assert {task: rows for task, rows in got.items() if rows} == wanted


def test_what_has_no_hash_is_refused_in_a_column_too() -> None:
    """D2: an interval of months, days and nanoseconds is a tuple; a decimal that is no number can't be in a column."""
    column = pa.array([{"x": (1, 2, 3)}], pa.struct({"x": pa.month_day_nano_interval()}))
    assert column_hashes(column).tolist() == [value_hash(column.to_pylist()[0]) & 0xFFFF_FFFF]

    class Opaque(pa.ExtensionType):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(pa.int64(), "tests.opaque")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        def __arrow_ext_scalar_class__(self) -> Any:
            return _OpaqueScalar

    opaque = pa.ExtensionArray.from_storage(Opaque(), pa.array([1]))
    context = GroupingContext("source", "default", ("a",), 1, (3,), (), Random(1))
    grouping = FieldsGrouping("a")
    choose = grouping.chooser(context)
    with pytest.raises(ValueNotHashableError) as of_tuple:
        choose((object(),))
    with pytest.raises(ValueNotHashableError) as of_row:
        make_route(grouping, choose, context)(pa.record_batch([opaque], ["a"]))
    assert str(of_row.value) == str(of_tuple.value)


class _OpaqueScalar(pa.ExtensionScalar):  # type: ignore[misc]
    def as_py(self, **_: Any) -> Any:
        return object()


@given(batches())
@settings(max_examples=min(30, settings().max_examples))
def test_rows_become_tuples_and_rows_again(batches: list[pa.RecordBatch]) -> None:
    """A record batch that is split into rows and built again has the same schema and rows (C8)."""
    for batch in batches:
        again = batch_of(list(rows_of(batch)), batch.schema)
        assert again.schema == batch.schema
        assert [repr(row) for row in rows_of(again)] == [repr(row) for row in rows_of(batch)]


# -- the ledger ------------------------------------------------------------------------------------------------


class Ids:
    def __init__(self) -> None:
        self._random = Random(3)

    def __call__(self, count: int) -> list[int]:
        return [self._random.getrandbits(64) for _ in range(count)]


@st.composite
def rows_of_trees(draw: st.DrawFn) -> tuple[int, list[tuple[int, ...]]]:
    """How many trees there are, and which of them each row belongs to."""
    trees = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, trees - 1), unique=True, max_size=3).map(tuple)
    return trees, draw(st.lists(row, min_size=1, max_size=12))


@given(rows_of_trees(), st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_edges_are_counted_row_by_row_over_frames_too(
    made: tuple[int, list[tuple[int, ...]]], places: list[int]
) -> None:
    """E1, E2: rows stay here, or travel in one of two batches to another worker; a tree is acked when all of its rows are."""
    count, rows = made
    home, away = Ledger(0, Ids(), None), Ledger(1, Ids(), None)
    account = SpoutAccount(1)
    trees = [Tree(account, number, 0.0) for number in range(count)]
    roots = BatchRoots.of(
        tuple(trees[one] for one in row) if len(row) > 1 else trees[row[0]] if row else None for row in rows
    )
    source: Any = type("Source", (), {"task": 1, "stream": "default", "component": "a"})()
    batch = pa.record_batch([pa.array(range(len(rows)))], ["n"])
    roots.open_edges(len(rows))
    for tree in trees:
        home.begin(tree)
    wanted = Counter(one for row in rows for one in row)
    assert [tree.count for tree in trees] == [wanted[number] for number in range(count)]
    for tree in trees:
        if not tree.count:
            home.drained(tree)
    lanes = BatchLanes(1, home)
    shares = [np.array([at for at in range(len(rows)) if places[at] == place], np.intp) for place in range(3)]
    for target, share in enumerate(shares[1:]):
        if len(share):
            lanes.inbox(target)(batch.take(pa.array(share)), source, roots.take(share))
    arrived: dict[int, Any] = {}
    sealed = lanes.seal()
    if sealed:
        ((rows_sealed, payload),) = sealed
        assert rows_sealed == len(shares[1]) + len(shares[2]) and lanes.seal() == [] and lanes.bytes == 0

        def receive(target: int) -> Any:
            return lambda rows, of, its: arrived.__setitem__(target, (rows.column(0).to_pylist(), its))

        unpack_batches(
            payload, away, {(1, "default"): source}, lambda _: batch.schema, {0: receive(0), 1: receive(1)}
        )
    assert {target: got for target, (got, _) in arrived.items()} == {
        target: share.tolist() for target, share in enumerate(shares[1:]) if len(share)
    }
    open_rows = Counter(one for row in rows for one in row)
    for share, its, ledger in [
        (shares[0].tolist(), roots.take(shares[0]), home),
        *((got, its, away) for got, its in arrived.values()),
    ]:
        its.close_edges(ledger, len(share))
        for parts in away.parts_to_send.values():
            home.take_parts(parts)
        away.parts_to_send.clear()
        open_rows -= Counter(one for at in share for one in rows[at])
        assert {tree.message_id for tree in home.open_trees()} == set(+open_rows)
        home.validate()
        away.validate()
    assert len(account.ended) == count and account.pending == 0
