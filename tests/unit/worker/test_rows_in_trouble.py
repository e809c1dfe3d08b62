"""Whatever goes wrong, no row of a source is lost: a disk is full, a reader raises, a batch comes again in another order."""

from __future__ import annotations

import errno
import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from stormspark import TopologyBuilder, private_files
from stormspark.acker.records import AckerTime
from stormspark.api import ExponentialBackoff, Routed, SourceSpout
from stormspark.checkpoint.plain_state import plain_value
from stormspark.spi import RangeSpout
from stormspark.worker.sources.row_codec import decode, encode
from stormspark.worker.sources.rows import Row, RowKey
from tests.unit.worker.components import Call, Collect
from tests.unit.worker.rig import Rig


class Lines(SourceSpout):
    def __init__(self, *fields: str, translator: Any = None, **retry: Any) -> None:
        super().__init__(fields or ["line"], translator, ExponentialBackoff(**retry))
        self.acked: list[Any] = []

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def ack(self, message_id: Any) -> None:
        self.acked.append(message_id)


def rig_of(spout: SourceSpout, bolt: Any, workers: int = 1, **conf: Any) -> tuple[Rig, Any]:
    builder = TopologyBuilder()
    builder.set_spout("rows", spout)
    builder.set_bolt("bolt", bolt).shuffle_grouping("rows")
    rig = Rig(builder, workers, **conf)
    (task,) = rig.tasks("rows")
    return rig, task


def keeps(bolt: Any, tup: Any) -> None:
    bolt.__dict__.setdefault("kept", []).append(tup)


def kept(rig: Rig) -> list[Any]:
    (bolt,) = rig.users("bolt")
    return bolt.__dict__.get("kept", [])  # type: ignore[no-any-return]


def letters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]


def take(rig: Rig, task: Any, **columns: Any) -> None:
    """Rows as Spark sends them."""
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    task.take_rows(0, 0, bytes(sink.getvalue()))


def next_life(task: Any, **conf: Any) -> tuple[Rig, Any]:
    """The worker has died, and what the durable acker has of its rows comes to another one."""
    random = Random(1)
    changes = task.source.acker_changes(
        AckerTime(90.0, 5), lambda n: [random.getrandbits(62) for _ in range(n)]
    )
    rig, again = rig_of(Lines("n", "value"), Call(keeps), **conf)
    rig.workers[0].adopt(again.id, [(tuple(change.record), change.row) for change in changes])
    rig.batches(3)
    return rig, again


