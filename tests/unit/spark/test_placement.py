"""What the placement of workers leaves behind in Spark, and how long it waits; Spark itself is played."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.spark import placement as placement_module
from stormspark.spark.placement import Placement
from stormspark.spark.preflight import Preflight


class Job:
    """An RDD that is persisted; ``placed``: its partitions, and the workers that were started there."""

    def __init__(self, number: int, tasks: int, placed: dict[int, list[int]] | None) -> None:
        self.number, self.placed, self.blocks = number, placed, set(range(tasks))

    def mapPartitions(self, _: Any) -> Job:  # noqa: N802 - Spark's
        return self

    def persist(self, _: Any) -> None:
        pass

    def unpersist(self) -> None:
        self.blocks.clear()

    def id(self) -> int:
        return self.number

    def collect(self) -> list[tuple[int, list[int]]]:
        if self.placed is None:
            raise RuntimeError("the job failed")
        return list(self.placed.items())


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Spark:
    """A session, its executors and nimbus; `place` says where the workers that are missing are started."""

    def __init__(self, clock: Time, wanted: int | None, come: int, wait_secs: float = 30.0) -> None:
        self.clock = clock
        self.jobs: list[Job] = []
        self.places: dict[int, list[int]] | None = {}
        self.vain = 0  # jobs that reach too few executors
        self.session, self.executors, self.nimbus = MagicMock(), MagicMock(), MagicMock()
        self.nimbus.broken = None
        context = self.session.sparkContext
        context.parallelize = self._parallelize
        context._jvm.org.apache.spark.storage.RDDBlockId = lambda job, partition: (job, partition)
        context._jsc.sc().env().blockManager().master().removeBlock = self._remove
        self.there = {f"{number}": True for number in range(come)}
        executors = self.executors
        executors.separate, executors.dynamic = True, False
        executors.to_come.return_value = wanted
        executors.active = lambda: [name for name, is_there in self.there.items() if is_there]
        executors.ever = lambda: dict(self.there)
        executors.for_workers = lambda workers: len(executors.active())
        self.placement = Placement(self.session, executors, "t", wait_secs, lambda: False)

    def _parallelize(self, _: Any, tasks: int) -> Job:
        self.vain -= 1
        places = self.places if self.vain < 0 else {}
        self.jobs.append(Job(len(self.jobs), tasks, places))
        self.nimbus.missing.return_value = 0 if places else 1
        return self.jobs[-1]

    def _remove(self, block: tuple[int, int]) -> None:
        self.jobs[block[0]].blocks.discard(block[1])

    def place(self, places: dict[int, list[int]] | None, workers: int = 2) -> float:
        """How many seconds it took."""
        self.places = places
        self.nimbus.missing.return_value = 1
        began = self.clock.now
        self.placement.place(MagicMock(workers=workers, start_timeout_secs=1.0), self.nimbus)
        return self.clock.now - began

    def blocks(self) -> list[tuple[int, int]]:
        """The job and the partition of each that is left."""
        return [(job.number, partition) for job in self.jobs for partition in sorted(job.blocks)]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(placement_module, "time", clock)
    return clock


def test_only_executors_with_workers_have_a_block_however_often_workers_are_placed(clock: Time) -> None:
    """J23: worker 0 dies of memory every few minutes, for hours; worker 1 stays where it is."""
    spark = Spark(clock, 2, 2)
    spark.place({0: [0], 1: [1]})
    assert spark.blocks() == [(0, 0), (0, 1)]
    for _ in range(100):
        spark.place({1: [0]})
    assert spark.blocks() == [(0, 1), (100, 1)], "one beside each worker"
    spark.place({0: [1]})
    assert spark.blocks() == [(100, 1), (101, 0)]
    spark.placement.end()
    assert spark.blocks() == []


def test_workers_that_share_an_executor_keep_its_block_as_long_as_one_lives_there(clock: Time) -> None:
    spark = Spark(clock, 2, 2)
    spark.place({0: [0, 1]})
    spark.place({1: [0]})
    assert spark.blocks() == [(0, 0), (1, 1)]
    spark.place({1: [1]})
    assert spark.blocks() == [(1, 1), (2, 1)]


def test_jobs_that_fail_or_place_nobody_are_not_gathered(clock: Time) -> None:
    """A job that fails may have started workers: its blocks are kept until another one runs."""
    spark = Spark(clock, 2, 2)
    for _ in range(5):
        spark.place(None)
    assert spark.blocks() == [(4, 0), (4, 1)]
    spark.place({0: [0], 1: [1]})
    spark.place({})
    assert spark.blocks() == [(5, 0), (5, 1)]


def test_a_job_that_reaches_too_few_executors_comes_again(clock: Time) -> None:
    """J23: but not for long, if one that has registered takes no task."""
    spark = Spark(clock, 2, 2)
    spark.vain = 5
    assert spark.place({0: [0], 1: [1]}) < 5
    asked = [call.kwargs["again"] for call in spark.nimbus.gather.call_args_list]
    assert asked == [True] * 6
    assert spark.blocks() == [(5, 0), (5, 1)]
    spark.vain = 10_000
    assert 10 <= spark.place({0: [0]}) < 14
    assert len(spark.jobs) < 20
    assert not spark.nimbus.gather.call_args.kwargs["again"], (
        "the last one deals to those that it has reached"
    )


def test_executors_that_do_not_come_are_waited_for_once(clock: Time) -> None:
    spark = Spark(clock, 10, 6)
    assert 30 <= spark.place({0: [0]}, 10) < 31
    for _ in range(3):
        assert spark.place({0: [0]}, 10) == 0


def test_an_executor_that_is_lost_is_waited_for_once_and_one_that_came_late_is_too(clock: Time) -> None:
    spark = Spark(clock, 3, 1)
    assert 30 <= spark.place({0: [0]}, 4) < 31
    spark.there["1"] = True
    spark.there["0"] = False
    assert 30 <= spark.place({0: [0]}, 4) < 31, "two were there at a time, and one is"
    assert spark.place({0: [0]}, 4) == 0
    spark.there |= {"2": True, "3": True}
    assert spark.place({0: [0]}, 4) == 0


def lines_while_it_waits(clock: Time, spark: Spark, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the start status line says while workers are placed, without repetitions."""
    lines: list[str] = []

    def sleep(seconds: float) -> None:
        lines.append(spark.placement.waits_for())
        clock.now += seconds

    monkeypatch.setattr(clock, "sleep", sleep)
    spark.place({0: [0], 1: [1]}, 3)
    assert spark.placement.waits_for() == ""
    return list(dict.fromkeys(lines))


