"""State that outlives its workers: which task gets what when a topology begins again, also in another shape."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.api.state import StatefulBolt
from stormspark.checkpoint.drivers_state_table import DriversStateTable
from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.redistribution import NotDealtOutError
from stormspark.checkpoint.state_components import component_states
from stormspark.checkpoint.state_files import changed_rows
from stormspark.checkpoint.state_table import StateTable, TaskChanges
from stormspark.errors import CheckpointError, InvalidTopologyError
from stormspark.grouping.hashing import fields_task_index
from stormspark.plan import plan_topology
from tests.unit.worker.components import Script
from tests.unit.worker.durable_workers import DurableWorkers

WORDS = [(f"word-{n % 20}",) for n in range(100)]
COUNTS = {f"word-{n}": 5 for n in range(20)}


class Count(StatefulBolt[Any]):
    """Counts by key."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.counts = state

    def execute(self, tup: Any) -> None:
        self.counts[tup[0]] = count = self.counts.get(tup[0], 0) + 1
        self.collector.emit((tup[0], count), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word", "count"))


def counting(rows: list[tuple[Any, ...]] = WORDS, tasks: int = 4, bolt: Any = None, **conf: Any) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("words", Script(rows, ("word",)))
    count = builder.set_bolt("count", bolt or Count(), tasks).fields_grouping("words", Fields("word"))
    count.add_configurations({key.replace("_", "."): value for key, value in conf.items()})
    return builder.create_topology("counting")


@pytest.mark.slow
def test_state_goes_by_way_of_the_driver_and_back(tmp_path: Path):
    """C36: the table is one, whoever writes it; also with another number of tasks, and more state than one message has."""
    many = [(f"word-{n}-{'x' * 2000}",) for n in range(10_000)]
    for generation, (by_driver, workers, tasks) in enumerate(
        [(True, 2, 4), (True, 3, 4), (False, 1, 4), (True, 2, 3), (True, 1, 5)]
    ):
        run = DurableWorkers(
            counting(many, tasks, stormspark_state_keys="grouping"),
            tmp_path,
            {"topology.workers": workers},
            generation,
            by_driver=by_driver,
        )
        run.run_batch()
        while sum(run.state("count").values()) < len(many) * (generation + 1):
            run.run_batch()
        run.close()
        assert set(run.state("count").values()) == {generation + 1}
        assert len(run.state("count")) == len(many)
    assert len(list((tmp_path / "changes").glob("*.parquet"))) > 5


def test_changes_of_another_batch_or_driver_are_not_committed(tmp_path: Path):
    """C38: by way of the driver as by a file."""
    table = DriversStateTable(tmp_path)
    table.open(1)
    changes = [TaskChanges("count", 0, [(b"k", b"v")])]
    for generation, txid in ((0, 0), (1, 1)):
        with pytest.raises(
            CheckpointError, match=f"changes of batch {txid} of generation {generation} can't be"
        ):
            table.commit(0, [changed_rows(changes, generation=generation, txid=txid)])
    table.commit(0, [changed_rows(changes, generation=1, txid=0), None], {b"tasks": b"1"})
    assert [
        row["key"] for rows in table.newest({"count": [0, 1], "none": None}) for row in rows.to_pylist()
    ] == [b"k"]
    assert table.metadata() == {b"tasks": b"1"}


@pytest.mark.slow
def test_state_goes_with_its_task_to_another_number_of_workers(tmp_path: Path):
    """C36, A18: ids of tasks shift with the ackers, of which there are as many as workers; state goes by the task's index."""
    for generation, workers in enumerate((1, 3, 2)):
        run = DurableWorkers(counting(), tmp_path, {"topology.workers": workers}, generation)
        run.run_batch()
        run.close()
        assert run.state("count") == {word: count * (generation + 1) for word, count in COUNTS.items()}


BY_GROUPING: dict[str, Any] = {"stormspark_state_keys": "grouping"}


def _of_table(folder: Path, component: str = "count") -> dict[Any, tuple[int, Any]]:
    """By key: which task has it, and its value."""
    table = StateTable(folder)
    table.refresh()
    found: dict[Any, tuple[int, Any]] = {}
    for row in table.as_arrow(component).read_all().to_pylist():
        key = decode_key(row["key"])
        assert key not in found, f"{key} is with two tasks"
        found[key] = row["task"], pickle.loads(row["value"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_keys_of_a_fields_grouping_are_dealt_out_to_more_tasks_and_to_fewer(tmp_path: Path, workers: int):
    """C36, D17: each key is with the task that the grouping asks, in the workers and in the table."""
    for generation, tasks in enumerate((4, 7, 7, 2)):
        topology = counting(tasks=tasks, **BY_GROUPING)
        run = DurableWorkers(topology, tmp_path, {"topology.workers": workers}, generation)
        run.run_batch()
        run.run_batch()
        run.close()
        expected = {word: count * (generation + 1) for word, count in COUNTS.items()}
        assert run.state("count") == expected
        by_hash = {word: (fields_task_index((word,), tasks), count) for word, count in expected.items()}
        assert _of_table(tmp_path) == by_hash


def test_keys_that_are_not_touched_are_dealt_out_too(tmp_path: Path):
    """When the number of tasks changes, keys that no tuple touches move to their new tasks too (C36)."""
    DurableWorkers(counting(**BY_GROUPING), tmp_path, {"topology.workers": 2}).run_batch()
    run = DurableWorkers(counting([], tasks=3, **BY_GROUPING), tmp_path, {"topology.workers": 2}, 1)
    run.run_batch()
    assert _of_table(tmp_path) == {word: (fields_task_index((word,), 3), 5) for word in COUNTS}
    before = run.commits._table.metadata(as_of=0)
    assert component_states(before)["count"].tasks == 4, "as of the batch before, all is as it was"


@pytest.mark.slow
def test_a_crash_before_the_first_commit_leaves_the_state_as_it_was(tmp_path: Path):
    """C36, C44: dealing out is part of the first batch, and is taken back with it."""
    DurableWorkers(counting(**BY_GROUPING), tmp_path, {"topology.workers": 2}).run_batch()
    before = _of_table(tmp_path)

    def dies(*_: Any) -> None:
        raise InterruptedError

    crashes = DurableWorkers(counting(tasks=3, **BY_GROUPING), tmp_path, {"topology.workers": 2}, 1)
    crashes.commits.commit = dies  # type: ignore[assignment]
    with pytest.raises(InterruptedError):
        crashes.run_batch()
    assert _of_table(tmp_path) == before
    again = DurableWorkers(counting(tasks=5, **BY_GROUPING), tmp_path, {"topology.workers": 2}, 2)
    again.run_batch()
    assert _of_table(tmp_path) == {word: (fields_task_index((word,), 5), 10) for word in COUNTS}


def test_a_first_batch_that_is_taken_back_deals_out_again(tmp_path: Path):
    """C36, C44: also in workers that live on."""

    mark = tmp_path / "failed"

    class FailsOnce(Count):
        def execute(self, tup: Any) -> None:
            if not mark.exists():
                mark.touch()
                raise KeyError("once")
            super().execute(tup)

    DurableWorkers(counting(**BY_GROUPING), tmp_path, {"topology.workers": 2}).run_batch()
    topology = counting(tasks=3, bolt=FailsOnce(), **BY_GROUPING)
    run = DurableWorkers(topology, tmp_path, {"topology.workers": 2}, 1)
    run.run_batch()
    run.run_batch()
    assert mark.exists()
    assert {word: task for word, (task, _) in _of_table(tmp_path).items()} == {
        word: fields_task_index((word,), 3) for word in COUNTS
    }


def test_another_number_of_tasks_is_refused_where_nobody_says_what_keys_are(tmp_path: Path):
    """C36: the message says what can be done."""
    DurableWorkers(counting(), tmp_path, {}).run_batch()
    with pytest.raises(
        CheckpointError, match=r"bolt 'count' has 3 tasks, .* is of 4 tasks.*state.keys to grouping"
    ):
        DurableWorkers(counting(tasks=3), tmp_path, {}, 1)


def test_state_that_nobody_has_any_more_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """C36: of a component that was renamed, say, whose tasks begin with nothing."""
    DurableWorkers(counting(), tmp_path, {}).run_batch()
    builder = TopologyBuilder()
    builder.set_spout("words", Script(WORDS, ("word",)))
    builder.set_bolt("tally", Count(), 4).fields_grouping("words", Fields("word"))
    with caplog.at_level("WARNING"):
        DurableWorkers(builder.create_topology("counting"), tmp_path, {}, 1).run_batch()
    assert "the state of 'count' in" in caplog.text and "belongs to no component of counting" in caplog.text


def test_a_key_that_no_grouping_asks_for_is_named(tmp_path: Path):
    """C36: keys must be what the user says they are."""

    def by_two(tasks: int) -> Topology:
        builder = TopologyBuilder()
        builder.set_spout("words", Script([("a", 1)], ("word", "n")))
        count = builder.set_bolt("count", ByTriple(), tasks).fields_grouping("words", Fields("word", "n"))
        count.add_configurations({"stormspark.state.keys": "grouping"})
        return builder.create_topology("counting")

    class ByTriple(Count):
        def execute(self, tup: Any) -> None:
            self.counts[tup[0], tup[1], "seen"] = True
            self.collector.ack(tup)

    DurableWorkers(by_two(2), tmp_path, {}).run_batch()
    with pytest.raises(CheckpointError, match=r"the key \('a', 1, 'seen'\) is not a tuple of the 2 values"):
        DurableWorkers(by_two(3), tmp_path, {}, 1)


def test_a_setting_that_can_not_hold_is_refused_when_the_topology_is_planned():
    """C36: with the user's line."""

    def planned(setting: str, grouping: str) -> None:
        builder = TopologyBuilder()
        builder.set_spout("words", Script(WORDS, ("word",)))
        bolt = builder.set_bolt("count", Count(), 2)
        bolt.shuffle_grouping("words") if grouping == "shuffle" else bolt.fields_grouping(
            "words", Fields("word")
        )
        bolt.add_configurations({"stormspark.state.keys": setting})
        plan_topology(builder.create_topology("counting"))

    planned("grouping", "fields")
    with pytest.raises(
        InvalidTopologyError, match=r"test_durable_state.*by shuffle, but stormspark.state.keys is grouping"
    ):
        planned("grouping", "shuffle")
    with pytest.raises(InvalidTopologyError, match="must be grouping"):
        planned("groupings", "fields")


@pytest.mark.parametrize("numbers", [[0.0, -0.0], [-0.0]])
def test_keys_that_a_grouping_tells_apart_and_a_state_does_not_are_not_dealt_out(
    tmp_path: Path, numbers: list[float]
) -> None:
    """C36, D3: 0.0 and -0.0 are two keys to a fields grouping, as in Storm, and one to a state."""
    rows = [(number,) for number in numbers]
    run = DurableWorkers(counting(rows, 3, **BY_GROUPING), tmp_path, {"topology.workers": 2}, 0)
    run.run_batch()
    run.run_batch()
    run.close()
    with pytest.raises(
        CheckpointError,
        match=r"task 2 of 3 has the key 0.0, .* sends that key to task 1.* as many tasks as before",
    ):
        DurableWorkers(counting([], 4, **BY_GROUPING), tmp_path, {"topology.workers": 2}, 1).run_batch()


def test_keys_that_are_not_those_of_the_tuples_are_not_dealt_out(tmp_path: Path) -> None:
    """C36: a count by words in small letters would begin anew in another task, without a word."""

    class InSmallLetters(Count):
        def execute(self, tup: Any) -> None:
            self.counts[tup[0].lower()] = 1
            self.collector.ack(tup)

    def topology(tasks: int) -> Topology:
        return counting([("Storm",), ("sPark",)], tasks, InSmallLetters(), **BY_GROUPING)

    DurableWorkers(topology(3), tmp_path, {}).run_batch()
    with pytest.raises(
        CheckpointError, match=r"has the key 's.*', but a fields grouping sends that key to task"
    ):
        DurableWorkers(topology(4), tmp_path, {}, 1)


class Word(str):
    """A key of a class that may have another name by now."""

    __slots__ = ()
    is_gone = False

    def __reduce__(self) -> Any:
        return _word, (str(self),)


def _word(text: str) -> Word:
    if Word.is_gone:
        raise AttributeError("module 'words' has no attribute 'Word'")
    return Word(text)


def test_a_key_that_can_not_be_read_any_more_is_not_dealt_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C36: the error says which component it is, and what to do."""
    DurableWorkers(counting([(Word("a"),)], 3, **BY_GROUPING), tmp_path, {}).run_batch()
    monkeypatch.setattr(Word, "is_gone", True)
    with pytest.raises(
        NotDealtOutError, match=r"bolt 'count' has 4 tasks now.*'words' has no attribute 'Word'.*as before"
    ):
        DurableWorkers(counting([], 4, **BY_GROUPING), tmp_path, {}, 1)
