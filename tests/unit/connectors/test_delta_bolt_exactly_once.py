"""DeltaBolt where batches are transactions: each row once, whatever dies, refuses, or comes again."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from stormspark import Bolt, Fields, Topology, TopologyBuilder
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.connectors import DeltaBolt
from stormspark.connectors.delta_files import staged
from stormspark.connectors.delta_table import SinkTable
from stormspark.errors import ComponentError
from stormspark.testing import RecordingCollector, make_context, make_tuple
from tests.unit.connectors.exactly_once_components import Numbers
from tests.unit.worker.durable_workers import DurableWorkers

pytestmark = pytest.mark.slow  # each test writes tables

SCHEMA = pa.schema([("key", pa.string()), ("n", pa.int64())])


class Faulty(Bolt):
    """Passes tuples on, and raises in the first attempts at some batches, when some of them are passed on already."""

    raises: ClassVar[list[int]] = []

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        if tup["n"] in Faulty.raises:
            Faulty.raises.remove(tup["n"])
            raise RuntimeError("a fault")
        self.collector.emit(tup.values, anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("key", "n"))


def keyed(n: int) -> tuple[str, int]:
    return f"k{n % 3}", n


def topology(bolt: DeltaBolt, row: Callable[[int], Any] = keyed, tasks: int = 2) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(row, ("key", "n")))
    builder.set_bolt("faulty", Faulty()).shuffle_grouping("numbers")
    builder.set_bolt("sink", bolt, tasks).fields_grouping("faulty", Fields("key"))
    return builder.create_topology("to-delta")


class Lives:
    """Drivers and workers one after another on one checkpoint."""

    def __init__(self, folder: Path, topology: Topology, workers: int = 2) -> None:
        self.folder, self.topology, self.workers = folder, topology, workers
        self.generation = -1
        self.batches = 0
        self.begin()

    def begin(self) -> None:
        """Those before are gone, as if by kill -9."""
        self.generation += 1
        conf = {"topology.workers": self.workers, "topology.acker.executors": 1}
        self.now = DurableWorkers(self.topology, self.folder, conf, self.generation)

    def batch(self, times: int = 1) -> list[str]:
        """Run batches; returns the errors that were told."""
        errors = []
        for _ in range(times):
            reports = self.now.run_batch()
            self.batches += 1
            errors += [error.text for report in reports for error in report.errors]
        return errors


def opened(table: DeltaBolt) -> tuple[RecordingCollector, DeltaBolt]:
    """The one task of a topology whose batches are transactions."""
    collector = RecordingCollector(table)
    table.init_state(KeyValueStore())
    table.prepare({}, make_context("sink", table), collector)
    return collector, table


def test_a_table_that_can_not_be_made_because_the_storage_is_away_fails_no_tuple(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C42, C44: the batch fails, and its tuples do not try one after another."""
    tries: list[SinkTable] = []

    def away(self: SinkTable, tuples: Any = ()) -> None:
        tries.append(self)
        raise OSError("the storage is away")

    monkeypatch.setattr(SinkTable, "open_or_make", away)
    collector, bolt = opened(DeltaBolt(tmp_path / "t", schema=SCHEMA))
    for n in range(3):
        bolt.execute(make_tuple(keyed(n), fields=["key", "n"]))
    assert len(collector.acked) == 3 and not collector.failed and len(tries) == 1
    with pytest.raises(OSError, match="the storage is away"):
        bolt.pre_save(0)


def rows(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    table = deltalake.DeltaTable(path).to_pyarrow_table()
    table = table.select(list(columns)) if columns else table
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def numbers_in(path: Path) -> list[int]:
    return sorted(n for (n,) in rows(path, "n"))


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["inferred", "given"])
def test_each_row_is_there_once_after_crashes_and_batches_that_come_again(
    tmp_path: Path, schema: pa.Schema | None
) -> None:
    """C42, C44: a life that ends between a batch's commit and its delivery is followed by one that delivers it."""
    sink = tmp_path / "sink"
    Faulty.raises = [12, 33]
    lives = Lives(tmp_path / "state", topology(DeltaBolt(sink, schema=schema)))
    choice = random.Random(4)
    for _ in range(15):
        lives.batch()
        if choice.random() < 0.5:
            lives.begin()
    lives.batch()
    lives.now.close()
    assert numbers_in(sink) == list(range(5 * lives.batches)) and not Faulty.raises