COLUMNS = {
    "timestamps with a zone": pa.array([datetime(2026, 1, n, tzinfo=UTC) for n in (1, 2, 3)]).cast(
        pa.timestamp("us", "UTC")
    ),
    "of Berlin": pa.array([1, 2, 3]).cast(pa.timestamp("us", "Europe/Berlin")),
    "of an offset": pa.array([1, 2, 3]).cast(pa.timestamp("us", "+05:30")),
    "of a zone that is Java's": pa.array([1, 2, 3]).cast(pa.timestamp("us", "GMT+8")),
    "lists of them": pa.array([[1], [2, 3], None], pa.list_(pa.timestamp("us", "UTC"))),
    "intervals": pa.array([pa.MonthDayNano([n, 2, 3]) for n in (1, 2, 3)]),
    "decimals": pa.array([Decimal("1.5")] * 3),
    "maps": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("column", COLUMNS)
def test_open_rows_outlive_their_worker_whatever_their_columns_are(column: str, tmp_path: Path) -> None:
    """E15, W3: rows that a bolt keeps come again with the same values, and none is a dead letter."""
    rig, task = rig_of(Lines("n", "value"), Call(keeps), stormspark_dead_letter_dir=str(tmp_path))
    take(rig, task, n=[1, 2, 3], value=COLUMNS[column])
    rig.batches(2)
    before = [tuple(tup.values) for tup in kept(rig)]
    assert [n for n, _ in before] == [1, 2, 3]
    rig, task = next_life(task, stormspark_dead_letter_dir=str(tmp_path))
    assert [tuple(tup.values) for tup in kept(rig)] == before
    assert letters(tmp_path) == [] and task.spout.source.acked == []


def test_an_interval_that_an_earlier_release_wrote_can_be_read() -> None:
    """E15: a journal, or a state table, names the module in which that release had its intervals."""
    written = (
        b"\x80\x05\x95X\x00\x00\x00\x00\x00\x00\x00(K\x02(K\x07\x85\x94K\x04K\x00K\x0ct\x94\x8c%stormspark.worker."
        b"sources.source_rows\x94\x8c\t_interval\x94\x93\x94K\x01K\x02K\x03\x87\x94R\x94\x85\x94K\x04Nt\x94."
    )
    row = Row(RowKey((7,), 4, 0, 12), (pa.MonthDayNano([1, 2, 3]),), 4)
    assert decode(written) == row == decode(encode(row))


def test_what_cannot_be_kept_is_a_dead_letter_that_says_so(tmp_path: Path) -> None:
    """Nothing of Spark's is such a value."""
    rig, task = rig_of(Lines("n", "value"), Call(keeps))
    rig.cluster.add_rows(task.id, 0, [(1, "fine"), (2, lambda: None)])
    rig.batches(2)
    rig, task = next_life(task, stormspark_dead_letter_dir=str(tmp_path))
    assert [tup.values[0] for tup in kept(rig)] == [1]
    (letter,) = letters(tmp_path)
    assert "could not be kept" in letter["reason"] and letter["row"][0] == "2"


def test_zones_are_read_and_nothing_else_by_their_way() -> None:
    """A pickle that lies in a folder of others makes values only."""
    import pickle

    row = Row((0, 0, 0), (datetime(2026, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")),), 0)
    assert decode(encode(row)) == row
    assert plain_value(pickle.dumps(row.values)) == row.values
    for evil in (b"cbuiltins\ngetattr\n(cbuiltins\nint\nVfrom_bytes\ntR.", pickle.dumps(ZoneInfo.no_cache)):
        with pytest.raises(pickle.UnpicklingError):
            decode(evil)


def test_a_batch_in_another_order_acks_no_row_for_another(tmp_path: Path) -> None:
    """E15: a stream that is shuffled; trees of the attempt before live on in this worker."""
    rig, task = rig_of(Lines(), Call(keeps))
    rig.cluster.add_rows(task.id, 0, [("A",), ("B",)])
    rig.batches(1)
    rig.cluster._batch -= 1
    rig.workers[0].begin_attempt("another worker is gone", rig.cluster._batch)
    rig.cluster._attempt += 1
    rig.cluster.add_rows(task.id, 0, [("B",), ("A",)])
    rig.batches(2)
    (bolt,) = rig.users("bolt")
    old_a, old_b, new_b, new_a = kept(rig)
    assert [tup.values[0] for tup in kept(rig)] == ["A", "B", "B", "A"]
    bolt.collector.ack(old_a)
    rig.batches(1)
    for tup in (old_b, new_b):
        bolt.collector.fail(tup)
    bolt.collector.ack(new_a)
    rig.batches(1)
    for _ in range(3):
        rig.advance(50.0)
    assert [tup.values[0] for tup in kept(rig)[4:]][:1] == ["B"]
    assert len(list(task.source.rows.open_ids())) == 1
    assert task.spout.source.acked == [(0, 0, 1)]


@pytest.mark.parametrize("older", [False, True], ids=["of the batch", "of the batch before"])
def test_an_outage_uses_up_no_retries(older: bool, tmp_path: Path) -> None:
    """W2, W3: what is under way between workers fails with each attempt at a batch, and no bolt has failed it."""
    rig, task = rig_of(Lines(max_retries=3), Call(keeps), 2, stormspark_dead_letter_dir=str(tmp_path))
    rig.cluster.add_rows(task.id, 0, [("A",), ("B",)])
    rig.batches(2 if older else 1)
    if not older:
        rig.cluster._batch -= 1
    for attempt in range(9):
        for worker in rig.workers:
            worker.begin_attempt("the disk is full", rig.cluster._batch)
        rig.cluster._attempt += 1
        if not older:
            rig.cluster.add_rows(task.id, 0, [("A",), ("B",)])
        rig.advance(1.0)
        rig.cluster._batch -= attempt < 8
    rig.advance(1.0, 3)
    assert letters(tmp_path) == [] and len(list(task.source.rows.open_ids())) == 2


def test_a_dead_letter_that_cannot_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K4: neither after the last retry nor where the translator raises; and the topology goes on."""
    full = [True]
    opened = private_files.open_private

    def open_private(path: Path) -> Any:
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path)

    monkeypatch.setattr("stormspark.worker.sources.letters.open_private", open_private)

    def translator(row: Any) -> Any:
        return [int(row[0])]

    def acks(bolt: Any, tup: Any) -> None:
        (bolt.collector.fail if tup.values[0] == 2 else bolt.collector.ack)(tup)

    rig, task = rig_of(
        Lines("n", translator=translator, max_retries=1), Call(acks), stormspark_dead_letter_dir=str(tmp_path)
    )
    rig.cluster.add_rows(task.id, 0, [("1",), ("2",), ("three",), ("4",)])
    for _ in range(5):
        rig.advance(10.0)
    assert (
        len(list(task.source.rows.open_ids())) == 2 and task.fatal is None and task.counters.dead_letters == 0
    )
    assert any("can't be written, so the row comes again: [Errno 28]" in error for error in rig.errors)
    full[0] = False
    for _ in range(5):
        rig.advance(10.0)
    assert sorted(letter["row"][0] for letter in letters(tmp_path)) == ["2", "three"]
    assert task.counters.dead_letters == 2 and list(task.source.rows.open_ids()) == []


class NoTextError(Exception):
    def __str__(self) -> str:
        raise ValueError


def _raises(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (lambda row: row[0].split(";"), "wrong number of fields"),
        (lambda row: Routed([1, 2], "elsewhere"), "Unknown stream ID 'elsewhere'"),
        (lambda row: 7, "got 7 of type int"),
        (lambda row: _raises(NoTextError()), "NoTextError (its message can't be made: ValueError)"),
        (lambda row: sys.exit(1), "SystemExit: 1"),
    ],
    ids=["too few values", "no such stream", "no values", "an error without text", "sys.exit"],
)
def test_a_row_of_which_no_tuple_can_be_made_is_a_dead_letter(what: Any, reason: str, tmp_path: Path) -> None:
    """A12, B9, K4: the others go on, and the topology does not stop."""
    spout = Lines("a", "b", translator=lambda row: what(row) if row[0] == "bad" else row[0].split(","))
    rig, task = rig_of(spout, Collect(), stormspark_dead_letter_dir=str(tmp_path))
    rig.cluster.add_rows(task.id, 0, [("1,x",), ("bad",), ("2,y",)])
    rig.advance(20.0, 5)
    (bolt,) = rig.users("bolt")
    assert [seen[1] for seen in bolt.seen] == ["1", "2"]
    (letter,) = letters(tmp_path)
    assert reason in letter["reason"] and letter["row"] == ["bad"]
    assert task.fatal is None and list(task.source.rows.open_ids()) == []


raised: list[str] = []


class Ranges(RangeSpout):
    """Ranges of numbers; partition "bad" can't be read at first."""

    low_marks_every = 1

    def __init__(self) -> None:
        super().__init__(["n"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def read(self, part: Any, limit: int) -> Any:
        partition, start, end = part
        if partition == "bad" and len(raised) < 3:
            raised.append(partition)
            msg = "too many open files"
            raise RuntimeError(msg)
        return [((partition, n), (n,)) for n in range(start, end)], None

    def size(self, part: Any) -> int:
        return int(part[2] - part[1])

    def partition_of(self, part: Any) -> Any:
        return part[0]

    def low_marks(self, ids: Any, ranges: Any) -> Any:
        return {"open": len(list(ids)), "unread": len(list(ranges))}


def test_a_range_that_cannot_be_read_stays() -> None:
    """A reader that raises costs a restart of the spout and no message; low marks do not pass what is unread."""
    raised.clear()
    rig, task = rig_of(Ranges(), Collect())
    rig.cluster.add_rows(task.id, 0, [("bad", 0, 5), ("bad", 5, 9), ("good", 100, 103)])
    for _ in range(6):
        rig.advance(50.0)
    (bolt,) = rig.users("bolt")
    assert sorted(seen[1] for seen in bolt.seen) == [*range(9), 100, 101, 102]
    assert task.counters.restarts == 3 and task.fatal is None and task.source.rows.open == 0


class NoSize:
    def __sizeof__(self) -> int:
        raise ValueError


class Exits:
    def __reduce__(self) -> Any:
        raise SystemExit


class NoReason:
    def __reduce__(self) -> Any:
        raise NoTextError


@pytest.mark.parametrize(("kind", "lost"), [(NoSize, 0), (Exits, 1), (NoReason, 1)])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_value_whose_class_raises_ends_no_worker(kind: type, lost: int, workers: int) -> None:
    """C8: its tree fails where it has to be pickled, and all others go on."""

    def emits(bolt: Any, tup: Any) -> None:
        n = tup.values[0]
        bolt.collector.emit((kind() if n == 7 else n,), anchors=[tup])
        bolt.collector.ack(tup)

    builder = TopologyBuilder()
    builder.set_spout("rows", Lines("n", max_retries=0))
    builder.set_bolt("bolt", Call(emits)).shuffle_grouping("rows")
    builder.set_bolt("end", Collect()).shuffle_grouping("bolt")
    rig = Rig(builder, workers)
    (task,) = rig.tasks("rows")
    rig.cluster.add_rows(task.id, 0, [(n,) for n in range(20)])
    rig.advance(10.0, 8)
    (end,) = rig.users("end")
    here = rig.tasks("bolt")[0]._host is rig.tasks("end")[0]._host
    assert len(end.seen) == 20 - (0 if here else lost)
    assert list(task.source.rows.open_ids()) == []


def test_a_dead_letter_names_the_task_of_the_bolt_as_logs_do(tmp_path: Path) -> None:
    """By its index, and not by its id: `bolt-0.log` is its log, and its failures are those of ``bolt[0]``."""
    spout = Lines("n", max_retries=0)
    rig, task = rig_of(
        spout, Call(lambda bolt, tup: bolt.collector.fail(tup)), stormspark_dead_letter_dir=str(tmp_path)
    )
    rig.cluster.add_rows(task.id, 0, [(1,)])
    rig.advance(10.0, 2)
    (letter,) = letters(tmp_path)
    assert letter["reason"].startswith("given up after its last retry: failed by a bolt: bolt[0]")
