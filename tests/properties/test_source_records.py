"""Rows of a source and the durable acker's records of them: whatever dies, and whenever, nothing is lost.

The acker is a model here: a dict of XORs, fed with change sets as the driver feeds its table, each number once.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormspark.acker.records import AckerTime, Change, Record
from stormspark.api import ExponentialBackoff, RangeSpout
from stormspark.worker.acker_log import ACKER_SCHEMA, AckerLog, change_table
from stormspark.worker.source_rows import Row, SourceRows, decode, encode

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


class AckerModel:
    """What the table and its query know: the XOR of each record's values, and the rows. Nothing that is late is heard."""

    def __init__(self) -> None:
        self.xors: dict[tuple[int, int], int] = {}
        self.rows: dict[tuple[int, int], tuple[int, bytes]] = {}
        self.time = AckerTime(DELAY)
        self.written = 0
        self.tried = -1
        self.watermark = -(10**12)

    def write(self, sets: Sequence[tuple[int, bytes]], close: set[Record], seconds: float) -> None:
        """One commit."""
        tables = [pa.ipc.open_stream(data).read_all() for number, data in sets if number > self.written]
        self.written = max([self.written, *(number for number, _ in sets)])
        tables.append(change_table("", -1, [Change(record) for record in close]))
        for root, at, value, component, _, batch, _, row in zip(
            *(column.to_pylist() for column in pa.concat_tables(tables).cast(PLAIN).columns), strict=True
        ):
            assert at >= self.watermark, "a change was late"
            self.xors[root, at] = self.xors.get((root, at), 0) ^ value
            if component:
                self.rows[root, at] = (batch, row)
        self.watermark = self.time.at - round(DELAY * 1e6)
        for key in [key for key in self.xors if key[1] < self.watermark]:
            assert self.xors.pop(key) == 0, "an open record left the state"
        self.time.committed(seconds)

    def open(self) -> list[tuple[Record, int, bytes]]:
        """The open records."""
        return [
            (Record(root, at, value), *self.rows[root, at])
            for (root, at), value in self.xors.items()
            if value and (root, at) in self.rows
        ]


#: The changes as plain numbers.
PLAIN = ACKER_SCHEMA.set(1, pa.field("created", pa.int64()))


class Life(RuleBasedStateMachine):
    """One task of a source spout, its worker, its driver and the durable acker, batch by batch."""

    @initialize(seed=st.integers(0, 2**32), ranges=st.booleans())
    def begin(self, seed: int, ranges: bool) -> None:
        self.random = Random(seed)
        self.ranges = ranges
        self.acker = AckerModel()
        self.offered: dict[int, list[Any]] = {}  # by batch: what Spark read
        self.to_close: set[Record] = set()
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
        self.acker.written = 0
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
        time = AckerTime(DELAY, self.acker.time.at, self.acker.tried)
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

    @rule(
        how=st.sampled_from(
            ["committed", "committed", "committed", "not tried", "tried, not written", "not committed"]
        ),
        s=st.floats(0, 100),
    )
    def end_batch(self, how: str, s: float) -> None:
        """It is written and committed; or Spark fails before one of the two, and it is run again by the same worker."""
        self.tell()
        if how != "not tried":
            self.acker.tried = self.attempt
        if how in ("committed", "not committed"):
            self.acker.write(self.log.unconfirmed, self.to_close, s)
            self.to_close = set()
        if how == "committed":
            self.batch += 1
        else:
            self.attempt += 1
            self.rows.forget_batch(self.batch)
            self.opened = [row for row in self.opened if row.batch < self.batch]
        self.begin_batch()

    @precondition(lambda self: True)
    @rule(when=st.sampled_from(["in the batch", "after the write", "after the commit"]), s=st.floats(0, 100))
    def kill(self, when: str, s: float) -> None:
        """kill -9 of the worker or of all, at three moments; its next life is given what the acker has open."""
        if when != "in the batch":
            self.tell()
            self.acker.tried = self.attempt
            self.acker.write(self.log.unconfirmed, self.to_close, s)
            self.to_close = set()
        if when == "after the commit":
            self.batch += 1
        self.new_worker()
        self.attempt += 1
        adopted = []
        for record, batch, data in self.acker.open():
            if batch >= self.batch:
                self.to_close.add(record)
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
        self.end_batch("committed", 1.0)
        assert self.acker.open() == []


Life.TestCase.settings = settings(stateful_step_count=60)
TestLife = Life.TestCase


@pytest.mark.parametrize("tried", [-1, 0])
def test_an_outage_makes_no_report_larger(tried: int) -> None:
    """E10: one attempt at a batch follows another, for minutes, and all that is open is told in each."""
    rows, log, acker, random = SourceRows(ExponentialBackoff(), ()), AckerLog(), AckerModel(), Random(1)
    sizes = []
    for attempt in range(120):
        log.begin_batch(7)
        rows.add(7, 0, [(number, "x" * 1000) for number in range(100)])
        changes = rows.changes(
            AckerTime(DELAY), lambda count: [random.getrandbits(62) + 1 for _ in range(count)]
        )
        log.add([change_table("spout", 1, changes)], attempt, min(tried, attempt - 1))
        sizes.append(sum(len(data) for _, data in log.unconfirmed))
        rows.forget_batch(7, trees_live_on=True)
    assert sizes[-1] < 3 * sizes[0]
    acker.write(log.unconfirmed, set(), 1.0)
    assert len(acker.open()) == 100


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
    with pytest.raises(pickle.UnpicklingError, match=r"is no (value of a row|plain data)"):
        decode(data)
