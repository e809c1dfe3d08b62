"""Rows of sources whose message ids come twice, or whose values Python can't hold: none is lost, and each is told apart."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from stormspark import TopologyBuilder
from stormspark.acker.records import AckerTime
from stormspark.api import ExponentialBackoff, SourceSpout
from stormspark.driver.failed_rows import FailedRows
from stormspark.spi import RangeSpout
from stormspark.worker.sources.row_codec import decode, encode
from stormspark.worker.sources.rows import Row, RowKey, comparable
from stormspark.worker.sources.source_rows import SourceRows
from tests.unit.worker.components import Call
from tests.unit.worker.rig import Rig
from tests.unit.worker.test_source_rows import payload


def rows_of(**retry: Any) -> SourceRows:
    return SourceRows(ExponentialBackoff(**retry), ("n",))


def record(rows: SourceRows, batch: int) -> list[Any]:
    """The end of a batch, for the durable acker."""
    return rows.changes(AckerTime(100.0, batch), lambda n: [Random(batch).getrandbits(62) for _ in range(n)])


@pytest.mark.parametrize("recorded", [False, True], ids=["in one batch", "over batches"])
@pytest.mark.parametrize("first_acked", [0, 1])
def test_two_open_rows_of_one_id_are_two_rows(recorded: bool, first_acked: int) -> None:
    """Both are emitted; one is acked and the other fails and comes again, whichever it is."""
    rows = rows_of(initial_delay=1)
    rows.take(0, 0, payload((7, "a")))
    first = rows.next(0.0)
    opened = record(rows, 0) if recorded else []
    rows.take(1, 0, payload((7, "b")))
    second = rows.next(0.0)
    assert first is not None and second is not None
    assert (first.values[1], second.values[1]) == ("a", "b")
    assert first.message_id == second.message_id == (7,)
    both = (first, second)
    rows.done(both[first_acked].id)
    assert rows.failed(both[1 - first_acked].id, 0.0) is None
    assert rows.next(5.0) == both[1 - first_acked]
    assert rows.next(5.0) is None
    rows.done(both[1 - first_acked].id)
    closed = [change.record for change in record(rows, 2) if change.row is None]
    assert closed == [change.record for change in opened]


def test_a_row_is_the_same_in_each_attempt_at_its_batch() -> None:
    """The driver counts how often a row failed by its key, also where partitions come in another order."""
    keys = []
    for order in ((0, 1), (1, 0)):
        rows = rows_of()
        for partition in order:
            rows.take(4, partition, payload((7, f"from {partition}")))
        found = [rows.next(0.0), rows.next(0.0)]
        keys.append({row.values[1]: row.id for row in found if row is not None})
    assert keys[0] == keys[1] and len(set(keys[0].values())) == 2


@pytest.mark.slow
def test_very_many_rows_of_one_id() -> None:
    """All of them, in a time that does not grow with their square."""
    rows = rows_of()
    rows.take(0, 0, payload(*((7, str(n)) for n in range(50_000))))
    record(rows, 0)
    rows.take(1, 0, payload(*((7, str(n)) for n in range(50_000))))
    found = list(iter(lambda: rows.next(0.0), None))
    assert len(found) == 100_000 and len({row.id for row in found if row}) == 100_000
    assert sum(1 for _ in rows.open_ids()) == 100_000


def test_both_come_back_from_the_durable_acker() -> None:
    rows = rows_of()
    rows.take(0, 0, payload((7, "a"), (7, "b")))
    opened = record(rows, 0)
    again = rows_of()
    assert again.adopt((change.record, decode(change.row)) for change in opened if change.row) == 2
    assert [row.values for row in iter(lambda: again.next(0.0), None) if row] == [(7, "a"), (7, "b")]
    assert [change.message_id for change in opened] == ["(7,)", "(7,)"], "what people read"


@pytest.mark.parametrize(
    ("value", "type", "id"),
    [
        ([1, 2], pa.list_(pa.int64()), (1, 2)),
        ([[1], None], pa.list_(pa.list_(pa.int64())), ((1,), None)),
        (
            {"a": 1, "b": [2]},
            pa.struct({"a": pa.int64(), "b": pa.list_(pa.int64())}),
            (("a", 1), ("b", (2,))),
        ),
        ([("k", [1])], pa.map_(pa.string(), pa.list_(pa.int64())), (("k", (1,)),)),
        (None, pa.list_(pa.int64()), None),
    ],
    ids=["array", "arrays", "struct", "map", "null"],
)
def test_columns_of_many_values_make_ids(value: Any, type: pa.DataType, id: Hashable) -> None:
    """K2: the row has the values as they are; its message id, a key, has tuples. It comes back from the durable acker."""
    table = pa.table({"n": pa.array([value, value], type), "text": ["a", "b"]})
    rows = rows_of()
    rows.take(0, 0, payload_of(table))
    found = [rows.next(0.0), rows.next(0.0)]
    assert [(row.message_id, row.values) for row in found if row] == [
        ((id,), (value, "a")),
        ((id,), (value, "b")),
    ]
    again = rows_of()
    assert again.adopt((change.record, decode(change.row)) for change in record(rows, 0) if change.row) == 2
    assert again.next(0.0) == found[0]


def payload_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("nested", [False, True])
def test_nan_in_a_message_id_is_the_same_in_each_attempt(nested: bool) -> None:
    """K2: the driver counts how often such a row failed, and the worker knows it when it is given up."""
    ids = pa.array([[math.nan], [1.0]]) if nested else pa.array([math.nan, 1.0])
    table = pa.table({"n": ids, "text": ["a", "b"]})
    failed = FailedRows(2)
    for _ in range(2):
        rows = rows_of()
        rows.take(4, 0, payload_of(table))
        row = rows.next(0.0)
        assert row is not None and row.values[1] == "a"
        failed.add(4, pickle.loads(pickle.dumps({3: (row.id,)})))
    given_up = pickle.loads(pickle.dumps(failed.given_up(4)))
    assert len(given_up[3]) == 1
    assert row is not None and row.id in frozenset(map(comparable, given_up[3]))
    opened = record(rows, 4)
    assert [decode(change.row).id == row.id for change in opened if change.row] == [True, False]
    assert rows.adopt((change.record, decode(change.row)) for change in opened if change.row) == 0


def test_of_two_columns_of_one_name_the_first_makes_the_id() -> None:
    """As a join of Spark's gives them."""
    table = pa.table([pa.array([[1]]), pa.array([2])], names=["n", "n"])
    rows = rows_of()
    rows.take(0, 0, payload_of(table))
    row = rows.next(0.0)
    assert row is not None and row.message_id == ((1,),) and row.values == ([1], 2)


