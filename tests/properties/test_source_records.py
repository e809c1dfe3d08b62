"""Rows of a source and the durable acker's records of them: whatever dies, and whenever, nothing is lost.

The acker query is a model here, a dict of XORs; what the driver writes for it is written by the driver's own code.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormspark.acker.records import AckerTime, Record
from stormspark.api import ExponentialBackoff
from stormspark.checkpoint.acker_journal import AckerJournal
from stormspark.spark.acker_writer import AckerWriter
from stormspark.spi import RangeSpout
from stormspark.worker.sources.acker_log import ACKER_SCHEMA, AckerLog, change_table
from stormspark.worker.sources.row_codec import decode, encode
from stormspark.worker.sources.rows import Row
from stormspark.worker.sources.source_rows import SourceRows

DELAY = 8.0


class Numbers(RangeSpout):
    """Ranges (partition, start, end); a row is its number."""

    away = False

    def __init__(self) -> None:
        super().__init__(["n"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def read(self, range: tuple[Any, ...], limit: int) -> tuple[list[Any], tuple[Any, ...] | None]:
        partition, start, end = range
        if self.away:
            return [], range
        upto = min(end, start + min(limit, 2))
        rows = [((partition, n), (n,)) for n in builtin_range(start, upto)]
        return rows, None if upto == end else (partition, upto, end)

    def size(self, range: tuple[Any, ...]) -> int:
        return int(range[2]) - int(range[1])

    def partition_of(self, range: tuple[Any, ...]) -> Any:
        return range[0]


builtin_range = range


class Journal:
    """The journal's files, on a storage that is out of order in one way or another; and what the acker query makes of them: the
    XOR of each record's values, and the rows. Nothing that is late is heard.
    """

    folder = Path("nowhere")

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}
        self.xors: dict[tuple[int, int], int] = {}
        self.rows: dict[tuple[int, int], tuple[int, bytes]] = {}
        self.watermark = -(10**12)
        self.fault = ""
        self.sizes: list[int] = []

    def numbers(self) -> list[int]:
        return sorted(self.files)

    def read(self, number: int) -> bytes:
        if self.fault == "gone":
            raise OSError(self.fault)
        try:
            return self.files[number]
        except KeyError:
            raise FileNotFoundError(number) from None

    def add(self, number: int, data: bytes) -> None:
        self.sizes.append(len(data))
        if self.fault in ("full", "gone"):
            raise OSError(self.fault)
        if number in self.files:
            raise FileExistsError(number)
        self.files[number] = data
        self._hear(pa.ipc.open_stream(data).read_all())
        if self.fault == "no answer":
            raise OSError(self.fault)

    def delete(self, numbers: Iterable[int]) -> None:
        raise AssertionError

    def _hear(self, changes: pa.Table) -> None:
        *changed, tick = zip(*(column.to_pylist() for column in changes.cast(PLAIN).columns), strict=True)
        for root, at, value, component, _, batch, _, row in changed:
            assert at >= self.watermark, "a change was late"
            self.xors[root, at] = self.xors.get((root, at), 0) ^ value
            if component:
                self.rows[root, at] = (batch, row)
        self.watermark = tick[1] - round(DELAY * 1e6)
        for key in [key for key in self.xors if key[1] < self.watermark]:
            assert self.xors.pop(key) == 0, "an open record left the state"

    def open(self) -> list[tuple[Record, int, bytes]]:
        """The open records."""
        return [
            (Record(root, at, value), *self.rows[root, at])
            for (root, at), value in self.xors.items()
            if value and (root, at) in self.rows
        ]


#: The changes as plain numbers.
PLAIN = ACKER_SCHEMA.set(1, pa.field("created", pa.int64()))


class Report(NamedTuple):
    """What is the acker's of a worker's report."""

    worker: int
    incarnation: int
    acker: tuple[tuple[int, bytes], ...]


class Driver:
    """Its side of the durable acker."""

    def __init__(self, files: Journal) -> None:
        journal = AckerJournal(files, ACKER_SCHEMA, DELAY, 0)
        self.writer, self._time = AckerWriter(journal), AckerTime(DELAY)

    def time_to_report(self) -> AckerTime:
        """As `DurableAcker.time_to_report`."""
        self.writer.settle()
        return replace(self._time, tried=self.writer.tried)

    def write(self, report: Report, attempt: int, seconds: float) -> None:
        """One commit; raises OSError."""
        if self.writer.write([cast("Any", report)], attempt, self._time.at):
            self._time.committed(seconds)


class Life(RuleBasedStateMachine):
    """One task of a source spout, its worker, its driver and the durable acker, batch by batch."""

    @initialize(seed=st.integers(0, 2**32), ranges=st.booleans())
    def begin(self, seed: int, ranges: bool) -> None:
        self.random = Random(seed)
        self.ranges = ranges
        self.acker = Journal()
        self.driver = Driver(self.acker)
        self.incarnation = 0
        self.offered: dict[int, list[Any]] = {}  # by batch: what Spark read
        self.batch = 0
        self.acked: set[Any] = set()
        self.acked_in_batch: set[Any] = set()
        self.total = 0
        self.now = 0.0
        self.attempt = 0
        self.new_worker()
        self.begin_batch()

    def new_worker(self) -> None:
        self.spout = Numbers()
        self.rows = SourceRows(ExponentialBackoff(period=1.0), (), self.spout if self.ranges else None)
        self.log = AckerLog()
        self.incarnation += 1
        self.opened: list[Row] = []

    def begin_batch(self) -> None:
        """Superstep 0: the rows of the batch come, the same ones if it is run again."""
        self.log.begin_batch(self.batch)
        new = self.offered.get(self.batch)
        if new is None:
            count = self.random.randrange(5)
            first, self.total = self.total, self.total + count
            if self.ranges:
                new = [(self.random.randrange(2), first, self.total)] if count else []
            else:
                new = [(n,) for n in range(first, self.total)]
            self.offered[self.batch] = new
        self.rows.add(self.batch, 0, new)

    def draw(self, count: int) -> list[int]:
        return [self.random.randrange(1, 2**63) for _ in range(count)]

    @rule()
    def emit(self) -> None:
        if (row := self.rows.next(self.now)) is not None:
            self.opened.append(row)

    def tell(self) -> None:
        """The end of an attempt at a batch, with its report."""
        time = self.driver.time_to_report()
        changes = change_table("spout", 1, self.rows.changes(time, self.draw))
        self.log.add([changes], self.attempt, time.tried)

    @rule(which=st.integers(0, 50))
    def ack(self, which: int) -> None:
        if self.opened:
            row = self.opened.pop(which % len(self.opened))
            self.rows.done(row.id)
            self.acked.add(row.values[0])

    @rule(which=st.integers(0, 50))
    def fail(self, which: int) -> None:
        if self.opened:
            row = self.opened.pop(which % len(self.opened))
            assert self.rows.failed(row.id, self.now) is None

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def the_broker_goes_or_comes(self) -> None:
        self.spout.away = not self.spout.away

    def write(self, seconds: float, fault: str = "") -> bool:
        """The driver writes the worker's report; whether it knows that it did."""
        self.acker.fault = fault
        try:
            self.driver.write(Report(0, self.incarnation, self.log.unconfirmed), self.attempt, seconds)
        except OSError:
            return False
        return True

    @rule(
        how=st.sampled_from(
            ["committed", "committed", "committed", "not tried", "full", "gone", "no answer", "not committed"]
        ),
        back=st.booleans(),
        s=st.floats(0, 100),
    )
    def end_batch(self, how: str, back: bool, s: float) -> None:
        """It is written and committed; or the storage or Spark fails before one of the two, and it is run again by the same
        worker, when the storage is ``back`` or before.
        """
        self.tell()
        fault = how if how in ("full", "gone", "no answer") else ""
        written = how != "not tried" and self.write(s, fault)
        if how == "committed" and written:
            self.batch += 1
        else:
            self.attempt += 1
            self.rows.forget_batch(self.batch)
            self.opened = [row for row in self.opened if row.batch < self.batch]
        if back:
            self.acker.fault = ""
        self.begin_batch()

    @precondition(lambda self: True)
    @rule(when=st.sampled_from(["in the batch", "after the write", "after the commit"]), s=st.floats(0, 100))
    def kill(self, when: str, s: float) -> None:
        """kill -9 of the worker or of all, at three moments; its next life is given what the acker has open."""
        if when != "in the batch":
            self.tell()
            self.write(s)
        if when == "after the commit":
            self.batch += 1
        self.new_worker()
        self.attempt += 1
        adopted = []
        for record, batch, data in self.acker.open():
            if batch >= self.batch:
                self.driver.writer.close([record])
            else:
                adopted.append((record, decode(data)))
        self.rows.adopt(adopted)
        self.begin_batch()

    @rule()
    def the_instance_begins_anew(self) -> None:
        self.opened = []
        self.rows.reopen()

    @invariant()
    def nothing_is_lost(self) -> None:
        """Every row of a batch that has begun is acked, or waits here, or is open here."""
        here = {row.values[0] for row in self.opened}
        here |= {row.values[0] for row in self.rows._waiting} | {
            row.values[0] for _, _, row in self.rows._later
        }
        for _, start, end in self.rows.unread():
            here |= set(range(start, end))
        assert set(range(self.total)) <= here | self.acked

    def teardown(self) -> None:
        """In the end everything is acked, and no record is open."""
        if not hasattr(self, "rows"):
            return
        self.spout.away = False
        for _ in range(60 + self.total * 3):
            self.now += 100.0
            self.emit()
            self.ack(0)
        assert self.acked >= set(range(self.total))
        self.offered[self.batch + 1] = []
        self.end_batch("committed", True, 1.0)
        assert self.acker.open() == []


