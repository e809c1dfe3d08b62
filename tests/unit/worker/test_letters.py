"""Dead letters in the reports of workers, and their rows when they come again: none is lost, whoever dies."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormspark import Fields, StatefulBolt, TopologyBuilder
from stormspark.api import ExponentialBackoff
from stormspark.checkpoint import dead_letters as letter_table
from stormspark.checkpoint.dead_letters import local_letters
from stormspark.local import InProcessWorkers, SimulatedClock
from stormspark.plan import plan_topology
from stormspark.spark.letter_replays import LetterReplays
from stormspark.worker.sources import letters as letters_module
from stormspark.worker.sources.letters import GivenUp, LetterLog, letter_of
from stormspark.worker.sources.rows import Row, RowKey, is_letter
from tests.unit.worker.components import Call
from tests.unit.worker.durable_workers import DurableWorkers
from tests.unit.worker.test_rows_in_trouble import Lines


class Seen(StatefulBolt):
    """Counts lines; some it fails until it is repaired."""

    repaired = False

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: Any) -> None:
        self.counts = state

    def execute(self, tup: Any) -> None:
        if tup.values[0] % 3 == 0 and not Seen.repaired:
            self.collector.fail(tup)
            return
        self.counts.put(tup.values[0], self.counts.get(tup.values[0], 0) + 1)
        self.collector.ack(tup)


class KilledError(Exception):
    """The driver is killed."""


class Drivers(DurableWorkers):
    """Drivers one after another on one folder, which keep dead letters in a table as on Spark."""

    def __init__(self, folder: Path, generation: int, kills: list[str], attempts: int = 1) -> None:
        builder = TopologyBuilder()
        builder.set_spout("lines", Lines("n"))
        builder.set_bolt("seen", Seen(), 2).fields_grouping("lines", Fields("n"))
        conf = {"topology.workers": 2, "stormspark.exactly.once.attempts": attempts}
        super().__init__(builder.create_topology("letters"), folder / "state", conf, generation)
        self.kills = kills
        self._letters = table = local_letters(folder)
        batch = self._committed + 1
        replays = LetterReplays(self.plan, table.assign(batch, ["lines"]))
        for index, messages in replays.messages((), self._committed).items():
            for message in messages:
                self.workers[index].adopt(message.task, message.rows, letters=message.letters)

    def open(self, active: bool = True) -> None:
        for worker in self.workers:
            for spout in worker.wiring.spouts:
                spout.source.letters = LetterLog(spout.component.id, spout.id)
        super().open(active)

    def _write_letters(self) -> None:
        self._die("before letters")
        super()._write_letters()
        self._die("after letters")

    def commit(self, batch: int, files: Any) -> None:
        super().commit(batch, files)
        self._die("after commit")

    def _die(self, where: str) -> None:
        if where in self.kills:
            self.kills.remove(where)
            raise KilledError(where)

    def spout(self) -> int:
        return self.plan.components["lines"].tasks[0]


def lives(folder: Path, kills: list[str], rows: list[tuple[int, int]], batches: int = 2) -> DurableWorkers:
    """Run drivers until nobody kills them any more; ``rows`` are those of the next batch, which comes again if it must."""
    found = len(list(folder.glob("life-*")))
    while True:
        (folder / f"life-{found}").touch()
        driver = Drivers(folder, found, kills)
        found += 1
        try:
            committed = driver.commits.last
            if rows and committed < rows[0][1]:
                driver.add_rows(driver.spout(), 0, [(n,) for n, _ in rows])
            for _ in range(batches):
                driver.run_batch()
        except KilledError:
            continue
        return driver


@pytest.mark.parametrize("first", [[], ["before letters"], ["after letters"], ["after commit"]])
@pytest.mark.parametrize(
    "second", [[], ["before letters"], ["after commit"], ["after letters", "before letters"]]
)
def test_replayed_rows_of_transactions_count_once_whoever_dies(
    first: list[str], second: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is in the state once, or has one letter; repaired and replayed, each is in the state once."""
    monkeypatch.setattr(Seen, "repaired", False)
    driver = lives(tmp_path, list(first), [(n, 0) for n in range(10)])
    assert driver.state("seen") == {n: 1 for n in range(10) if n % 3}
    table = local_letters(tmp_path)
    given_up = table.letters(driver.commits.last)
    assert sorted(one.letter.row for one in given_up) == ["[0]", "[3]", "[6]", "[9]"]
    assert all("too many attempts" in one.letter.reason for one in given_up)
    table.order([one.id for one in given_up], driver.commits.last)
    monkeypatch.setattr(Seen, "repaired", True)
    driver = lives(tmp_path, list(second), [])
    assert driver.state("seen") == dict.fromkeys(range(10), 1)
    assert all(one.replayed_in is not None for one in table.letters(driver.commits.last))
    driver = lives(tmp_path, [], [])
    assert driver.state("seen") == dict.fromkeys(range(10), 1)


