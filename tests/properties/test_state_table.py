"""The state table as a state machine, against dicts: batches, crashes, restores, compactions, vacuums, other drivers."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormspark.checkpoint import state_files, state_merge
from stormspark.checkpoint.state_files import SCHEMA, FileDescription
from stormspark.checkpoint.state_merge import merged
from stormspark.checkpoint.state_table import StateTable, TaskChanges, write_changes
from stormspark.errors import CheckpointError, FencedError

Group = tuple[str, int, str]
State = dict[Group, dict[bytes, bytes]]
Changes = dict[Group, dict[bytes, bytes | None]]

GROUPS = [("a", 1, "state"), ("a", 2, "state"), ("b", 3, "outbox"), ("b", 3, "state")]
KEYS = [b"", b"\x00", b"k", b"k\xff", b"key", b"\xff"]
CHANGES = st.dictionaries(
    st.sampled_from(GROUPS),
    st.dictionaries(st.sampled_from(KEYS), st.none() | st.binary(max_size=2), max_size=4),
    max_size=4,
)


# -- merging -------------------------------------------------------------------------------------


@st.composite
def runs(draw: st.DrawFn) -> list[list[tuple[Group, bytes, int, bytes | None]]]:
    """Rows of neighbouring runs, newest first; a key may have several batches in each."""
    found, first = [], 0
    for _ in range(draw(st.integers(1, 5))):
        last = first + draw(st.integers(0, 3))
        rows = draw(
            st.dictionaries(
                st.tuples(st.sampled_from(GROUPS), st.sampled_from(KEYS), st.integers(first, last)),
                st.none() | st.binary(max_size=2),
                max_size=25,
            )
        )
        found.append(
            sorted(((*key, value) for key, value in rows.items()), key=lambda row: (row[0], row[1], -row[2]))
        )
        first = last + 1
    return found[::-1]


def batches(rows: list[Any], sizes: list[int]) -> list[pa.RecordBatch]:
    """Cut at random."""
    columns = [
        {"component": g[0], "task": g[1], "kind": g[2], "key": key, "value": value, "txid": txid}
        for g, key, txid, value in rows
    ]
    found, begin = [], 0
    while begin < len(columns):
        end = begin + sizes[len(found) % len(sizes)]
        found.append(pa.RecordBatch.from_pylist(columns[begin:end], schema=SCHEMA))
        begin = end
    return found


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    runs(),
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
    st.integers(-1, 20),
    st.booleans(),
    st.integers(1, 40),
)
def test_a_merge_keeps_what_restores_need(
    found: list[Any], sizes: list[int], horizon: int, drop: bool, chunk: int
) -> None:
    """C35: of each key what is newer than the horizon, and the newest that is not; whatever pieces the rows come in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_merge, "_CHUNK_ROWS", chunk)
        patch.setattr(state_merge, "_LEAST_ROWS", 1)
        after = pa.Table.from_batches(
            merged([batches(run, sizes) for run in found], horizon, drop), schema=SCHEMA
        ).to_pylist()
    expected, before = [], None
    for group, key, txid, value in sorted(
        (row for run in found for row in run), key=lambda row: (row[0], row[1], -row[2])
    ):
        covered = before == (group, key)
        if txid <= horizon:
            before = (group, key)
            if covered or (drop and value is None):
                continue
        expected.append((group, key, txid, value))
    assert [
        ((r["component"], r["task"], r["kind"]), r["key"], r["txid"], r["value"]) for r in after
    ] == expected


# -- the table ---------------------------------------------------------------------------------------


