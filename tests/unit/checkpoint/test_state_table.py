"""The state table: one commit a batch, restores as of a batch, who may write, and what is said of one that is damaged."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError
from deltalake.schema import PrimitiveType

from stormspark.checkpoint import state_files, state_table
from stormspark.checkpoint.state_compaction import FAN_IN
from stormspark.checkpoint.state_files import SCHEMA
from stormspark.checkpoint.state_table import FileDescription, StateTable, TaskChanges, write_changes
from stormspark.errors import CheckpointError, FencedError

Changes = Mapping[bytes, bytes | None]


class Clock:
    """Seconds that a test gives out."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def table(tmp_path: Path, clock: Clock) -> StateTable:
    table = StateTable(tmp_path / "state", clock=clock, retain_txids=2, vacuum_after_secs=60)
    table.open(0)
    return table


def write(table: StateTable, txid: int, changes: Changes, task: int = 1, **options: Any) -> FileDescription:
    one = TaskChanges(options.pop("component", "count"), task, changes.items(), options.pop("kind", "state"))
    found = write_changes(table.location, [one], txid=txid, **({"generation": 0} | options))
    assert found is not None
    return found


def commit(table: StateTable, *batches: Changes, **options: Any) -> None:
    for changes in batches:
        txid = table.last_txid + 1
        table.commit(txid, [write(table, txid, changes, **options)])


def state(
    table: StateTable, as_of: int | None = None, component: str = "count", task: int = 1, kind: str = "state"
) -> dict[bytes, bytes]:
    batches = table.restore(component, task, as_of, kind)
    return {row["key"]: row["value"] for batch in batches for row in batch.to_pylist()}


def compacted(table: StateTable) -> StateTable:
    while table.compact(0):
        pass
    return table


def data_files(table: StateTable) -> list[Path]:
    return sorted(Path(table.location).glob("*/*-*.parquet"))


# -- batches -------------------------------------------------------------------------------------


def test_a_batch_is_what_its_workers_wrote_and_restores_see_it_as_of_any_batch(table: StateTable) -> None:
    """C35: what was put in a batch and what was deleted, by key; state goes with its task."""
    commit(table, {b"a": b"1", b"b": b"2"}, {b"a": b"3"}, {b"b": None, b"c": b"4"})
    assert [state(table, txid) for txid in range(3)] == [
        {b"a": b"1", b"b": b"2"},
        {b"a": b"3", b"b": b"2"},
        {b"a": b"3", b"c": b"4"},
    ]
    assert state(table) == state(table, 2)
    assert state(table, task=2) == state(table, component="other") == {}


def test_the_number_of_workers_is_not_part_of_the_state(table: StateTable) -> None:
    """C36: a task's state is found by component and task, whichever file it is in; a worker's file has many tasks."""
    both = [TaskChanges("count", task, [(b"k", b"%d" % task)]) for task in (2, 1)]
    file = write_changes(table.location, [*both, TaskChanges("a", 9, [])], generation=0, txid=0)
    table.commit(0, [file, write(table, 0, {b"k": b"3"}, task=3), None])
    assert [state(table, task=task) for task in (1, 2, 3)] == [{b"k": b"1"}, {b"k": b"2"}, {b"k": b"3"}]


def test_kinds_are_kept_apart(table: StateTable) -> None:
    """C40, C43: state, a spout's position and messages that wait lie side by side under the same keys."""
    changes = [
        TaskChanges("count", 1, [(b"k", kind.encode())], kind) for kind in ("state", "spout", "outbox")
    ]
    table.commit(0, [write_changes(table.location, changes, generation=0, txid=0)], {b"k": b"mine"})
    assert [state(table, kind=kind) for kind in ("outbox", "spout", "state")] == [
        {b"k": b"outbox"},
        {b"k": b"spout"},
        {b"k": b"state"},
    ]
    assert table.metadata() == {b"k": b"mine"}