@pytest.mark.parametrize("kills", [[], ["after commit"], ["before letters", "after commit", "after letters"]])
def test_replayed_rows_of_several_batches_count_once_whoever_dies(
    kills: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of later batches wait in their tasks, and don't keep the earlier ones from their end."""
    monkeypatch.setattr(letter_table, "_BATCH_ROWS", 2)
    monkeypatch.setattr(Seen, "repaired", False)
    driver = lives(tmp_path, [], [(n, 0) for n in range(0, 15, 3)])
    table = local_letters(tmp_path)
    table.order([one.id for one in table.letters(driver.commits.last)], driver.commits.last)
    monkeypatch.setattr(Seen, "repaired", True)
    driver = lives(tmp_path, list(kills), [], batches=1)
    assert sum(worker.backlog for worker in driver.workers) > 0, "an end of the input waits for the rest"
    driver = lives(tmp_path, [], [], batches=3)
    assert driver.state("seen") == dict.fromkeys(range(0, 15, 3), 1)
    batches = [one.replayed_in for one in table.letters(driver.commits.last)]
    assert None not in batches and len({*batches}) == 3


def test_a_replayed_row_that_fails_again_is_another_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seen, "repaired", False)
    driver = lives(tmp_path, [], [(3, 0)])
    table = local_letters(tmp_path)
    (before,) = table.letters(driver.commits.last)
    table.order([before.id], driver.commits.last)
    driver = lives(tmp_path, [], [])
    replayed, new = table.letters(driver.commits.last)
    assert replayed.id == before.id and replayed.replayed_in == new.batch
    assert (new.status, new.letter.message_id) == ("given up", before.letter.message_id)


def fails(bolt: Any, tup: Any) -> None:
    (bolt.collector.fail if tup.values[0] % 3 == 0 else bolt.collector.ack)(tup)


class _Letters:
    """Takes letters, as a driver's table does."""

    place = "here"

    def __init__(self) -> None:
        self.of: dict[int, list[str]] = {}

    def write(self, batch: int, letters: Any, *, transactions: bool) -> None:
        self.of.setdefault(batch, []).extend(one.row for one in letters)

    @property
    def rows(self) -> Counter[str]:
        return Counter(row for rows in self.of.values() for row in rows)


def plain(rows: range, **retry: Any) -> tuple[InProcessWorkers, SimulatedClock, Any, _Letters]:
    builder = TopologyBuilder()
    spout = Lines("n")
    spout.retry = ExponentialBackoff(**{"max_retries": 0, **retry})
    builder.set_spout("rows", spout)
    builder.set_bolt("bolt", Call(fails)).shuffle_grouping("rows")
    clock, letters = SimulatedClock(), _Letters()
    workers = InProcessWorkers(
        plan_topology(builder.create_topology("plain"), {"topology.workers": 1}),
        clock,
        Random(5),
        letters=letters,
    )
    workers.open()
    (task,) = (task for task in workers.workers[0].tasks.values() if task.component.id == "rows")
    workers.add_rows(task.id, 0, [(n,) for n in rows])
    return workers, clock, task, letters


def test_rows_that_are_given_up_are_in_the_reports_once() -> None:
    workers, clock, task, letters = plain(range(10))
    for _ in range(5):
        workers.run_batch()
        clock.advance(1.0)
    assert letters.rows == Counter({"[0]": 1, "[3]": 1, "[6]": 1, "[9]": 1})
    assert task.counters.dead_letters == 4 and not list(task.source.rows.open_ids())


def test_letters_of_more_than_a_report_come_with_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile their rows are open, and are not emitted any more."""
    monkeypatch.setattr(letters_module, "_REPORT_BYTES", 1000)
    workers, clock, task, letters = plain(range(0, 300, 3))
    workers.run_batch()
    first = letters.rows.total()
    assert 0 < first < 10
    assert len(list(task.source.rows.open_ids())) == 100 - first
    emitted = 0
    for _ in range(60):
        clock.advance(1.0)
        workers.run_batch()
        emitted = emitted or task.counters.emitted
    assert task.counters.emitted == emitted == 100
    assert letters.rows == Counter({f"[{n}]": 1 for n in range(0, 300, 3)})
    assert not list(task.source.rows.open_ids())


def test_a_batch_that_runs_again_reports_its_letters_again() -> None:
    """A worker that lives keeps letters of older rows; rows of the batch come again."""
    log = LetterLog("lines", 3, lambda: 0.0)
    log.add(Row((3, 0, 0), ("old",), 3), "no")
    log.add(Row((7, 0, 0), ("new",), 7), "no")
    assert [one.row for one in log.take(7, 0)] == ['["old"]', '["new"]'] and log.take(7, 0) == ()
    log.forget_batch(7)
    assert [one.row for one in log.take(7, 1)] == ['["old"]']
    log.forget_batch(8)  # batch 7 is committed, and batch 8 runs again
    assert log.take(8, 2) == ()


def test_letters_of_a_transaction_go_with_it() -> None:
    log = LetterLog("lines", 3, lambda: 0.0)
    log.note(Row((7, 0, 0), ("x",), 7), "no")
    log.add(Row((3, 0, 0), ("held",), 3), "no")
    log.take_back()
    assert list(log.settle()) == []
    assert [one.row for one in log.take(7, 1)] == ['["held"]']


def test_what_can_not_be_emitted_again_says_so() -> None:
    def of(row: Row) -> Any:
        return letter_of("lines", 3, row, "no", 0.0)

    assert of(Row((0,), (None,), 0, "the year 10000")).data is None
    assert of(Row((0,), (lambda: None,), 0)).data is None
    assert of(Row((0,), ("x",), 0, GivenUp("no room"))).data is not None
    strange = of(Row(RowKey("id", 4, 0, 2), ({(1, 2): "\udc00"},), 0))
    assert json.loads(strange.row) and strange.key == "('id', 4, 0, 2)"


def test_rows_that_were_letters_are_no_low_marks() -> None:
    """K5: a Kafka group's offsets don't go back to a message that was given up."""
    workers, _, task, _ = plain(range(0))
    key = RowKey(("t", 0, 7), 3, "dead letter 2-0", 0)
    assert is_letter(key)
    task.adopt([(None, Row(key, (1,), 2)), (None, Row(("t", 0, 9), (1,), 2))])
    assert list(task.source.rows.open_ids()) == [("t", 0, 9)]
    workers.run_batch()
