"""Transactional topologies: the same on every engine (G1-G8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from stormspark import Fields
from stormspark.connectors import FileSpout
from stormspark.transactional import TransactionalTopologyBuilder
from tests.conformance.transactional_components import (
    DrawnRanges,
    OpaquePieces,
    Partial,
    Pieces,
    Seen,
    Unlucky,
    Write,
)

Run = Callable[..., Any]
#: Many attempts fail, and none of that is a reason to stop.
PATIENT = {"stormspark.max.attempts": 10_000, "stormspark.restart.max.delay.secs": 0.01}


def committed(effects: Iterable[list[Any]]) -> dict[int, list[int]]:
    """What the last attempt at each transaction wrote; transactions must have come in order."""
    lines = list(effects)
    assert all(earlier[0] <= later[0] for earlier, later in pairwise(lines)), [line[:2] for line in lines]
    return {txid: numbers for txid, _, numbers in lines}


def test_batches_are_committed_in_order_and_whole(run: Run) -> None:
    """G1, G2, G3, G6, G7: what a coordinator says is a batch reaches the committer as one, through two stages of batch bolts."""
    builder = TransactionalTopologyBuilder("order", "ranges", DrawnRanges(60, 20), 2)
    builder.set_bolt("partial", Partial(), 3).fields_grouping("ranges", Fields("number"))
    builder.set_bolt("middle", Partial(), 2).fields_grouping("partial", Fields("tx"))
    builder.set_committer_bolt("write", Partial()).global_grouping("middle")
    builder.set_bolt("seen", Seen()).global_grouping("write")
    done = run(builder.build_topology())
    batches = committed(done.effects("seen"))
    assert [number for numbers in batches.values() for number in numbers] == list(range(60))
    told = {txid: (begin, end) for txid, begin, end in done.effects("ranges_coordinator")}
    assert {txid: (numbers[0], numbers[-1] + 1) for txid, numbers in batches.items()} == told
    assert min(batches) == 1
    # Every task hears of the end of every batch, those too that had no tuple; once.
    for component, tasks in ("partial", 3), ("middle", 2), ("write", 1):
        by_task = done.effects_by_task(component)
        assert len(by_task) == tasks
        for effects in by_task:
            assert [txid for txid, _, _ in effects] == list(batches)


def test_committers_keep_to_the_order_under_retries(run: Run) -> None:
    """G2, G3, G5, G6: bolts and committers that fail at random; a transaction that comes again has the same tuples."""
    builder = TransactionalTopologyBuilder("retries", "ranges", DrawnRanges(40, 20), 2)
    builder.set_bolt("unlucky", Unlucky(0.01), 2).shuffle_grouping("ranges")
    builder.set_bolt("partial", Partial(0.05), 2).fields_grouping("unlucky", Fields("number"))
    builder.set_bolt("write", Write(0.4)).global_grouping("partial")
    builder.set_bolt("seen", Seen()).global_grouping("write")
    done = run(builder.build_topology(), PATIENT)
    written = done.effects("write")
    batches = committed(written)
    assert [number for numbers in batches.values() for number in numbers] == list(range(40))
    # What a committer has done outside stays, so the same transaction never has other tuples once it has come to committers.
    assert all(numbers == batches[txid] for txid, _, numbers in written)
    attempts = [tuple(line[:2]) for line in written]
    assert len(set(attempts)) == len(attempts) > len(batches)
    assert committed(done.effects("seen")) == batches
    # No committer has come to a batch before all other bolts had ended it.
    ended = {tuple(line[:2]) for line in done.effects("partial")}
    assert set(attempts) <= ended


def test_pieces_of_partitions_come_again_exactly(run: Run) -> None:
    """G4: what was told to committers is told to them again; all of each partition, once and in order."""
    builder = TransactionalTopologyBuilder("pieces", "pieces", Pieces(3, 15), 2)
    builder.set_committer_bolt("write", Write(0.3)).global_grouping("pieces")
    done = run(builder.build_topology(), PATIENT)
    written = done.effects("write")
    batches = committed(written)
    assert all(numbers == batches[txid] for txid, _, numbers in written)
    for partition in range(3):
        mine = [n for numbers in batches.values() for n in numbers if n // 1000 == partition]
        assert mine == [partition * 1000 + n for n in range(15)]
    told = done.effects("pieces")
    assert {partition for what, _, partition in told if what == "again"} == {0, 1, 2}
    # Task i of 2 has the partitions i and i + 2.
    by_task = [{line[2] for line in effects} for effects in done.effects_by_task("pieces")]
    assert by_task == [{0, 2}, {1}]


def test_opaque_pieces_go_on_after_what_was_committed(run: Run) -> None:
    """G4: a transaction that comes again may have other tuples, and begins where the one before it ended."""
    builder = TransactionalTopologyBuilder("opaque", "pieces", OpaquePieces(3, 15), 2)
    builder.set_bolt("write", Write(0.3)).global_grouping("pieces")
    done = run(builder.build_topology(), PATIENT)
    batches = committed(done.effects("write"))
    for partition in range(3):
        mine = [n for numbers in batches.values() for n in numbers if n // 1000 == partition]
        assert mine == [partition * 1000 + n for n in range(15)]


def test_a_source_is_transactional_by_itself(run: Run, tmp_path: Path) -> None:
    """G3: Spark gives a batch the same rows again; the attempt is their first field."""
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "a.txt").write_text("".join(f"{n}\n" for n in range(40)))
    source = FileSpout(tmp_path / "lines", translator=lambda row: (int(row[0]),), fields=("number",))
    builder = TransactionalTopologyBuilder("lines", "lines", source, 2)
    builder.set_bolt("partial", Partial(0.2), 2).fields_grouping("lines", Fields("number"))
    builder.set_committer_bolt("write", Write(0.3)).global_grouping("partial")
    done = run(builder.build_topology(), PATIENT)
    written = done.effects("write")
    batches = committed(written)
    assert sorted(number for numbers in batches.values() for number in numbers) == list(range(40))
    assert all(numbers == batches[txid] for txid, _, numbers in written)