def test_what_the_driver_keeps_is_part_of_the_batch(table: StateTable) -> None:
    """G3: what a coordinator said of a batch is there again for its replay, and as of an earlier batch."""
    table.commit(0, [], {b"source": b"0-9", b"other": b"x"})
    table.commit(1, [], {b"source": b"10-19", b"other": None})
    assert (table.metadata(0), table.metadata()) == (
        {b"source": b"0-9", b"other": b"x"},
        {b"source": b"10-19"},
    )


def test_batches_without_changes_count(table: StateTable) -> None:
    """G2: each txid is committed once, in order."""
    assert write_changes(table.location, [], generation=0, txid=0) is None
    table.commit(0, [None])
    table.commit(1, [])
    assert (table.last_txid, state(table), table.oldest_txid) == (1, {}, 0)


def test_only_the_next_batch_can_be_committed(table: StateTable) -> None:
    """G5, G15: commits are in strict order; a batch that is there is named as such."""
    commit(table, {b"a": b"1"})
    with pytest.raises(
        CheckpointError, match=r"batch 0 is committed already .* \(the last committed batch is 0\)"
    ):
        table.commit(0, [])
    with pytest.raises(
        CheckpointError,
        match=r"batch 2 can't be committed .* the last committed batch is 0, so the next must be 1",
    ):
        table.commit(2, [])
    commit(table, {b"a": b"2"})
    assert state(table) == {b"a": b"2"}


def test_files_of_another_batch_or_generation_are_refused(table: StateTable) -> None:
    """G2: nothing of an attempt that was given up gets in."""
    commit(table, {b"a": b"1"})
    with pytest.raises(CheckpointError, match="was written for batch 0 of generation 0"):
        table.commit(1, [write(table, 0, {b"a": b"9"})])
    with pytest.raises(CheckpointError, match="was written for batch 1 of generation 7"):
        table.commit(1, [write(table, 1, {b"a": b"9"}, generation=7)])
    file = write(table, 1, {b"a": b"2"})
    with pytest.raises(CheckpointError, match="came twice"):
        table.commit(1, [file, file])
    assert (table.last_txid, state(table)) == (0, {b"a": b"1"})


def test_one_task_writes_in_one_part(tmp_path: Path) -> None:
    parts = [TaskChanges("count", 1, [(b"a", b"1")]), TaskChanges("count", 1, [(b"a", b"2")])]
    with pytest.raises(ValueError, match=r"count\[1\] \(state\) came twice in batch 4"):
        write_changes(str(tmp_path), parts, generation=0, txid=4)


def test_a_description_is_plain_and_no_two_attempts_share_a_file(table: StateTable) -> None:
    first, second = (write(table, 0, {b"a": b"1", b"b": None}) for _ in range(2))
    assert first.path != second.path
    sent = pickle.loads(pickle.dumps(first))
    assert sent == first
    assert (sent.rows, sent.deletions, sent.tasks, sent.txids) == (2, 1, (1, 1), (0, 0))
    table.commit(0, [sent])
    assert state(table) == {b"a": b"1"}


def test_a_restore_can_be_planned_here_and_read_there(table: StateTable) -> None:
    """C35: the driver knows the table, the worker reads what its task needs."""
    commit(table, {b"a": b"1"}, {b"b": b"2"})
    commit(table, {b"z": b"0"}, task=2)
    plan = pickle.loads(pickle.dumps(table.plan_restore("count", 1, as_of=1)))
    assert [file.tasks for file in plan.files] == [(1, 1), (1, 1)]
    assert pa.Table.from_batches(plan.batches()).to_pydict() == {"key": [b"a", b"b"], "value": [b"1", b"2"]}


def test_a_table_may_begin_with_a_later_batch(tmp_path: Path) -> None:
    table = StateTable(tmp_path / "state")
    assert not table.exists
    table.open(3, first_txid=40)
    assert (table.last_txid, state(table)) == (39, {})
    commit(table, {b"a": b"1"}, generation=3)
    assert (table.last_txid, table.oldest_txid, state(table, 39)) == (40, 39, {})
    again = StateTable(tmp_path / "state")
    again.open(4)
    assert again.last_txid == 40


