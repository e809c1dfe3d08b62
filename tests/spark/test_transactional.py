"""kill -9 where a batch ends: committers keep to their order, and each batch counts once, outside of the topology too."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sql

from stormspark.checkpoint.barriers import BATCH_BARRIERS
from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.state_table import StateTable
from tests.faults.exactly_once.test_exactly_once import ALL
from tests.spark.transactional_topology import ENOUGH, KEYS
from tests.waiting import kill_all_of, wait_for, worker_processes
from tests.whole_lines import whole_lines

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
BARRIERS = (*BATCH_BARRIERS, "driver.before_commit", "driver.committed")
SOME = ("worker.finished", "driver.announced")


class Drivers:
    """Of one topology, one after another on one checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, f"transactional-{os.getpid()}"
        self.barriers = folder / "barriers"
        self.barriers.mkdir()
        self.stored = folder / "stored.jsonl"
        self.table = StateTable(folder / "checkpoint/stormspark/state")
        self.count = 0
        self.start()

    def start(self) -> None:
        self.count += 1
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.folder),
            "STORMSPARK_BARRIERS": str(self.barriers),
        }
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.transactional_driver", str(self.folder), self.name, "2"],
                cwd=ROOT, env=environment, stdout=output, stderr=output,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()[-8000:]

    def lives(self) -> bool:
        """Start the next driver if this one was killed; fails where it has given up."""
        ended = self.process.poll()
        if ended is None:
            return True
        assert ended < 0, self.output
        self.start()
        return False

    def transactions(self) -> list[tuple[int, int, list[int]]]:
        """What the committer did, in order: txid, attempt, numbers."""
        if not self.stored.exists():
            return []
        return [tuple(json.loads(line)) for line in whole_lines(self.stored)]

    def goes_on(self) -> None:
        before = len({txid for txid, _, _ in self.transactions()})
        wait_for(
            lambda: self.lives() and len({txid for txid, _, _ in self.transactions()}) > before + 1,
            message=lambda: f"two more transactions:\n{self.output}",
        )

    def kill_at(self, barrier: str) -> None:
        armed = self.barriers / barrier
        armed.touch()
        wait_for(lambda: self.lives() and not armed.exists(), message=lambda: f"{barrier}:\n{self.output}")

    def end(self) -> None:
        (self.folder / ENOUGH).touch()
        (self.folder / "done").touch()
        wait_for(
            lambda: self.process.poll() == 0 or (self.lives() and False),
            message=lambda: f"the end:\n{self.output}",
        )

    def kill(self) -> None:
        kill_all_of(self.name, self.process)


@pytest.mark.long  # CI kills at steps of the same protocol in tests/faults/exactly_once
def test_killed_where_a_batch_ends(tmp_path: Path) -> None:
    """G2, G3, G5, G6, G8: a worker before and after `finish_batch`, the driver before and after it announces; and workers."""
    drivers = Drivers(tmp_path)
    try:
        drivers.goes_on()
        for barrier in BARRIERS if ALL else SOME:
            drivers.kill_at(barrier)
            drivers.goes_on()
        for worker in worker_processes(drivers.name).values():
            worker.kill()
        drivers.goes_on()
        drivers.end()
    finally:
        drivers.kill()
    stored = drivers.transactions()
    assert all(earlier[:2] <= later[:2] for earlier, later in pairwise(stored)), "a committer out of order"
    numbers = {txid: mine for txid, _, mine in stored}
    # Whoever died: a transaction that a committer has come to is the same ever after.
    assert all(mine == numbers[txid] for txid, _, mine in stored)
    assert len(stored) > len(numbers), "no transaction came to the committer twice, so this has shown nothing"
    everything = [number for txid in sorted(numbers) for number in numbers[txid]]
    assert everything == list(range(len(everything)))
    # What the last attempt drew is what is in the state, and in the database.
    drivers.table.refresh()
    drawn = {
        decode_key(row["key"]): pickle.loads(row["value"])
        for row in drivers.table.as_arrow("draw").read_all().to_pylist()
    }
    assert sorted(drawn) == everything
    expected: Counter[int] = Counter()
    for number, one in drawn.items():
        expected[number % KEYS] += one
    engine = sql.create_engine(f"sqlite:///{tmp_path / 'sums.db'}")
    with engine.connect() as connection:
        rows = connection.execute(
            sql.text("SELECT key, value FROM sums WHERE key NOT LIKE '%journal%'")
        ).all()
    sums = {json.loads(key)[0]: int(value) for key, value in rows}
    engine.dispose()
    assert sums == expected
    print(
        f"{len(numbers)} transactions, {len(stored)} attempts came to the committer, {drivers.count} drivers"
    )
