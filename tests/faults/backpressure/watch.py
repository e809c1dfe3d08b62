"""Looks at a running topology once in a while: memory of all of its processes, queues, limits."""

from __future__ import annotations

import csv
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from stormspark.metrics import TopologyStatistics
from tests.faults.backpressure.rounds import Rounds
from tests.waiting import worker_processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stormspark.spark import SparkTopology

__all__ = ["LONG_SECS", "Sample", "Say", "Watch", "flatness", "heap_after_gc"]

#: How long a long form runs; 0: the short forms.
LONG_SECS = float(os.environ.get("BACKPRESSURE_SECS", "0"))
Say = Callable[[str], None]
_MB = 1024 * 1024
_TURN_SECS = 0.1
_COLLECTIONS = 3 if LONG_SECS else 1
_BETWEEN_COLLECTIONS_SECS = 0.1
#: If the heap is so many MB larger than at the first look, a batch may hold a buffer (64 MB are usual). What is there at all
#: looks in so many seconds is no buffer.
_BUFFER_MB, _BATCH_SECS = 15.0, 10.0


@dataclass(frozen=True)
class Sample:
    """One look. Memory in MB: resident sets, and the JVM's heap after a collection; ``batch_ms`` is of the last round."""

    seconds: float
    batches: int
    batch_ms: float
    limit: int | None
    queued: int
    queued_mb: float
    executed: int
    limit_changes: int
    worker_mb: float
    largest_worker_mb: float
    driver_mb: float
    jvm_mb: float
    heap_mb: float

    def line(self) -> str:
        """For people who wait."""
        return (
            f"{self.seconds:5.0f} s  batch {self.batches:5}, {self.batch_ms:5.0f} ms  limit {self.limit}  "
            f"queue {self.queued} ({self.queued_mb:.1f} MB)  executed {self.executed}  MB: workers {self.worker_mb:.0f}, "
            f"driver {self.driver_mb:.0f}, JVM {self.jvm_mb:.0f}, heap {self.heap_mb:.0f}"
        )