def test_times_within_arrays_structs_and_maps_of_a_zone_that_only_java_knows() -> None:
    """A session's time zone may be "GMT+8": the instants are the same, in UTC."""
    at = pa.timestamp("us", "GMT+8")
    types = [at, pa.list_(at), pa.struct([("at", at), ("n", pa.int64())]), pa.map_(pa.string(), pa.list_(at))]
    values: list[Any] = [60_000_000, [0, None], {"at": 0, "n": 1}, [("k", [0])]]
    arrays = [pa.array([value, None], type) for value, type in zip(values, types, strict=True)]
    rows = SourceRows(ExponentialBackoff(), ())
    rows.take(0, 0, payload_of(pa.table(arrays, names=list("abcd"))))
    zero = datetime(1970, 1, 1, tzinfo=UTC)
    first, second = rows.next(0.0), rows.next(0.0)
    assert first is not None and second is not None and first.unreadable is None
    assert first.values == (zero + timedelta(minutes=1), [zero, None], {"at": zero, "n": 1}, [("k", [zero])])
    assert second.values == (None,) * 4 and decode(encode(first)) == first


@pytest.mark.parametrize("kind", [False, True])
def test_records_of_before_keys_had_kinds_are_read(kind: bool) -> None:
    """Rows and ranges that an earlier version has written."""
    row = decode(pickle.dumps((kind, ("p", 3, 1), ("v",), 3), 5))
    assert row[1:] == (("v",), 3, None) and tuple(row.id) == ("p", 3, 1)  # type: ignore[arg-type]
    assert decode(encode(row)) == row and type(decode(encode(row)).id) is type(row.id)