class Clock:
    """Goes on by itself, so that a step of no budget is one step, and by leaps."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class StateTables(RuleBasedStateMachine):
    """C35, C38, G2, G5: what is committed is there once, whoever died when, and nothing else is; as of every retained batch."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="state-table-"))
        self.clock = Clock()
        self.generation = -1
        self.history: list[State] = []  # after each batch
        self.driver: StateTable
        self.fenced: list[StateTable] = []
        self.late: list[FileDescription] = []
        self.written: tuple[Changes, list[FileDescription | None]] | None = None
        self.patch = pytest.MonkeyPatch()
        # Small pieces: several files to a run, several row groups to a file, several steps to a merge.
        self.patch.setattr(state_files, "_FILE_ROWS", 8)
        self.patch.setattr(state_files, "_GROUP_ROWS", 4)
        self.patch.setattr(state_merge, "_CHUNK_ROWS", 8)
        self.patch.setattr(state_merge, "_LEAST_ROWS", 1)
        self.patch.setattr(os, "fsync", lambda handle: None)  # no power fails here

    def teardown(self) -> None:
        if self.history:
            self.everything()
        self.patch.undo()
        for table in (self.driver, *self.fenced):
            table.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @initialize(retain=st.integers(0, 4))
    def begin(self, retain: int) -> None:
        self.retain = retain
        self.new_driver()

    def new_driver(self) -> None:
        self.generation += 1
        self.driver = StateTable(
            self.folder / "state", retain_txids=self.retain, vacuum_after_secs=60, clock=self.clock
        )
        self.driver.open(self.generation)
        self.give_up()

    def give_up(self) -> None:
        """The attempt is over; what it wrote may come late."""
        if self.written is not None:
            self.late += [file for file in self.written[1] if file is not None]
        self.written = None

    @property
    def last(self) -> int:
        return len(self.history) - 1

    # -- a batch -------------------------------------------------------------------------------------

    @rule(changes=CHANGES, workers=st.integers(1, 3))
    def workers_write(self, changes: Changes, workers: int) -> None:
        self.give_up()
        self.written = (changes, self.files(changes, workers))

    def files(self, changes: Changes, workers: int) -> list[FileDescription | None]:
        shares: list[list[TaskChanges]] = [[] for _ in range(workers)]
        for (component, task, kind), items in changes.items():
            shares[task % workers].append(TaskChanges(component, task, items.items(), kind))
        return [
            write_changes(str(self.folder / "state"), share, generation=self.generation, txid=self.last + 1)
            for share in shares
        ]

    def happened(self, changes: Changes) -> None:
        state = {group: dict(keys) for group, keys in self.history[-1].items()} if self.history else {}
        for group, items in changes.items():
            keys = state.setdefault(group, {})
            for key, value in items.items():
                if value is None:
                    keys.pop(key, None)
                else:
                    keys[key] = value
        self.history.append(state)

    @rule(changes=CHANGES, fails=st.sampled_from(["no", "before", "after", "unheard"]))
    def commit(self, changes: Changes, fails: str) -> None:
        changes, files = self.written or (changes, self.files(changes, 1))
        self.written = changes, files
        real = DeltaTable.create_write_transaction

        def broken(table: DeltaTable, *arguments: Any, **options: Any) -> None:
            if fails == "after":
                real(table, *arguments, **options)
            msg = "broken"
            raise RuntimeError(msg)

        if fails in ("before", "after"):
            self.patch.setattr(DeltaTable, "create_write_transaction", broken)
        try:
            self.driver.commit(self.last + 1, files)
        except CheckpointError:
            assert fails == "before"
            self.patch.setattr(DeltaTable, "create_write_transaction", real)
            self.driver.open(self.generation)
            self.give_up()
            return
        finally:
            self.patch.setattr(DeltaTable, "create_write_transaction", real)
        assert fails != "before"
        self.written = None
        self.happened(changes)
        if fails == "unheard":
            self.another_driver(lives_on=False)

    @rule(
        several=st.lists(CHANGES, min_size=1, max_size=5), times=st.integers(2, 6), steps=st.integers(0, 20)
    )
    def many_batches(self, several: list[Changes], times: int, steps: int) -> None:
        self.give_up()
        for changes in several * times:
            self.driver.commit(self.last + 1, self.files(changes, 1))
            self.happened(changes)
            for _ in range(steps):
                self.driver.compact(0)

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def a_late_worker_reports(self, data: st.DataObject) -> None:
        """What was written for a batch of the same number and generation is as good as what comes after it."""
        file = data.draw(st.sampled_from(self.late))
        if file.generation != self.generation or file.txids[0] != self.last + 1:
            with pytest.raises(CheckpointError):
                self.driver.commit(self.last + 1, [file])

    @rule(off=st.sampled_from([-1, 1, 2]))
    def a_batch_out_of_order(self, off: int) -> None:
        with pytest.raises(CheckpointError):
            self.driver.commit(self.last + 1 + off, [])

    # -- drivers ---------------------------------------------------------------------------------------

    @rule(lives_on=st.booleans())
    def another_driver(self, lives_on: bool) -> None:
        if lives_on:
            self.fenced.append(self.driver)
        else:
            self.driver.close()
        self.new_driver()
        assert self.driver.last_txid == self.last

    @precondition(lambda self: self.fenced)
    @rule(changes=CHANGES, compact=st.booleans(), data=st.data())
    def the_first_driver_goes_on(self, changes: Changes, compact: bool, data: st.DataObject) -> None:
        first = data.draw(st.sampled_from(self.fenced))
        assert first._generation is not None
        with pytest.raises(FencedError):  # noqa: PT012 - whichever writes first
            if compact:
                while first.compact(0):
                    pass
            items = [TaskChanges(*group[:2], keys.items(), group[2]) for group, keys in changes.items()]
            txid = first.last_txid + 1
            first.commit(
                txid,
                [write_changes(str(self.folder / "state"), items, generation=first._generation, txid=txid)],
            )
        with pytest.raises(FencedError):
            first.vacuum(1)

    # -- housekeeping ------------------------------------------------------------------------------------

    @rule(steps=st.integers(1, 100))
    def compact(self, steps: int) -> None:
        for _ in range(steps):
            self.driver.compact(0)

    @rule(secs=st.sampled_from([1, 30, 61]), budget=st.sampled_from([0, 10]))
    def vacuum(self, secs: int, budget: int) -> None:
        self.driver.vacuum(budget)
        self.clock.now += secs
        self.driver.vacuum(budget)

    @precondition(lambda self: self.fenced)
    @rule(data=st.data())
    def a_fenced_driver_vacuums(self, data: st.DataObject) -> None:
        """It may not know yet that it is fenced, and takes nothing that is needed."""
        first = data.draw(st.sampled_from(self.fenced))
        self.clock.now += 61
        try:
            for _ in range(2):
                first.vacuum(10)
                self.clock.now += 61
        except FencedError:
            pass

    # -- what is there ---------------------------------------------------------------------------------

    @precondition(lambda self: self.history)
    @rule(group=st.sampled_from(GROUPS), back=st.integers(0, 4), fresh=st.booleans())
    def restore(self, group: Group, back: int, fresh: bool) -> None:
        as_of = self.last - min(back, self.retain, self.last)
        reader = StateTable(self.folder / "state") if fresh else self.driver
        self.check(reader, group, as_of)

    def check(self, reader: StateTable, group: Group, as_of: int) -> None:
        rows = [
            (row["key"], row["value"])
            for batch in reader.restore(group[0], group[1], as_of, group[2])
            for row in batch.to_pylist()
        ]
        assert rows == sorted(self.history[as_of].get(group, {}).items())

    @invariant()
    def the_last_batch_is_known(self) -> None:
        if hasattr(self, "driver"):
            assert self.driver.last_txid == self.last

    @precondition(lambda self: self.history)
    @rule()
    def everything(self) -> None:
        """As of every retained batch, all tasks, by a reader that knows nothing but the folder."""
        reader = StateTable(self.folder / "state")
        assert 0 <= reader.oldest_txid <= max(0, self.last - self.retain)
        for as_of in range(reader.oldest_txid, self.last + 1):
            rows = reader.as_arrow(None, as_of, kind=None).read_all().to_pylist()
            found = {((row["component"], row["task"], row["kind"]), row["key"]): row["value"] for row in rows}
            expected = self.history[as_of].items()
            assert len(rows) == len(found)
            assert found == {(group, key): value for group, keys in expected for key, value in keys.items()}


StateTables.TestCase.settings = settings(
    max_examples=settings().max_examples // 4,
    deadline=None,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStateTables = pytest.mark.slow(StateTables.TestCase)