def test_what_is_prepared_and_not_committed_is_never_in_the_table(tmp_path: Path) -> None:
    """C44: files of an attempt that was taken back are beside the table, and no part of it."""
    sink = tmp_path / "sink"
    Faulty.raises = []
    lives = Lives(tmp_path / "state", topology(DeltaBolt(sink), tasks=1))
    lives.batch()
    lives.now.commits.commit = _dies  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        lives.now.run_batch()
    assert numbers_in(sink) == list(range(5))
    assert len(list(sink.glob("*.parquet"))) == 2
    lives.begin()
    lives.batch(2)
    assert numbers_in(sink) == list(range(10)), "the last batch is delivered at the beginning of the next one"
    lives.now.close()
    assert numbers_in(sink) == list(range(15))


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_table_that_refuses_for_some_batches_gets_all_of_them_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C42: what post_save raises is told, batches go on, and nothing is lost or out of order."""
    sink = tmp_path / "sink"
    Faulty.raises = []
    commit, refusals, order = SinkTable.commit_staged, [12, 1, 0], []

    def refusing(self: SinkTable, staged: Any, version: int) -> None:
        if refusals[0]:
            refusals[0] -= 1
            raise OSError("no space left")
        commit(self, staged, version)
        order.append(version)
        if refusals[1]:
            refusals[1] -= 1
            raise OSError("the answer is lost")

    monkeypatch.setattr(SinkTable, "commit_staged", refusing)
    monkeypatch.setattr("stormspark.connectors.outbox._FIRST_PAUSE", 0.0)
    lives = Lives(tmp_path / "state", topology(DeltaBolt(sink), tasks=1))
    errors = lives.batch(10)
    lives.now.close()
    assert any("no space left" in error for error in errors)
    assert order == sorted(order) and numbers_in(sink) == list(range(50))
    assert deltalake.DeltaTable(sink).version() == 10  # the first one made it


def test_a_new_checkpoint_on_the_same_table_begins_anew(tmp_path: Path) -> None:
    """C42: batches are numbered from 0 again, and none of them is taken for one that is there."""
    sink = tmp_path / "sink"
    Faulty.raises = []
    for state in "one", "other":
        lives = Lives(tmp_path / state, topology(DeltaBolt(sink)))
        lives.batch(3)
        lives.now.close()
    assert numbers_in(sink) == sorted([*range(15), *range(15)])


def test_of_two_that_deliver_the_same_batch_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C44: a process that was thought dead delivers what its successor has delivered just now."""
    sink = str(tmp_path / "sink")
    both = [SinkTable(sink, schema=SCHEMA) for _ in range(2)]
    for table in both:
        table.application = "topology/sink/name"
        table.open_or_make()
    waiting = both[0].stage(pa.table({"key": ["a"], "n": [1]}, schema=SCHEMA))
    both[0].commit_staged(waiting, 0)
    monkeypatch.setattr(both[1], "open_or_make", lambda: None)  # it has looked before that
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        both[1].commit_staged(waiting, 0)
    assert rows(tmp_path / "sink") == [("a", 1)]


def test_a_tuple_that_does_not_fit_fails_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """C42, B10: also in the batch that makes the table of its first tuples, in its second attempt."""
    Faulty.raises = []
    for schema in None, SCHEMA:
        sink = tmp_path / f"sink-{schema is None}"
        lives = Lives(
            tmp_path / f"state-{schema is None}", topology(DeltaBolt(sink, schema=schema), _Once([2, 7]))
        )
        lives.batch(4)
        emitted = lives.now.state("numbers")["n"]
        lives.now.close()
        assert emitted > 8
        assert numbers_in(sink) == [n for n in range(emitted) if n not in (2, 7)]
        assert f"does not fit the table {sink}: field 'n' is 'no number'" in caplog.text