Life.TestCase.settings = settings(stateful_step_count=60)
TestLife = Life.TestCase


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["not tried", "full", "gone"])
def test_an_outage_makes_no_report_larger(fault: str) -> None:
    """E10: one attempt at a batch follows another, for minutes, and all that is open is told in each."""
    rows, log, files, random = SourceRows(ExponentialBackoff(), ()), AckerLog(), Journal(), Random(1)
    driver, sizes = Driver(files), []
    for attempt in range(120):
        log.begin_batch(7)
        rows.add(7, 0, [(number, random.randbytes(1000)) for number in range(100)])
        time = driver.time_to_report()
        changes = rows.changes(time, lambda count: [random.getrandbits(62) + 1 for _ in range(count)])
        log.add([change_table("spout", 1, changes)], attempt, time.tried)
        sizes.append(sum(len(data) for _, data in log.unconfirmed))
        files.fault = fault
        if fault != "not tried":
            with pytest.raises(OSError, match=fault):
                driver.write(Report(0, 1, log.unconfirmed), attempt, 1.0)
        rows.forget_batch(7, trees_live_on=True)
    assert sizes[-1] < 3 * sizes[0]
    files.fault = ""
    driver.write(Report(0, 1, log.unconfirmed), attempt, 1.0)
    assert len(files.open()) == 100


@given(
    st.tuples(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text()
        | st.binary()
        | st.decimals(allow_nan=False),
        st.dates() | st.datetimes() | st.timedeltas() | st.times(),
        st.lists(st.dictionaries(st.text(), st.integers())),
    )
)
def test_rows_come_out_of_the_table_as_they_went_in(values: tuple[Any, ...]) -> None:
    row = Row((1, 2, 3), values, 1)
    assert decode(encode(row)) == row


@pytest.mark.parametrize("evil", [print, Random, Decimal.from_float, pytest.raises])
def test_nothing_but_values_is_read_from_the_table(evil: Any) -> None:
    """The table lies in a folder that others may be able to write to."""
    data = pickle.dumps((False, (1, evil), (), 1))
    with pytest.raises(pickle.UnpicklingError, match=r"is (no value of a row|not plain data)"):
        decode(data)
