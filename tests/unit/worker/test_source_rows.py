"""The rows of a source spout: waiting, open, failed, given up, forgotten."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.api import ExponentialBackoff
from stormspark.errors import InvalidTopologyError
from stormspark.worker.sources.source_rows import SourceRows


def payload(*rows: tuple[Any, ...], names: tuple[str, ...] = ("n", "text")) -> bytes:
    """Rows as an Arrow IPC stream of two batches."""
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        for batch in table.to_batches(max_chunksize=max(1, len(rows) // 2)):
            stream.write_batch(batch)
    return bytes(sink.getvalue())


def rows_of(retry: ExponentialBackoff | None = None, id_columns: tuple[str, ...] = ()) -> SourceRows:
    return SourceRows(retry or ExponentialBackoff(), id_columns)


def test_rows_come_in_order_with_ids_of_batch_partition_and_row() -> None:
    """Several frames of one partition are numbered on; another partition has its own numbers."""
    rows = rows_of()
    rows.take(4, 1, payload((10, "a"), (11, "b"), (12, None)))
    rows.take(4, 1, payload((13, "d")))
    rows.take(4, 2, payload((20, "e")))
    taken = [rows.next(0.0) for _ in range(6)]
    assert [row and (row.id, row.values) for row in taken] == [
        ((4, 1, 0), (10, "a")),
        ((4, 1, 1), (11, "b")),
        ((4, 1, 2), (12, None)),
        ((4, 1, 3), (13, "d")),
        ((4, 2, 0), (20, "e")),
        None,
    ]


def test_ids_may_be_columns() -> None:
    """As Kafka's topic, partition and offset are."""
    rows = rows_of(id_columns=("text", "n"))
    rows.take(0, 0, payload((7, "topic")))
    row = rows.next(0.0)
    assert row is not None and row.message_id == ("topic", 7)


def test_a_failed_row_comes_again_after_its_delay_before_the_others_and_is_given_up_at_last() -> None:
    """K4: initial delay, then the period doubled; max retries."""
    rows = rows_of(ExponentialBackoff(initial_delay=1, period=2, max_delay=100, max_retries=3))
    rows.take(0, 0, payload((1, "a"), (2, "b")))
    first = rows.next(0.0)
    assert first is not None
    now = 0.0
    for delay in (1, 4, 8):
        assert rows.failed(first.id, now) is None
        nobody = rows.next(now + delay - 0.01)
        assert nobody is None or nobody.values == (2, "b")
        now += delay
        assert rows.next(now) == first
    assert rows.failed(first.id, now) == first
    assert rows.next(now + 1e9) is None and len(rows) == 0


def test_fails_of_unknown_and_of_acked_rows_are_ignored() -> None:
    """Unknown ids are ignored, and a fail after the ack has no effect (K4)."""
    rows = rows_of(ExponentialBackoff(max_retries=0))
    rows.done("strange")
    assert rows.failed("strange", 0.0) is None
    rows.take(0, 0, payload((1, "a")))
    row = rows.next(0.0)
    assert row is not None
    rows.done(row.id)
    assert rows.failed(row.id, 0.0) is None, "it is done with"


def test_a_batch_that_is_run_again_forgets_its_rows_and_no_others() -> None:
    """What waits, is open, or is to be tried again."""
    rows = rows_of(ExponentialBackoff(initial_delay=5))
    for batch in (1, 2):
        rows.take(batch, 0, payload((batch, "open"), (batch, "later"), (batch, "waits")))
        opened, later = rows.next(0.0), rows.next(0.0)
        if batch == 1:
            assert rows.next(0.0) is not None  # and stays open
        assert opened is not None and later is not None
        rows.failed(later.id, 0.0)
    rows.forget_batch(2)
    assert len(rows) == 1
    rows.take(2, 0, payload((2, "again")))
    rows.reopen()
    seen = []
    while (row := rows.next(10.0)) is not None:
        seen.append(row.values)
    assert sorted(seen) == [(1, "later"), (1, "open"), (1, "waits"), (2, "again")]


def test_a_new_instance_leaves_out_rows_that_a_commit_has_ended() -> None:
    """C39: those that were open then, because a bolt had kept their tuples, are open."""
    rows = rows_of()
    rows.add(0, 0, [("done",), ("open",), ("failed",)])
    done, still_open, failed = (row.id for row in iter(lambda: rows.next(0.0), None))
    rows.commit([done])
    assert list(rows.open_ids()) == [still_open, failed]
    rows.failed(failed, 0.0)
    assert (again := rows.next(100.0)) is not None and again.id == failed
    rows.add(1, 0, [("next",)])
    assert (next_row := rows.next(100.0)) is not None
    rows.reopen()
    assert [row.id for row in iter(lambda: rows.next(100.0), None)] == [still_open, failed, next_row.id]
    assert list(rows.open_ids()) == [still_open, failed, next_row.id]


def test_a_new_instance_emits_what_was_open_first() -> None:
    """B10: it knows of no open tree."""
    rows = rows_of()
    rows.take(0, 0, payload((1, "a"), (2, "b"), (3, "c")))
    rows.next(0.0), rows.next(0.0)
    rows.reopen()
    assert [row.values[0] for row in iter(lambda: rows.next(0.0), None) if row] == [1, 2, 3]


@given(st.lists(st.sampled_from(["next", "ack", "fail", "time", "take", "reopen"]), max_size=60))
def test_no_row_is_lost_nor_doubled(steps: list[str]) -> None:
    """W13: each row is waiting, open, later, acked or given up; never two of these."""
    rows, now = rows_of(ExponentialBackoff(initial_delay=1, period=1, max_retries=2)), 0.0
    rows.take(0, 0, payload(*((n, "x") for n in range(5))))
    taken, opened, done = 5, [], Counter[int]()
    for step in steps:
        if step == "next" and (row := rows.next(now)) is not None:
            opened.append(row)
        elif step == "ack" and opened:
            row = opened.pop()
            rows.done(row.id)
            done[row.values[0]] += 1
        elif step == "fail" and opened and (given_up := rows.failed(opened.pop(0).id, now)) is not None:
            done[given_up.values[0]] += 1
        elif step == "time":
            now += 1.5
        elif step == "take":
            rows.take(0, 0, payload((taken, "x")))
            taken += 1
        elif step == "reopen":
            rows.reopen()
            opened.clear()
        assert len(rows) + len(opened) + sum(done.values()) == taken
        assert set(done.values()) <= {1}


def test_numbers_of_a_backoff_are_checked() -> None:
    """A negative period is rejected, and delays stop growing at the maximum (K4)."""
    with pytest.raises(InvalidTopologyError, match="must not be negative"):
        ExponentialBackoff(period=-1)
    assert ExponentialBackoff(max_retries=None).delay(10_000) == 10.0