class _Once:
    """Rows that do not fit, until they have failed twice: then the user lets them go."""

    seen: ClassVar[Counter[int]] = Counter()

    def __init__(self, bad: list[int]) -> None:
        self.bad = bad
        _Once.seen.clear()

    def __call__(self, n: int) -> Any:
        if n not in self.bad:
            return "k", n
        _Once.seen[n] += 1
        return ("k", "no number") if _Once.seen[n] < 3 else None


def test_partitions_types_and_statistics_are_those_of_an_ordinary_append(tmp_path: Path) -> None:
    """Readers find rows by partitions and by statistics, as they do those that delta-rs has written."""
    at = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    schema = pa.schema(
        [("key", pa.string()), ("n", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")),
         ("price", pa.decimal128(6, 2)), ("x", pa.float64()), ("yes", pa.bool_()), ("list", pa.list_(pa.int64()))]
    )  # fmt: skip
    values = [
        ("a", 1, date(2024, 1, 2), at, Decimal("1.50"), 0.5, True, [1, 2]),
        ("b", None, None, at.replace(year=2023), None, float("nan"), False, None),
        ("x" * 50, 3, date(2024, 1, 2), None, Decimal("2.25"), -1.5, None, []),
    ]
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema=schema)
    for partition_by in [[], ["day"], ["at", "yes"], ["price", "key"]]:
        ours, theirs = (str(tmp_path / f"{who}-{'-'.join(partition_by)}") for who in ("ours", "theirs"))
        deltalake.write_deltalake(theirs, table, partition_by=partition_by or None)
        sink = SinkTable(ours, schema=schema, partition_by=partition_by)
        sink.open_or_make()
        sink.commit_staged(sink.stage(table), 0)
        found, expected = (deltalake.DeltaTable(path) for path in (ours, theirs))
        assert rows(Path(ours)).__repr__() == rows(Path(theirs)).__repr__()
        actions, wanted = (_actions(table, partition_by) for table in (found, expected))
        assert [row[0] for row in actions] == [row[0] for row in wanted]
        for (_, mine), (_, other) in zip(actions, wanted, strict=True):
            assert {name: mine[name] for name in mine} == {name: other.get(name) for name in mine}
        dataset = found.to_pyarrow_dataset()
        assert dataset.count_rows(filter=pc.field("n") == 3) == 1
        assert dataset.count_rows(filter=pc.field("at") >= at) == 1


def _actions(table: deltalake.DeltaTable, partition_by: list[str]) -> list[tuple[Any, dict[str, Any]]]:
    """Per file: its partition, and the statistics that say something."""
    found = []
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        partition = tuple(row.get(f"partition.{name}") for name in partition_by)
        statistics = {
            name: value
            for name, value in row.items()
            if name.startswith(("num_records", "null_count.", "min.", "max."))
            and value is not None
            and name
            != "max.at"  # delta-rs cuts what is below a millisecond off, and readers then miss the row
        }
        found.append((partition, statistics))
    return sorted(found, key=repr)


@pytest.mark.parametrize(
    ("properties", "what"),
    [({"delta.constraints.positive": "n > 0"}, "delta.constraints.positive")],
)
def test_a_table_that_checks_rows_itself_is_refused(
    tmp_path: Path, properties: dict[str, str], what: str
) -> None:
    """J5: what it refuses could not be failed any more, as its batch is committed."""
    sink = tmp_path / "sink"
    table = deltalake.DeltaTable.create(sink, SCHEMA)
    table.alter.add_constraint({name.rpartition(".")[2]: rule for name, rule in properties.items()})
    with pytest.raises(ComponentError, match=f"{what}.*check rows in a bolt"):
        Lives(tmp_path / "state", topology(DeltaBolt(sink)))