class Offsets(RangeSpout):
    """Ranges (partition, start, end) of one partition, whose rows have the ids of another range's where that begins anew."""

    def __init__(self) -> None:
        super().__init__(["n"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def read(self, range: tuple[Any, ...], limit: int) -> tuple[list[Any], None]:
        partition, start, end, text = range
        return [((partition, n), (n, text)) for n in numbers_from(start, end)], None

    def size(self, range: tuple[Any, ...]) -> int:
        return int(range[2] - range[1])

    def partition_of(self, range: tuple[Any, ...]) -> Any:
        return range[0]


numbers_from = range


@pytest.mark.parametrize("recorded", [False, True])
def test_offsets_that_come_anew_are_new_rows(recorded: bool) -> None:
    """As those of a topic that was deleted and made again while messages of the old one were open."""
    rows = SourceRows(ExponentialBackoff(), (), Offsets())
    rows.add(0, 0, [("t", 0, 3, "old")])
    old = [rows.next(0.0) for _ in range(3)]
    if recorded:
        record(rows, 0)
    rows.add(1, 0, [("t", 0, 4, "new")])
    new = [rows.next(0.0) for _ in range(4)]
    assert [row and row.values for row in new] == [(n, "new") for n in range(4)]
    assert Counter(rows.open_ids()) == Counter([*(("t", n) for n in range(3)), *(("t", n) for n in range(4))])
    for row in (*old, *new):
        assert row is not None
        rows.done(row.id)
    assert list(rows.open_ids()) == []


class Orders(SourceSpout):
    """Rows are put in by the test; remembers what it is told."""

    id_columns = ("n",)

    def __init__(self) -> None:
        super().__init__(["n", "text"])
        self.acked: Counter[Hashable] = Counter()
        self.failed: Counter[Hashable] = Counter()

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def ack(self, message_id: Hashable) -> None:
        self.acked[message_id] += 1

    def fail(self, message_id: Hashable) -> None:
        self.failed[message_id] += 1


class Hold(Call):
    """Keeps each tuple until it is told what to do with it."""

    def __init__(self) -> None:
        super().__init__(None)
        self.held: list[Any] = []

    def execute(self, tup: Any) -> None:
        self.held.append(tup)


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_of_an_open_id_are_processed_and_reported_one_by_one(workers: int) -> None:
    """The first is held over its batch; the second is acked, then the first fails, and comes again alone."""
    builder = TopologyBuilder()
    builder.set_spout("orders", Orders())
    builder.set_bolt("hold", Hold()).shuffle_grouping("orders")
    rig = Rig(builder, workers)
    (spout,), (bolt,) = rig.tasks("orders"), rig.users("hold")
    for batch, text in ((0, "first"), (1, "second")):
        spout.take_rows(batch, 0, payload((7, text)))
        rig.batches(2 if batch else 1)
    assert [tup.values for tup in bolt.held] == [(7, "first"), (7, "second")]
    first, second = bolt.held
    bolt.collector.ack(second)
    rig.batches(2)
    assert spout.spout.source.acked == {(7,): 1}
    bolt.collector.fail(first)
    rig.advance(60.0, batches=3)
    assert spout.spout.source.failed == {(7,): 1}
    assert [tup.values for tup in bolt.held[2:]] == [(7, "first")]
    bolt.collector.ack(bolt.held[2])
    rig.batches(2)
    assert spout.spout.source.acked == {(7,): 2} and spout.account.pending == 0


def times(*seconds: int) -> bytes:
    """Rows of Spark's timestamps, some beyond the year 9999."""
    table = pa.table(
        {
            "n": pa.array(range(len(seconds))),
            "at": pa.array([s * 1_000_000 for s in seconds]).cast(pa.timestamp("us")),
        }
    )
    return payload_of(table)


@pytest.mark.parametrize("ids", [(), ("n",), ("at",)])
def test_a_row_that_python_can_not_hold_is_a_dead_letter_and_the_others_go_on(
    tmp_path: Path, ids: tuple[str, ...]
) -> None:
    """A timestamp of Spark's may be of the year 10000, as those that mean "never" are in some time zones."""
    source = Orders()
    builder = TopologyBuilder()
    builder.set_spout("orders", source)
    builder.set_bolt("ack", Call(lambda bolt, tup: bolt.collector.ack(tup))).shuffle_grouping("orders")
    rig = Rig(builder, 1, stormspark_dead_letter_dir=str(tmp_path))
    (spout,) = rig.tasks("orders")
    spout.spout._rows._id_columns = ids
    spout.take_rows(0, 0, times(0, 253_402_300_800, 60))
    rig.batches(2)
    assert spout.spout.source.acked.total() == 3 and spout.counters.dead_letters == 1
    (letter,) = [json.loads(line) for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert letter["row"] == [1, None]
    assert letter["reason"].startswith("column 'at' holds a timestamp[us] that Python can't hold: ")
    assert any("dead letter: column 'at'" in error for error in rig.errors)


def test_an_unreadable_row_stays_one_over_the_death_of_its_worker() -> None:
    rows = rows_of()
    rows.take(0, 0, times(253_402_300_800, 0))
    again = rows_of()
    again.adopt((change.record, decode(change.row)) for change in record(rows, 0) if change.row)
    found = [again.next(0.0), again.next(0.0)]
    assert [row and (row.unreadable is None, row.values[1]) for row in found] == [
        (False, None),
        (True, datetime(1970, 1, 1)),
    ]


def test_keys_are_read_as_their_ids() -> None:
    assert repr(RowKey(("a", 1), 4, 0, 2)) == "('a', 1)"
    assert Row(RowKey((1,), 0, 0, 0), (), 0).message_id == (1,)