class Watch:
    """Takes a sample every ``period`` seconds while `run` or `until` runs."""

    def __init__(self, running: SparkTopology, spark: SparkSession, say: Say, *, bolt: str = "slow") -> None:
        self.running, self.spark, self.bolt = running, spark, bolt
        self.period = 10.0 if LONG_SECS else 1.0
        self.samples: list[Sample] = []
        self.rounds = Rounds()
        self.rounds.listen(running._now.throttle)
        self._say = say
        self._began = time.monotonic()
        self._sampled_at = self._said_at = self._began
        self._workers: dict[int, psutil.Process] = {}
        self.driver = psutil.Process()
        self.jvm = next(one for one in self.driver.children(recursive=True) if one.name() == "java")

    def statistics(self) -> TopologyStatistics:
        """Of now; fails where the topology has ended."""
        assert not self.running.wait(0), f"the topology ended: {self.running.error}"
        return self.running.statistics()

    def run(self, seconds: float) -> None:
        """Watch for so long."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, seconds + 60)

    def until(self, what: Callable[[], object], timeout: float, message: str = "") -> None:
        """Watch until it is true."""
        deadline = time.monotonic() + timeout
        while not what():
            now = time.monotonic()
            assert now < deadline, f"waited {timeout} s in vain for {message or what}: {self.look().line()}"
            if now - self._sampled_at >= self.period:
                self._take()
            if LONG_SECS and now - self._said_at >= 1:
                self._said_at = now
                self._say(f"{self.running.name}: {self.look(collect=False).line()}")
            time.sleep(_TURN_SECS)

    def is_held_by(self, bolt: str) -> bool:
        """Whether a spout was in the last round, because of that bolt."""
        pressure = self.statistics().pressure
        assert pressure is not None
        return any(spout.throttled_by == bolt for spout in pressure.spouts.values())

    def held_ms(self, bolt: str) -> float:
        """For how long all spouts were held because of that bolt."""
        pressure = self.statistics().pressure
        assert pressure is not None
        return math.fsum(spout.throttled_ms.get(bolt, 0.0) for spout in pressure.spouts.values())

    def begin(self) -> None:
        """Forget what was before: the topology has begun to run."""
        self.samples.clear()
        self._began = time.monotonic()
        self._take()

    def _take(self) -> None:
        # In a short form collections would take a tenth of the time.
        self.samples.append(self.look(collect=bool(LONG_SECS) or len(self.samples) % 4 == 0))
        self._sampled_at = time.monotonic()

    def look(self, *, collect: bool = True) -> Sample:
        """A sample of now."""
        now = self.statistics()
        bolt = now.components[self.bolt]
        pressure = now.pressure
        assert pressure is not None
        limits = [spout.limit for spout in pressure.spouts.values() if spout.limit is not None]
        workers = [_rss_mb(process) for process in self._find_workers().values()]
        heap = self._heap_mb() if collect else self.samples[-1].heap_mb if self.samples else 0.0
        return Sample(
            seconds=round(time.monotonic() - self._began, 1),
            batches=now.batches,
            batch_ms=round(1000 * self.rounds[-1].seconds) if self.rounds else 0,
            limit=sum(limits) if limits else None,
            queued=bolt.queued,
            queued_mb=round(bolt.queued_bytes / _MB, 1),
            executed=bolt.executed,
            limit_changes=pressure.limit_changes,
            worker_mb=sum(workers),
            largest_worker_mb=max(workers, default=0.0),
            driver_mb=_rss_mb(self.driver),
            jvm_mb=_rss_mb(self.jvm),
            heap_mb=heap,
        )

    def _heap_mb(self) -> float:
        heap = heap_after_gc(self.spark)
        until = time.monotonic() + _BATCH_SECS
        while self.samples and heap > self.samples[0].heap_mb + _BUFFER_MB and time.monotonic() < until:
            time.sleep(_BETWEEN_COLLECTIONS_SECS)
            heap = min(heap, heap_after_gc(self.spark))
        return heap

    def _find_workers(self) -> dict[int, psutil.Process]:
        if not self._workers or not all(one.is_running() for one in self._workers.values()):
            self._workers = worker_processes(self.running.name)
        return self._workers

    def save(self, folder: Path) -> None:
        """The series as a table of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{self.running.name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Sample)])
            writer.writeheader()
            writer.writerows(asdict(sample) for sample in self.samples)


def _rss_mb(process: psutil.Process) -> float:
    try:
        return round(process.memory_info().rss / _MB, 1)
    except psutil.NoSuchProcess:
        return 0.0


def heap_after_gc(spark: SparkSession, collections: int = _COLLECTIONS) -> float:
    """What the driver's JVM holds on to, in MB: its heap after a full collection, which takes it some 50 ms. The least of a few,
    apart from each other, because the topology goes on meanwhile: a batch holds buffers, and may hold up the collector.
    """
    jvm: Any = spark.sparkContext._jvm
    memory = jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    used: list[float] = []
    for number in range(collections):
        if number:
            time.sleep(_BETWEEN_COLLECTIONS_SECS)
        jvm.java.lang.System.gc()
        used.append(memory.getHeapMemoryUsage().getUsed() / _MB)
    return round(min(used), 1)


def flatness(series: Sequence[float], *, skip: float = 0.2) -> tuple[float, float]:
    """Of the values after the first part of them: how much the straight line through them rises from its beginning to
    its end, and how far the highest is above the median; both in the values' unit.
    """
    later = series[int(len(series) * skip) :]
    if len(later) < 3:
        msg = f"{len(series)} samples say nothing of flatness, take more"
        raise ValueError(msg)
    slope = statistics.linear_regression(range(len(later)), later).slope
    rise: float = round(slope * (len(later) - 1), 6)
    return rise, max(later) - statistics.median(later)