@pytest.mark.parametrize(
    ("fields", "partitions", "what"),
    [
        ([("key", pa.string()), ("n", pa.int64())], ["key", "n"], "only partition columns"),
        ([("key", pa.binary()), ("n", pa.int64())], ["key"], "the partition column 'key' of bytes"),
    ],
)
def test_partitions_that_its_files_cannot_have_are_refused(
    tmp_path: Path, fields: list[Any], partitions: list[str], what: str
) -> None:
    """C42, J5: rows would be lost, or no batch ever committed."""
    sink = tmp_path / "sink"
    deltalake.DeltaTable.create(sink, pa.schema(fields), partition_by=partitions)
    with pytest.raises(ComponentError, match=f"{what}.*Change its partitions"):
        Lives(tmp_path / "state", topology(DeltaBolt(sink)))


def test_a_table_that_was_changed_while_rows_waited_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C42: rows whose columns are gone wait until they are there again."""
    sink = tmp_path / "sink"
    monkeypatch.setattr("stormspark.connectors.outbox._FIRST_PAUSE", 0.0)
    Faulty.raises = []
    lives = Lives(tmp_path / "state", topology(DeltaBolt(sink, schema=SCHEMA), tasks=1))
    lives.batch()
    other = pa.schema([("key", pa.string()), ("n", pa.string())])
    deltalake.write_deltalake(sink, other.empty_table(), mode="overwrite", schema_mode="overwrite")
    errors = lives.batch()  # its tuples fitted, as far as the task knew
    assert any("column 'n' was int64 and is string now" in error for error in errors)
    deltalake.write_deltalake(sink, SCHEMA.empty_table(), mode="overwrite", schema_mode="overwrite")
    lives.batch()
    lives.now.close()
    assert numbers_in(sink) == list(range(15))


def test_a_table_that_is_partitioned_anew_gets_no_row_without_its_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C42: neither those that waited for the old one, nor those that come, with one's partitions or another's."""
    sink = tmp_path / "sink"
    monkeypatch.setattr("stormspark.connectors.outbox._FIRST_PAUSE", 0.0)
    Faulty.raises = []
    lives = Lives(tmp_path / "state", topology(DeltaBolt(sink, schema=SCHEMA), tasks=1))
    lives.batch()

    def partition_anew(by: list[str]) -> None:
        there = deltalake.DeltaTable(sink).to_pyarrow_table()
        deltalake.write_deltalake(sink, there, mode="overwrite", partition_by=by, schema_mode="overwrite")

    stage = SinkTable.stage

    def meanwhile(self: SinkTable, rows: pa.Table) -> Any:
        try:
            return stage(self, rows)
        finally:
            monkeypatch.setattr(SinkTable, "stage", stage)
            partition_anew(["key"])

    monkeypatch.setattr(SinkTable, "stage", meanwhile)
    assert not lives.batch(2)
    lives.begin()
    partition_anew(["n"])
    assert not lives.batch(2)
    partition_anew([])
    assert not lives.batch(2)
    lives.now.close()
    assert rows(sink, "key", "n") == sorted((keyed(n) for n in range(5 * lives.batches)), key=repr)


def test_rows_that_are_delivered_again_leave_what_the_table_was_before(tmp_path: Path) -> None:
    """C42: a table that was partitioned anew in between can still be brought back."""
    sink = str(tmp_path / "sink")
    table = SinkTable(sink, schema=SCHEMA)
    table.application = "topology/sink/name"
    table.open_or_make()
    waiting = table.stage(pa.table({"key": ["a"], "n": [1]}, schema=SCHEMA))
    table.commit_staged(waiting, 0)
    there = deltalake.DeltaTable(sink)
    deltalake.write_deltalake(
        sink, there.to_pyarrow_table(), mode="overwrite", partition_by=["key"], schema_mode="overwrite"
    )
    table.commit_staged(waiting, 0)
    assert deltalake.DeltaTable(sink, version=there.version()).to_pyarrow_table().to_pylist() == [
        {"key": "a", "n": 1}
    ]
    assert rows(tmp_path / "sink") == [("a", 1)]