def test_what_is_waited_for_on_a_cluster_without_room(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "may still start, or the cluster has no room for them (another application?)"
    assert lines_while_it_waits(clock, Spark(clock, 4, 1), monkeypatch) == [
        f"1 of 3 Spark executors are up: more {told}"
    ]
    assert lines_while_it_waits(clock, Spark(clock, None, 0), monkeypatch) == [
        f"no Spark executor is up: they {told}"
    ]
    assert lines_while_it_waits(clock, Spark(clock, None, 1), monkeypatch) == [""]


def test_what_is_waited_for_while_executors_are_looked_at(clock: Time) -> None:
    """The job needs a free core; if all executors are missing, this is what the user has to hear."""
    spark, lines, looks = Spark(clock, 2, 0), [], "Spark looks at 1 executor"

    class Looks:
        group = waits_for = ""

        def run(self, *_: object) -> None:
            self.waits_for = looks
            lines.append(spark.placement.waits_for())
            spark.there["0"] = True
            lines.append(spark.placement.waits_for())
            spark.executors.active = MagicMock(side_effect=OSError("the JVM has ended"))
            lines.append(spark.placement.waits_for())
            spark.executors.active = lambda: ["0"]
            self.waits_for = ""

    spark.placement = Placement(
        spark.session, spark.executors, "t", 30, lambda: False, cast("Preflight", Looks())
    )
    spark.place({0: [0]})
    assert lines[0].startswith("0 of 2 Spark executors are up")
    assert lines[1:] == [looks, looks]
    assert spark.placement.waits_for() == ""
