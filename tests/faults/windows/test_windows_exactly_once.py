"""Kafka -> windows -> Delta tables with kill -9 in the middle: each number is in each of its windows, once (C41)."""

from __future__ import annotations

import os
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import psutil
import pytest

from stormspark.checkpoint.barriers import BARRIERS
from tests.faults.exactly_once.test_exactly_once import ALL, KILLS, Run
from tests.faults.exactly_once.test_through_spark import TableOfSpark
from tests.faults.windows.topology import FAR, KAFKA, LENGTH, SLIDE
from tests.kafka_broker import KafkaBroker
from tests.waiting import kill_all_of, wait_for, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

PARTITIONS = 2
#: Out of order by less than the lag within a part, and far behind now and then.
JITTER, BEHIND = 400, 5000


class WindowRun(Run):
    """The same, with a topic that is fed part by part."""

    topology = "tests.faults.windows.topology"

    def __init__(self, folder: Path, kafka: KafkaBroker) -> None:
        super().__init__(folder, f"windows-{os.getpid()}-{folder.name}", 2)
        self.kafka, self.topic = kafka, f"times-{folder.name}"
        kafka.create_topic(self.topic, partitions=PARTITIONS)
        (folder / KAFKA).write_text(f"{kafka.bootstrap} {self.topic}")
        self.times: dict[int, int] = {}
        self._random = random.Random(11)

    def feed(self, count: int) -> None:
        """Numbers, most of them in one partition: work is uneven."""
        shares: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        for _ in range(count):
            n = len(self.times)
            behind = BEHIND if n % 97 == 96 else self._random.randrange(JITTER)
            self.times[n] = max(1, 10_000 + n * 5 - behind)
            shares[n % 20 == 0].append(b"%d %d" % (n, self.times[n]))
        for partition, values in enumerate(shares):
            self.kafka.produce(self.topic, values, partition=partition)

    def feed_the_last(self) -> None:
        """So many that each task has some of them; wait until the windows of all others have fired.

        A topology that has nothing to do may still have messages in Kafka that it has not fetched, so this can't be left to
        its end.
        """
        last = [b"%d %d" % (FAR + n, 10_000_000 + n) for n in range(400)]
        self.kafka.produce(self.topic, last)
        wait_for(
            lambda: self.lives() and not self.unfired(),
            message=lambda: f"windows of {len(self.unfired())} numbers:\n{self.output}",
        )

    def unfired(self) -> set[int]:
        """Numbers that have been in no window in event time, and were not late either."""
        return set(self.times) - {row["n"] for table in ("fired", "missed") for row in self.rows(table)}

    def rows(self, table: str) -> list[dict[str, Any]]:
        found = deltalake.DeltaTable(self.folder / table).to_pyarrow_table().to_pylist()
        return [row for row in found if row["n"] < FAR]

    def check(self) -> int:
        """All has happened once."""
        every = Counter(dict.fromkeys(self.times, 1))
        assert Counter(row["n"] for row in self.rows("arrived")) == every
        late = Counter(row["n"] for row in self.rows("missed"))
        assert max(late.values()) == 1
        fired = Counter((row["n"], row["end"]) for row in self.rows("fired"))
        wanted = Counter(
            (n, end)
            for n, at in self.times.items()
            if n not in late
            for end in range(-(-at // SLIDE) * SLIDE, at + LENGTH, SLIDE)
        )
        # A tuple that is not late may have missed the first of its windows, if that had fired (C31).
        assert not fired - wanted
        assert not self.unfired()
        assert all((n, max(e for m, e in wanted if m == n)) in fired for n, _ in wanted - fired)
        counted = Counter(row["n"] for row in self.rows("counted"))
        assert max(counted.values()) == 1
        every_row = deltalake.DeltaTable(self.folder / "counted").to_pyarrow_table()
        self.table.refresh()
        seen = [pickle.loads(row["value"]) for row in self.table.as_arrow("counts").read_all().to_pylist()]
        assert sum(seen) == every_row.num_rows and all(of_task % 100 == 0 for of_task in seen)
        # Each task has less than a window left.
        assert len(self.times) - len(counted) < 2 * 100
        return len(self.times)


@contextmanager
def running(
    folder: Path, kafka: KafkaBroker, prepare: Callable[[Run], None] = lambda run: None
) -> Iterator[WindowRun]:
    run = WindowRun(folder, kafka)
    prepare(run)
    run.feed(1500)
    run.start()
    try:
        run.goes_on(3)
        yield run
    finally:
        assert run.process is not None
        kill_all_of(run.name, run.process)


def kill(run: WindowRun, what: str) -> None:
    if what == "driver":
        assert run.process is not None
        run.process.kill()
        run.process.wait()
    else:
        workers: list[psutil.Process] = list(worker_processes(run.name).values())
        for worker in workers[:1]:
            worker.kill()


def test_kafka_to_windows_to_delta(kafka: KafkaBroker, tmp_path: Path) -> None:
    """C29-C32, C41, C44: workers are killed, also at a step of the commit protocol, and drivers in the long form; the table has
    every window once.
    """
    barriers = BARRIERS if ALL else ("worker.prepared",)
    with running(tmp_path, kafka) as run:
        for barrier in barriers:
            run.feed(1000)
            run.kill_at(barrier)
            run.goes_on(2)
        for number in range(max(1, KILLS - 1)):
            run.feed(1000)
            run.goes_on()
            kill(run, "driver" if number % 2 else "worker")
            run.goes_on(2)
        run.feed_the_last()
        run.end()
        print(f"{len(barriers)} barriers, {run.drivers} drivers, {run.check():,} numbers")


@pytest.mark.skipif(not ALL, reason="it takes a second a batch; `make soak-exactly-once` has the time")
def test_windows_come_back_by_way_of_the_driver(kafka: KafkaBroker, tmp_path: Path) -> None:
    """C41, C44: where only Spark writes the state table."""

    def of_spark(run: Run) -> None:
        run.table = TableOfSpark(run.folder / "checkpoint/stormspark/state")  # type: ignore[assignment]
        run.settings = {"stormspark.state.table": "spark"}

    with running(tmp_path, kafka, of_spark) as run:
        for what in ("worker", "driver"):
            run.feed(1000)
            run.goes_on()
            kill(run, what)
            run.goes_on(2)
        run.feed_the_last()
        run.end()
        print(f"{run.drivers} drivers, {run.check():,} numbers")