@pytest.mark.parametrize(
    "by", ["key", "n", "day", "at", "there", "price", "x", "yes"], ids=lambda by: f"by-{by}"
)
def test_staged_rows_are_read_with_their_partitions(tmp_path: Path, by: str) -> None:
    """As where a table is partitioned anew while they wait."""
    at = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
    schema = pa.schema(
        [("key", pa.string()), ("n", pa.int8()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC")),
         ("there", pa.timestamp("us")), ("price", pa.decimal128(6, 2)), ("x", pa.float64()), ("yes", pa.bool_())]
    )  # fmt: skip
    values = [
        ("a b/%é", -1, date(1, 1, 2), at, at.replace(tzinfo=None), Decimal("1.50"), 1e-7, True),
        (None, None, None, None, None, None, None, None),
        ("b", 2, date(2024, 1, 2), at.replace(year=1), datetime(1969, 1, 1), Decimal(0), -0.1, False),
    ]
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema=schema)
    found = staged(str(tmp_path), None, table, [by]).read(str(tmp_path), None)
    assert sorted(found.to_pylist(), key=repr) == sorted(table.to_pylist(), key=repr)


_BEYOND = 253_402_300_800 * 1_000_000  # the year 10000, in microseconds


def test_values_that_readers_can_not_have_in_a_partition_are_in_the_table_but_never_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """C42: times beyond the year 9999, which a table has and Python has not; decimals that delta-rs reads wrongly."""
    Faulty.raises = []
    schema = pa.schema(
        [
            ("key", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()),
            ("d", pa.decimal128(6, 2)),
        ]
    )
    values: list[Any] = [("a", 0, 0, 0), ("b", _BEYOND, 2_932_897, Decimal("-1.5")), ("c", None, None, None)]
    for partition_by in [[], ["at"], ["day"], ["d"]]:
        name = "-".join(["by", *partition_by])
        sink = tmp_path / name
        builder = TopologyBuilder()
        builder.set_spout("numbers", Numbers(_Until(values), ("key", "at", "day", "d"), 3))
        builder.set_bolt("sink", DeltaBolt(sink, schema=schema, partition_by=partition_by)).shuffle_grouping(
            "numbers"
        )
        lives = Lives(tmp_path / f"state-{name}", builder.create_topology("beyond"))
        lives.batch(5)
        lives.now.close()
        found = deltalake.DeltaTable(sink).to_pyarrow_table().column("key").to_pylist()
        assert sorted(found) == (["a", "c"] if partition_by else ["a", "b", "c"])
        assert ("9999, but the table" in caplog.text) == (partition_by in (["at"], ["day"]))
        assert ("in a partition, but the table" in caplog.text) == (partition_by == ["d"])
        caplog.clear()


class _Until:
    """Rows, of which the user lets the second one go when it has come three times."""

    seen: ClassVar[Counter[int]] = Counter()

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        _Until.seen.clear()

    def __call__(self, n: int) -> Any:
        _Until.seen[n] += 1
        if n >= len(self.values) or (n == 1 and _Until.seen[n] > 2):
            return None
        return self.values[n]


@pytest.mark.parametrize("merge_on", [[], ["key"]])
@pytest.mark.parametrize("what", ["gone", "cut"])
def test_files_that_are_gone_are_reported_and_never_part_of_the_table(
    tmp_path: Path, merge_on: list[str], what: str
) -> None:
    """C42: as after a VACUUM without a retention, or where a table was removed and made again."""
    sink = SinkTable(str(tmp_path / "sink"), schema=SCHEMA, merge_on=merge_on)
    sink.application = "topology/sink/name"
    sink.open_or_make()
    waiting = sink.stage(pa.table({"key": ["a"], "n": [1]}, schema=SCHEMA))
    (path,) = (tmp_path / "sink").glob("*.parquet")
    data = path.read_bytes()
    path.unlink()
    if what == "cut":
        path.write_bytes(data[:-1])
    with pytest.raises(
        ValueError, match=rf"the file {path.name}, with rows of batch 0 .* is gone or changed"
    ):
        sink.commit_staged(waiting, 0)
    path.write_bytes(data)
    sink.commit_staged(waiting, 0)
    assert rows(tmp_path / "sink") == [("a", 1)]