def test_people_read_all_of_a_component(table: StateTable) -> None:
    commit(table, {b"a": b"1"}, {b"a": b"2"})
    commit(table, {b"b": b"3"}, task=2)
    commit(table, {b"c": b"4"}, component="other")
    found = StateTable(table.location).as_arrow("count").read_all().to_pylist()
    assert [(row["task"], row["key"], row["value"], row["txid"]) for row in found] == [
        (1, b"a", b"2", 1),
        (2, b"b", b"3", 2),
    ]
    assert StateTable(table.location).as_arrow().read_all()["component"].to_pylist() == [
        "count",
        "count",
        "other",
    ]
    assert StateTable(table.location).as_arrow("count", as_of=1).read_all()["value"].to_pylist() == [b"2"]


def test_a_reader_sees_new_batches_after_refresh(table: StateTable) -> None:
    reader = StateTable(table.location)
    commit(table, {b"a": b"1"})
    assert state(reader) == {b"a": b"1"}
    commit(table, {b"a": b"2"})
    assert state(reader) == {b"a": b"1"}
    reader.refresh()
    assert state(reader) == {b"a": b"2"}
    with pytest.raises(CheckpointError, match="was not opened to be written to: open it"):
        reader.commit(2, [])


def test_a_folder_by_url_is_the_same_table(tmp_path: Path) -> None:
    location = f"file://{tmp_path}/state"
    (tmp_path / "state").mkdir()
    table = StateTable(location, retain_txids=0, vacuum_after_secs=0)
    table.open(0)
    for number in range(FAN_IN):
        commit(table, {b"a": b"%d" % number, b"%d" % number: b"x"})
    orphan = write(table, 0, {b"a": b"9"})
    compacted(table)
    assert table.vacuum(1) == FAN_IN + 1
    assert not (tmp_path / "state" / orphan.path).exists()
    assert state(StateTable(tmp_path / "state")) == state(table)
    assert len(state(table)) == FAN_IN + 1
    table.open(1)
    assert table.vacuum(1) == 0


# -- drivers ---------------------------------------------------------------------------------------


def test_a_later_driver_fences_an_earlier_one_off(table: StateTable) -> None:
    """G5: two drivers on one checkpoint: the second takes over, the first may write nothing more."""
    commit(table, {b"a": b"1"})
    late = write(table, 1, {b"a": b"old"})
    second = StateTable(table.location)
    second.open(1)
    with pytest.raises(FencedError, match="belongs to another driver now"):
        table.commit(1, [late])
    for again in (lambda: table.commit(1, [late]), lambda: table.compact(1), lambda: table.open(5)):
        with pytest.raises(FencedError):
            again()
    commit(second, {b"a": b"2"}, generation=1)
    assert state(second) == {b"a": b"2"}


@pytest.mark.parametrize("generation", [0, 1])
def test_a_driver_that_is_not_later_can_not_open(table: StateTable, generation: int) -> None:
    table.open(1)
    with pytest.raises(
        FencedError, match=f"generation 1 has opened it, and this driver is of generation {generation}"
    ):
        StateTable(table.location).open(generation)
    commit(table, {b"a": b"1"}, generation=1)


@pytest.mark.slow
def test_compaction_is_fenced_too(table: StateTable) -> None:
    for number in range(FAN_IN):
        commit(table, {b"a": b"%d" % number})
    second = StateTable(table.location)
    second.open(1)
    with pytest.raises(FencedError):
        compacted(table)
    assert state(second) == {b"a": b"%d" % (FAN_IN - 1)}
    assert len(DeltaTable(table.location).file_uris()) == FAN_IN


def test_a_driver_whose_successor_has_vacuumed_learns_that_it_is_fenced(
    table: StateTable, clock: Clock
) -> None:
    commit(table, *({b"a": b"%d" % n} for n in range(FAN_IN)))
    second = StateTable(table.location, clock=clock, vacuum_after_secs=0)
    second.open(1)
    compacted(second)
    assert second.vacuum(1) == FAN_IN
    with pytest.raises(FencedError, match="this driver did not write version 10"):
        compacted(table)


