"""What is known of a batch before it is committed: durable, read by nobody but its next attempt, and fenced."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormspark.checkpoint.state_compaction import FAN_IN
from stormspark.checkpoint.state_table import StateTable, TaskChanges, write_changes
from stormspark.errors import CheckpointError, FencedError


@pytest.fixture
def table(tmp_path: Path) -> StateTable:
    table = StateTable(tmp_path / "state", retain_txids=2)
    table.open(0)
    return table


def commit(table: StateTable, txid: int, generation: int = 0) -> None:
    changes = [TaskChanges("count", 0, [(b"n", b"%d" % txid)])]
    file = write_changes(table.location, changes, generation=generation, txid=txid)
    table.commit(txid, [file], {b"driver": b"%d" % txid})


def test_an_announcement_outlives_its_driver_and_ends_with_its_batch(table: StateTable) -> None:
    """G3: the driver that comes after finds it, until the batch is committed; so does this one after an error."""
    assert table.announced() == (-1, {})
    commit(table, 0)
    table.announce(1, {b"spout/0": b"meta", b"spout/1": b"more"})
    table.open(0)
    assert table.announced() == (1, {b"spout/0": b"meta", b"spout/1": b"more"})
    successor = StateTable(table.location)
    successor.open(1)
    assert successor.announced() == (1, {b"spout/0": b"meta", b"spout/1": b"more"})
    commit(successor, 1, generation=1)
    assert successor.announced() == (-1, {})
    successor.announce(2, {b"spout/1": b"next"})
    assert successor.announced() == (2, {b"spout/1": b"next"})


def test_an_announcement_is_no_part_of_the_state(table: StateTable) -> None:
    """G3: restores, metadata and readers see what was committed, before and after the batch."""
    for txid in range(3):
        table.announce(txid, {b"spout/0": b"meta"})
        assert table.last_txid == txid - 1
        commit(table, txid)
        assert [row["value"] for batch in table.restore("count", 0) for row in batch.to_pylist()] == [
            b"%d" % txid
        ]
        assert table.metadata() == {b"driver": b"%d" % txid}
        assert table.as_arrow().read_all().num_rows == 1


@pytest.mark.slow
def test_compaction_leaves_what_is_announced_alone(table: StateTable) -> None:
    """G3: it waits for the other files of its batch, so that merged batches never overlap."""
    last = 3 * FAN_IN
    for txid in range(last):
        table.announce(txid, {b"spout/0": b"%d" % txid})
        while table.compact(0):
            pass
        commit(table, txid)
    table.announce(last, {b"spout/0": b"now"})
    while table.compact(0):
        pass
    fresh = StateTable(table.location)
    fresh.open(1)
    assert fresh.announced() == (last, {b"spout/0": b"now"})
    commit(fresh, last, generation=1)
    assert [row["value"] for batch in fresh.restore("count", 0) for row in batch.to_pylist()] == [
        b"%d" % last
    ]


def test_a_batch_is_announced_once_and_in_its_turn(table: StateTable) -> None:
    """G3, G5: a second announcement could be another one than what committers have acted on."""
    commit(table, 0)
    with pytest.raises(CheckpointError, match="already"):
        table.announce(0, {b"spout/0": b"late"})
    with pytest.raises(CheckpointError, match="the next must be 1"):
        table.announce(2, {b"spout/0": b"early"})
    table.announce(1, {})
    with pytest.raises(CheckpointError, match="announced already"):
        table.announce(1, {b"spout/0": b"other"})
    assert table.announced() == (1, {})


def test_a_driver_that_was_fenced_off_can_not_announce(table: StateTable) -> None:
    """G3: so none of its committers acts beside those of its successor."""
    commit(table, 0)
    StateTable(table.location).open(1)
    with pytest.raises(FencedError):
        table.announce(1, {b"spout/0": b"meta"})