def test_a_table_that_begins_to_check_rows_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """J5: a constraint that is made while the topology runs; its rows come when it is dropped."""
    sink = tmp_path / "sink"
    monkeypatch.setattr("stormspark.connectors.outbox._FIRST_PAUSE", 0.0)
    Faulty.raises = []
    lives = Lives(tmp_path / "state", topology(DeltaBolt(sink, schema=SCHEMA), tasks=1))
    lives.batch(2)
    deltalake.DeltaTable(sink).alter.add_constraint({"small": "n < 7"})
    errors = lives.batch()
    assert any("has delta.constraints.small" in error for error in errors)
    assert numbers_in(sink) == list(range(5))
    deltalake.DeltaTable(sink).alter.drop_constraint("small")
    lives.batch()
    lives.now.close()
    assert numbers_in(sink) == list(range(20))


def test_tables_that_are_never_merged_into_and_structs_that_are_never_null_inside_are_refused(
    tmp_path: Path,
) -> None:
    """Append-only tables are rejected for merges, and a NOT NULL inside a nested struct always is (C42, J5)."""
    appended = deltalake.DeltaTable.create(
        tmp_path / "appended", SCHEMA, configuration={"delta.appendOnly": "true"}
    )
    bolt = DeltaBolt(tmp_path / "appended", merge_on=["key"])
    with pytest.raises(ComponentError, match=r"has delta\.appendOnly, but merge_on replaces rows, but"):
        Lives(tmp_path / "state", topology(bolt))
    Lives(tmp_path / "other", topology(DeltaBolt(tmp_path / "appended"))).now.close()
    assert appended.version() == 0
    inside = pa.struct([pa.field("a", pa.struct([pa.field("b", pa.int64(), nullable=False)]))])
    deltalake.DeltaTable.create(tmp_path / "inside", pa.schema([("key", pa.string()), ("n", inside)]))
    with pytest.raises(ComponentError, match=r"has NOT NULL in n\.a\.b, but"):
        Lives(tmp_path / "third", topology(DeltaBolt(tmp_path / "inside")))


@pytest.mark.parametrize("merge_on", [[], ["key"]])
def test_a_table_that_gets_a_column_goes_on(tmp_path: Path, merge_on: list[str]) -> None:
    """C42: also with rows that waited for it, and where it is partitioned by the column at once."""
    sink = tmp_path / "sink"
    _, table = opened(DeltaBolt(sink, schema=SCHEMA, merge_on=merge_on))

    def partition_by(name: str, kind: pa.DataType) -> None:
        there = deltalake.DeltaTable(sink).to_pyarrow_table()
        there = there.append_column(name, pa.nulls(there.num_rows, kind))
        deltalake.write_deltalake(sink, there, mode="overwrite", partition_by=[name], schema_mode="overwrite")

    extra = deltalake.Field("extra", deltalake.schema.PrimitiveType("integer"))
    for batch in range(3):
        table.execute(make_tuple((f"k{batch}", batch), fields=["key", "n"]))
        table.pre_save(batch)
        if batch == 0:
            deltalake.DeltaTable(sink).alter.add_columns([extra])
        elif batch == 1:
            partition_by("more", pa.string())
        table.post_save(batch)
    assert rows(sink) == [(f"k{n}", n, None, None) for n in range(3)]