def raising(monkeypatch: pytest.MonkeyPatch, before: bool) -> None:
    real = DeltaTable.create_write_transaction

    def commit_and_raise(self: DeltaTable, *arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(DeltaTable, "create_write_transaction", real)
        if not before:
            real(self, *arguments, **options)
        raise deltalake.exceptions.CommitFailedError("the connection is gone")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit_and_raise)


def test_a_commit_that_raised_and_is_there_is_committed(
    table: StateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(table, {b"a": b"1"})
    raising(monkeypatch, before=False)
    commit(table, {b"a": b"2"}, {b"a": b"3"})
    assert (table.last_txid, state(table), state(StateTable(table.location))) == (
        2,
        {b"a": b"3"},
        {b"a": b"3"},
    )


def test_after_a_commit_that_raised_and_is_not_there_the_table_is_opened_again(
    table: StateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(table, {b"a": b"1"})
    raising(monkeypatch, before=True)
    with pytest.raises(CheckpointError, match="version 3 does not exist: the connection is gone"):
        commit(table, {b"a": b"2"})
    with pytest.raises(CheckpointError, match=r"could not be written to \(the connection is gone\): open it"):
        commit(table, {b"a": b"2"})
    table.open(0)
    commit(table, {b"a": b"3"})
    assert (table.last_txid, state(table)) == (1, {b"a": b"3"})


def test_a_commit_that_raised_because_of_another_driver_is_fenced(
    table: StateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(table, {b"a": b"1"})
    second = StateTable(table.location)
    second.open(1)
    commit(second, {b"a": b"2"}, generation=1)
    raising(monkeypatch, before=True)
    with pytest.raises(FencedError, match="this driver did not write version 3"):
        commit(table, {b"a": b"9"})


# -- compaction, retention, vacuum ------------------------------------------------------------------


@pytest.mark.slow
def test_compaction_keeps_what_can_be_restored_and_drops_the_rest(table: StateTable) -> None:
    """C35: restores as of the retained batches give the same; of older ones it is said that they are gone."""
    commit(table, *({b"a": b"%d" % n, b"gone": None, b"%d" % n: b"x"} for n in range(FAN_IN)))
    before = [state(table, txid) for txid in range(FAN_IN)]
    compacted(table)
    last = FAN_IN - 1
    assert table.oldest_txid == last - 2
    for reader in (table, StateTable(table.location)):
        assert [state(reader, txid) for txid in range(last - 2, FAN_IN)] == before[last - 2 :]
        with pytest.raises(CheckpointError, match=rf"has the batches {last - 2} to {last}, but not batch 0"):
            state(reader, 0)
        with pytest.raises(
            CheckpointError, match=rf"has the batches {last - 2} to {last}, but not batch {FAN_IN}"
        ):
            state(reader, FAN_IN)
    rows = DeltaTable(table.location).to_pyarrow_table().to_pylist()
    # Of each key: the versions of the last two batches, and the one before them.
    assert sorted(row["txid"] for row in rows if row["key"] == b"a") == [last - 2, last - 1, last]
    assert sorted(row["txid"] for row in rows if row["key"] == b"gone") == [last - 1, last]
    assert len(DeltaTable(table.location).file_uris()) == 1


def test_readers_of_delta_see_no_new_data_in_a_compaction(table: StateTable) -> None:
    commit(table, *({b"a": b"%d" % n} for n in range(FAN_IN)))
    compacted(table)
    log = sorted((Path(table.location) / "_delta_log").glob("*.json"))[-1]
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["add"]["dataChange"] for one in actions if "add" in one] == [False]
    assert [one["remove"]["dataChange"] for one in actions if "remove" in one] == [False] * FAN_IN


def test_a_deletion_is_not_dropped_while_something_older_may_hold_the_key(table: StateTable) -> None:
    commit(table, {b"%05d" % n: b"x" for n in range(5_000)})
    commit(table, *({b"00007": None, b"a%d" % n: b"x"} for n in range(FAN_IN + 2)))
    compacted(table)
    assert (
        len(DeltaTable(table.location).file_uris()) == 4
    )  # the first was too large to be merged with the others
    assert b"00007" not in state(table)
    assert len(state(table)) == 4_999 + FAN_IN + 2


@pytest.mark.slow
def test_files_stay_few_and_rows_are_written_again_seldom(tmp_path: Path) -> None:
    table = StateTable(tmp_path / "state", retain_txids=0)
    table.open(0)
    written = 0
    for n in range(100):
        commit(table, {b"%d-%d" % (n, k): b"x" for k in range(5)})
        before = set(data_files(table))
        compacted(table)
        written += sum(pq.read_metadata(path).num_rows for path in set(data_files(table)) - before)
        assert len(DeltaTable(table.location).file_uris()) < 3 * FAN_IN
    assert written < 5 * 100 * 4
    assert len(state(table)) == 500


@pytest.mark.slow
def test_a_step_is_small_and_batches_go_on_between_them(
    table: StateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge is over many steps; what is committed meanwhile comes on top, and a crash costs only the work."""
    monkeypatch.setattr("stormspark.checkpoint.state_merge._CHUNK_ROWS", 64)
    monkeypatch.setattr("stormspark.checkpoint.state_merge._LEAST_ROWS", 8)
    for n in range(FAN_IN):
        commit(table, {b"%05d" % k: b"%d" % n for k in range(500)})
    steps = 0
    while table.compact(0):
        steps += 1
        if steps % 10 == 0:
            commit(table, {b"new": b"%d" % steps, b"00000": b"later"})
    assert steps > 50
    assert state(table) == {b"%05d" % k: b"%d" % (FAN_IN - 1) for k in range(500)} | {
        b"new": b"%d" % (steps // 10 * 10),
        b"00000": b"later",
    }


@pytest.mark.slow
def test_unfinished_merges_of_a_dead_driver_are_nobodys(
    table: StateTable, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stormspark.checkpoint.state_files._FILE_ROWS", 20)
    monkeypatch.setattr("stormspark.checkpoint.state_files._GROUP_ROWS", 20)
    monkeypatch.setattr("stormspark.checkpoint.state_merge._CHUNK_ROWS", 64)
    monkeypatch.setattr("stormspark.checkpoint.state_merge._LEAST_ROWS", 8)
    for n in range(FAN_IN):
        commit(table, {b"%05d" % k: b"%d" % n for k in range(100)})
    expected = state(table)
    for _ in range(8):
        assert table.compact(0)
    clock.now = 1000.0
    for _ in range(2):
        assert table.vacuum(1) == 0  # while they are being written
        clock.now += 100
    assert len(list(Path(table.location).glob("runs/*"))) > 1
    second = StateTable(table.location, clock=clock, vacuum_after_secs=60)
    second.open(1)
    assert second.vacuum(1) == 0
    clock.now += 61
    assert second.vacuum(1) > 1
    assert not list(Path(table.location).glob("runs/*"))
    assert state(second) == expected
    table.close()


def test_vacuum_takes_what_was_merged_and_attempts_that_can_not_be_committed(
    table: StateTable, clock: Clock
) -> None:
    """C38: files of attempts that never committed go; which those are follows from their names, not from a clock."""
    commit(table, *({b"a": b"%d" % n} for n in range(FAN_IN)))
    given_up = write(table, FAN_IN - 1, {b"a": b"x"})
    older = write(table, FAN_IN, {b"a": b"x"}, generation=0)
    table.open(1)
    running = write(table, FAN_IN, {b"a": b"last"}, generation=1)
    compacted(table)
    assert table.vacuum(1) == 0
    clock.now += 59
    assert table.vacuum(1) == 0
    plan = table.plan_restore("count", 1)
    clock.now += 7
    assert table.vacuum(1) == FAN_IN + 2
    there = {str(path.relative_to(table.location)) for path in data_files(table)}
    assert running.path in there and not {given_up.path, older.path} & there
    assert len(there) == 2
    table.commit(FAN_IN, [running])
    assert state(table) == {b"a": b"last"}
    assert [row for batch in plan.batches() for row in batch.to_pylist()] == [
        {"key": b"a", "value": b"%d" % (FAN_IN - 1)}
    ]


def test_vacuum_stops_when_its_time_is_over(table: StateTable, clock: Clock) -> None:
    for _ in range(5):
        write(table, 0, {b"a": b"x"})
    table.commit(0, [])
    table.vacuum(1)
    clock.now += 61
    assert [table.vacuum(0) for _ in range(6)] == [1, 1, 1, 1, 1, 0]


@pytest.mark.slow
def test_hours_are_counted_while_a_driver_is_alive(tmp_path: Path, clock: Clock) -> None:
    """A clock of the system that jumps changes nothing; an outage does not make batches old."""

    def opened(generation: int) -> StateTable:
        table = StateTable(tmp_path / "state", retain_txids=0, retain_hours=2.0, clock=clock)
        table.open(generation)
        return table

    table = opened(0)
    commit(table, *({b"a": b"%d" % n} for n in range(FAN_IN)))
    compacted(table)
    assert (table.oldest_txid, len(DeltaTable(table.location).file_uris())) == (0, 1)
    clock.now += 3600
    commit(table, {b"b": b"1"})
    clock.now += 1_000_000  # an outage, or a jump, between two drivers
    table = opened(1)
    commit(table, *({b"b": b"%d" % n} for n in range(2, FAN_IN + 1)), generation=1)
    compacted(table)
    assert [state(table, n) for n in range(FAN_IN)] == [{b"a": b"%d" % n} for n in range(FAN_IN)]
    clock.now += 3601  # now the first are two hours old
    commit(table, *({b"c": b"%d" % n} for n in range(FAN_IN)), generation=1)
    compacted(table)
    assert table.oldest_txid == FAN_IN - 1
    assert state(table, FAN_IN - 1) == {b"a": b"%d" % (FAN_IN - 1)}
    assert state(table, FAN_IN) == {b"a": b"%d" % (FAN_IN - 1), b"b": b"1"}


@pytest.mark.slow
def test_the_log_is_tidied_in_steps_of_their_own(table: StateTable) -> None:
    for _ in range(state_table._LOG_EVERY):
        commit(table, {b"a": b"x"})
    assert not list(Path(table.location).glob("_delta_log/*.checkpoint.parquet"))
    compacted(table)
    assert list(Path(table.location).glob("_delta_log/*.checkpoint.parquet"))
    again = StateTable(table.location)
    again.open(1)
    assert (again.last_txid, state(again)) == (state_table._LOG_EVERY - 1, {b"a": b"x"})


@pytest.mark.slow
def test_large_values_are_read_and_written_in_bounded_pieces(table: StateTable) -> None:
    """C36: a value may be as large as a whole pickled bolt."""
    values = {b"%d" % n: os.urandom(3 << 20) for n in range(4)}
    commit(table, values)
    assert pq.ParquetFile(data_files(table)[0]).num_row_groups == 4
    assert state(table) == values
    batches = list(table.restore("count", 1))
    assert max(batch.num_rows for batch in batches) < 4


def test_a_task_reads_its_own_row_groups(table: StateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_files, "_GROUP_ROWS", 10)
    changes = [TaskChanges("count", task, ((b"%d" % k, b"x") for k in range(10))) for task in range(1, 6)]
    table.commit(0, [write_changes(table.location, changes, generation=0, txid=0)])
    groups = []
    real = pq.ParquetFile.read_row_group

    def read(self: Any, number: int, **options: Any) -> Any:
        groups.append(number)
        return real(self, number, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read)
    assert len(state(table, task=4)) == 10
    assert groups == [3]


# -- a table that is not as it was ---------------------------------------------------------------


@pytest.fixture
def written(table: StateTable) -> Path:
    commit(table, {b"a": b"1"}, {b"a": b"2"}, {b"b": b"3"})
    return Path(table.location)


def test_a_newer_format_is_refused(written: Path) -> None:
    DeltaTable(written).alter.set_table_properties({state_table._FORMAT_KEY: "2"}, raise_if_not_exists=False)
    for use in (lambda: StateTable(written).open(1), lambda: state(StateTable(written))):
        with pytest.raises(
            CheckpointError, match=r"newer stormspark \(format 2, this one knows 1\): use that version"
        ):
            use()


def test_another_delta_table_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "sales", pa.table({"n": [1]}))
    with pytest.raises(CheckpointError, match="not the state table of a topology"):
        StateTable(tmp_path / "sales").open(0)
    assert DeltaTable(tmp_path / "sales").version() == 0


def test_changed_columns_are_refused(written: Path) -> None:
    DeltaTable(written).alter.add_columns([deltalake.Field("more", PrimitiveType("string"))])
    with pytest.raises(CheckpointError, match=r"does not have stormspark.s columns, .*more.*RESTORE"):
        StateTable(written).open(1)


def test_files_of_another_writer_are_named(written: Path) -> None:
    row = {
        "component": ["count"],
        "task": [1],
        "kind": ["state"],
        "key": [b"a"],
        "value": [b"x"],
        "txid": [9],
    }
    write_deltalake(written, pa.table(row, schema=SCHEMA), mode="append")
    with pytest.raises(CheckpointError, match=r"part-.*\.parquet, which stormspark did not write"):
        StateTable(written).open(1)


def test_a_table_that_somebody_vacuumed_away_is_named(written: Path, table: StateTable) -> None:
    plan = table.plan_restore("count", 1)
    lost = data_files(table)[1]
    lost.unlink()
    with pytest.raises(
        CheckpointError, match=rf"lacks changes/{lost.name}, with changes of the batches 1 to 1"
    ):
        StateTable(written).open(1)
    with pytest.raises(CheckpointError, match=rf"lacks changes/{lost.name}.*vacuumed"):
        list(plan.batches())
    with pytest.raises(CheckpointError, match=rf"lacks changes/{lost.name}"):
        StateTable(written).as_arrow().read_all()


def test_files_that_were_cut_or_changed_are_named(written: Path, table: StateTable) -> None:
    path = data_files(table)[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(CheckpointError, match=rf"changes/{path.name} .* has {len(whole) - 10} bytes"):
        StateTable(written).open(1)
    with pytest.raises(CheckpointError, match=rf"changes/{path.name} .* is damaged"):
        state(StateTable(written))
    at = whole.index(b"count")
    path.write_bytes(whole[:at] + b"C" + whole[at + 1 :])  # one bit
    with pytest.raises(CheckpointError, match=rf"changes/{path.name} .* is damaged: .*[Cc][Rr][Cc]"):
        state(StateTable(written))


def test_a_file_that_was_put_in_the_place_of_another_is_named(written: Path, table: StateTable) -> None:
    first, second = data_files(table)[:2]
    pq.write_table(pa.table({"n": [1, 2]}), first)
    with pytest.raises(
        CheckpointError, match=rf"changes/{first.name} .* is damaged: it has 2 rows of \['n'\] instead of 1"
    ):
        state(StateTable(written))
    shutil.copy(second, first)
    commit(table, {b"a": b"4", b"b": b"5"})
    shutil.copy(data_files(table)[-1], first)
    with pytest.raises(
        CheckpointError, match=rf"changes/{first.name} .* is damaged: it has 2 rows .* instead of 1"
    ):
        state(StateTable(written))


def test_a_table_at_a_url_that_can_not_be_read_may_lack_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    table = StateTable("memory:///somewhere")
    monkeypatch.setattr(deltalake, "DeltaTable", Mock(side_effect=OSError("Generic S3 error")))
    with pytest.raises(
        CheckpointError, match=r"Generic S3 error\. delta-rs needs its address and credentials in"
    ):
        state(table)


@pytest.mark.parametrize("what", ["cut", "garbage", "gap", "headless"])
def test_a_damaged_log_is_named(written: Path, what: str) -> None:
    entries = sorted((written / "_delta_log").glob("*.json"))
    if what == "cut":
        entries[-1].write_bytes(entries[-1].read_bytes()[:-20])
    elif what == "garbage":
        entries[2].write_bytes(b"garbage")
    elif what == "gap":
        entries[2].unlink()
    else:
        for entry in entries[:-1]:
            entry.unlink()
    with pytest.raises(CheckpointError, match=r"the log of the state table .* can't be read"):
        StateTable(written).open(1)
    with pytest.raises(CheckpointError, match=r"the log of the state table .* can't be read"):
        state(StateTable(written))


def test_an_entry_of_the_log_that_a_power_failure_left_empty_was_never_committed(
    written: Path, table: StateTable
) -> None:
    """`commit` returns once its entry is on disk, so an empty last one was promised to nobody."""
    sorted((written / "_delta_log").glob("*.json"))[-1].write_bytes(b"")
    again = StateTable(written)
    again.open(1)
    assert (again.last_txid, state(again)) == (1, {b"a": b"2"})
    commit(again, {b"b": b"4"}, generation=1)
    assert state(StateTable(written)) == {b"a": b"2", b"b": b"4"}


def test_a_missing_table_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no state table at"):
        StateTable(tmp_path / "nothing").restore("count", 1)


def test_a_table_that_was_closed_is_opened_again(written: Path, table: StateTable) -> None:
    table.close()
    with pytest.raises(CheckpointError, match="was closed: open it"):
        commit(table, {b"a": b"9"})
    table.open(0)
    commit(table, {b"a": b"4"})
    assert state(table) == {b"a": b"4", b"b": b"3"}


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="a state table can't be made at"):
        StateTable(tmp_path / "file" / "state").open(0)
    with pytest.raises(CheckpointError, match="the changes of batch 3 can't be written to"):
        write_changes(str(tmp_path / "file"), [TaskChanges("count", 1, [(b"a", b"1")])], generation=0, txid=3)


@pytest.mark.slow
def test_a_disk_that_is_full_stops_a_compaction_and_nothing_else(
    table: StateTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(table, *({b"a": b"%d" % n} for n in range(FAN_IN)))
    with monkeypatch.context() as patch:
        patch.setattr(
            state_files.Folder, "create", lambda self, path: (_ for _ in ()).throw(OSError(28, "full"))
        )
        with pytest.raises(CheckpointError, match=r"can't be compacted: .*full"):
            compacted(table)
    commit(table, {b"a": b"last"})
    compacted(table)
    assert (state(table), len(DeltaTable(table.location).file_uris())) == ({b"a": b"last"}, 2)


def test_a_folder_that_was_copied_is_the_same_table(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path / "copy")
    copy = StateTable(tmp_path / "copy")
    copy.open(7)
    commit(copy, {b"a": b"9"}, generation=7)
    assert (state(copy), state(StateTable(written))) == ({b"a": b"9", b"b": b"3"}, {b"a": b"2", b"b": b"3"})


def test_a_table_that_is_made_while_somebody_looks_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C38: whoever looks for it finds nothing, and then a log; it was made between the two, or is being made."""
    location = tmp_path / "state"
    log = location / "_delta_log"
    reader = StateTable(location)
    found = DeltaTable

    def late(*args: Any, **options: Any) -> DeltaTable:
        try:
            return found(*args, **options)
        except TableNotFoundError:
            if log.exists():
                made()
            else:
                log.mkdir(parents=True)
                (log / f"{0:020}.json#1").touch()  # as delta-rs names what it has not finished
            raise

    def made() -> None:
        monkeypatch.setattr(deltalake, "DeltaTable", found)
        (log / f"{0:020}.json#1").unlink()
        StateTable(location).open(1)

    monkeypatch.setattr(deltalake, "DeltaTable", late)
    assert not reader.exists, "its first entry is being written"
    assert reader.exists and reader.last_txid == -1


def test_an_error_of_delta_rs_is_one_line_with_its_causes(table: StateTable, tmp_path: Path) -> None:
    """delta-rs writes each cause into a line of its own, and what says that a disk is full is the last one."""
    written = write(table, 0, {b"a": b"1"})
    (tmp_path / "state" / "_delta_log").rename(tmp_path / "log")
    (tmp_path / "state" / "_delta_log").touch()
    with pytest.raises(CheckpointError) as told:
        table.commit(0, [written])
    assert "\n" not in str(told.value) and str(told.value).endswith(": Not a directory (os error 20)")