@pytest.mark.parametrize("merge_on", [[], ["key"]])
def test_a_column_that_may_not_be_null_any_more_gets_no_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merge_on: list[str]
) -> None:
    """C42: nobody else looks at files that become the table's as they are."""
    sink = tmp_path / "sink"
    monkeypatch.setattr("stormspark.connectors.outbox._FIRST_PAUSE", 0.0)
    _, table = opened(DeltaBolt(sink, schema=SCHEMA, merge_on=merge_on))

    def make_of(schema: pa.Schema) -> None:
        there = deltalake.DeltaTable(sink).to_pyarrow_table().cast(schema)
        deltalake.write_deltalake(sink, there, mode="overwrite", schema_mode="overwrite")

    for batch, n in enumerate((7, None)):
        table.execute(make_tuple((f"k{batch}", n), fields=["key", "n"]))
        table.pre_save(batch)
        make_of(pa.schema([SCHEMA.field("key"), pa.field("n", pa.int64(), nullable=False)]))
        if n is None:
            with pytest.raises(ValueError, match="column 'n' must not be null any more, but is null in some"):
                table.post_save(batch)
            make_of(SCHEMA)
        table.post_save(batch)
    assert rows(sink) == [("k0", 7), ("k1", None)]


@pytest.mark.parametrize("partitions", [(["key"], ["n"]), (["key"], []), ([], ["n"])])
def test_a_table_that_is_made_anew_with_as_many_versions_is_looked_at(
    tmp_path: Path, partitions: tuple[list[str], list[str]]
) -> None:
    """C42: delta-rs takes it for the old one, so its rows had no value where it is partitioned otherwise."""
    sink = tmp_path / "sink"
    deltalake.DeltaTable.create(sink, SCHEMA, partition_by=partitions[0])
    _, table = opened(DeltaBolt(sink))
    for batch in range(4):
        if batch == 2:
            shutil.rmtree(sink)
            deltalake.DeltaTable.create(sink, SCHEMA, partition_by=partitions[1])
            for _ in range(2):
                deltalake.write_deltalake(sink, pa.table({"key": ["other"], "n": [-1]}), mode="append")
        table.execute(make_tuple((f"k{batch}", batch), fields=["key", "n"]))
        table.pre_save(batch)
        table.post_save(batch)
    assert rows(sink, "key", "n") == [("k2", 2), ("k3", 3), ("other", -1), ("other", -1)]


def test_rows_with_none_where_the_table_has_none_inside_fail_alone(tmp_path: Path) -> None:
    """B10: no file can have them, so no batch that had one was committed."""
    lists = pa.list_(pa.field("element", pa.int64(), nullable=False))
    maps = pa.map_(pa.string(), pa.field("value", pa.struct([pa.field("a", pa.int64(), nullable=False)])))
    schema = pa.schema([("key", lists), ("n", maps)])
    collector, table = opened(DeltaBolt(tmp_path / "sink", schema=schema))
    good: list[Any] = [([1], [("x", {"a": 1})]), ([], []), (None, [("x", None)])]
    for values in [*good, ([1, None], None), (None, [("x", {"a": None})])]:
        table.execute(make_tuple(values, fields=["key", "n"]))
    assert len(collector.acked) == 3
    assert [", which contains None where " in str(reason) for reason in collector.reasons] == [True, True]
    table.pre_save(0)
    table.post_save(0)
    assert rows(tmp_path / "sink", "key") == [(None,), ([1],), ([],)]


def test_a_text_that_is_null_in_a_partition_fails_alone_where_that_may_not_be(tmp_path: Path) -> None:
    """B10: Delta has no empty text there. One such row, and nobody could read the table any more."""
    schema = pa.schema([pa.field("key", pa.string(), nullable=False), ("n", pa.int64())])
    for merge_on in [], ["n"]:
        sink = tmp_path / f"sink-{len(merge_on)}"
        collector, table = opened(DeltaBolt(sink, schema=schema, partition_by=["key"], merge_on=merge_on))
        for values in ("", 1), ("a", 2):
            table.execute(make_tuple(values, fields=["key", "n"]))
        assert collector.reasons == [
            f"does not fit the table {sink}: field 'key' is '', null in a partition, which must not be null, but the table is "
            f"partitioned by it"
        ]
        table.pre_save(0)
        table.post_save(0)
        assert rows(sink) == [("a", 2)]


def test_a_value_that_can_not_be_shown_fails_alone(tmp_path: Path) -> None:
    """B10: Python writes no number of more than 4300 digits."""
    collector, table = opened(DeltaBolt(tmp_path / "sink", schema=SCHEMA))
    table.execute(make_tuple(("a", 10**5000), fields=["key", "n"]))
    assert str(collector.reasons[0]).endswith(
        "field 'n' is a int that can't be shown (ValueError), but the column's type is int64"
    )


# -- merge -------------------------------------------------------------------------------------------------------


def test_merged_rows_are_those_of_a_dictionary(tmp_path: Path) -> None:
    """C42: the newest row of a key stays, one that is deleted goes, through crashes and batches that come again."""
    sink = tmp_path / "sink"
    choice = random.Random(3)
    values = [(f"k{choice.randrange(12)}", n, choice.random() < 0.3) for n in range(400)]
    Faulty.raises = []
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(_Listed(values), ("key", "n", "gone"), 20))
    bolt = DeltaBolt(sink, schema=SCHEMA, merge_on=["key"], delete_on="gone")
    builder.set_bolt("sink", bolt, 2).fields_grouping("numbers", Fields("key"))
    lives = Lives(tmp_path / "state", builder.create_topology("merging"))
    expected: dict[str, int] = {}
    for _ in range(12):
        lives.batch()
        if choice.random() < 0.4:
            lives.begin()
    lives.now.close()
    for key, n, gone in values[: 20 * lives.batches]:
        expected.pop(key, None)
        if not gone:
            expected[key] = n
    assert rows(sink, "key", "n") == sorted(expected.items())
    assert set(deltalake.DeltaTable(sink).to_pyarrow_table().column_names) == {"key", "n"}


class _Listed:
    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __call__(self, n: int) -> Any:
        return self.values[n]


def test_keys_that_are_not_a_number_are_one(tmp_path: Path) -> None:
    """C42: two of one batch were two rows for one of the table, which no merge takes, and all behind them waited for ever."""
    schema = pa.schema([("key", pa.float64()), ("n", pa.int64())])
    _, table = opened(DeltaBolt(tmp_path / "sink", schema=schema, merge_on="key"))
    for batch in range(2):
        for n in range(3):
            table.execute(make_tuple((float("nan"), 10 * batch + n), fields=["key", "n"]))
            table.execute(make_tuple((0.5, 10 * batch + n), fields=["key", "n"]))
        table.pre_save(batch)
        table.post_save(batch)
    assert numbers_in(tmp_path / "sink") == [12, 12]


@pytest.mark.parametrize(
    ("kind", "beyond"), [(pa.timestamp("us", "UTC"), 10**18), (pa.date32(), 2_932_897)], ids=["time", "date"]
)
def test_a_key_that_is_a_time_python_does_not_have_fails_alone(
    tmp_path: Path, kind: pa.DataType, beyond: int
) -> None:
    """C42, B10: no batch that had one was committed."""
    schema = pa.schema([("key", kind), ("n", pa.int64())])
    collector, table = opened(DeltaBolt(tmp_path / "sink", schema=schema, merge_on="key"))
    for n, key in enumerate((0, beyond, 1)):
        table.execute(make_tuple((key, n), fields=["key", "n"]))
    assert collector.reasons == [
        f"does not fit the table {tmp_path / 'sink'}: field 'key' is {beyond}, beyond the years 1 to 9999, and it is part of "
        f"the key"
    ]
    table.pre_save(0)
    table.post_save(0)
    assert numbers_in(tmp_path / "sink") == [0, 2]


def test_a_key_that_is_none_fails_alone(tmp_path: Path) -> None:
    """A row whose key is None fails alone, and the other rows are written (C42, B10)."""
    collector, table = opened(DeltaBolt(tmp_path / "sink", schema=SCHEMA, merge_on="key"))
    for values in (None, 1), ("a", 2):
        table.execute(make_tuple(values, fields=["key", "n"]))
    assert collector.reasons == [
        f"does not fit the table {tmp_path / 'sink'}: field 'key' is None, and it is part of the key"
    ]
    assert [tup.values for tup in collector.acked] == [("a", 2)]
    table.pre_save(0)
    table.post_save(0)
    assert rows(tmp_path / "sink") == [("a", 2)]
