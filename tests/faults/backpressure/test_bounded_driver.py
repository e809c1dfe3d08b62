"""Unbounded data, a bounded driver: batches by the thousand leave nothing behind that grows."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from stormspark.spark import SparkTopology
from tests.faults.backpressure.components import Dial, build
from tests.faults.backpressure.watch import LONG_SECS, Say, flatness, heap_after_gc
from tests.waiting import wait_for, wait_until_gone, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow, pytest.mark.alone]

BATCHES = int(os.environ.get("BACKPRESSURE_BATCHES", "10000" if LONG_SECS else "40"))
SAMPLES = 20 if LONG_SECS else 5
#: Of the heap, for each sample: one of the few samples of a short form would spoil it.
_COLLECTIONS = 5
#: Spark's thread has deleted something by then, if it is at work.
_CLEANING_SECS = 0.5
_MB = 1024 * 1024


def _size(folder: Path) -> tuple[int, int]:
    """Files, and bytes, of a folder that changes while it is looked at."""
    files = bytes_ = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                bytes_ += os.stat(os.path.join(parent, name)).st_size
                files += 1
            except FileNotFoundError:
                pass
    return files, bytes_


class Driver:
    """What there is in a driver and beside it, in numbers."""

    def __init__(self, running: SparkTopology, spark: SparkSession, tmp_path: Path) -> None:
        self.running, self.spark, self.folder = running, spark, tmp_path
        self.process = psutil.Process()
        self.jvm = next(one for one in self.process.children(recursive=True) if one.name() == "java")
        context: Any = spark.sparkContext
        self.java = context._jvm.java.lang.management.ManagementFactory
        self.gateway = context._gateway
        env = context._jvm.org.apache.spark.SparkEnv.get()
        self.blocks = [Path(one.getPath()) for one in env.blockManager().diskBlockManager().localDirs()]

    def _shuffle_files(self) -> tuple[int, int]:
        """Files, and bytes. A thread of Spark deletes them after a collection, so wait for as long as they become fewer."""
        least = self._count_shuffle_files()
        while True:
            time.sleep(_CLEANING_SECS)
            now = self._count_shuffle_files()
            if now >= least:
                return least
            least = now

    def _count_shuffle_files(self) -> tuple[int, int]:
        sizes = [_size(path) for path in self.blocks]
        return sum(files for files, _ in sizes), sum(size for _, size in sizes)

    def look(self) -> dict[str, float]:
        gc.collect()
        statistics = self.running.statistics()
        assert not self.running.wait(0), self.running.error
        assert statistics.pressure is not None
        query: Any = self.running.query
        heap = heap_after_gc(self.spark, _COLLECTIONS)
        checkpoint, logs = _size(self.folder / "checkpoint"), _size(self.folder / "logs")
        files, size = self._shuffle_files()
        return {
            "batches": statistics.batches,
            "python objects": len(gc.get_objects()),
            "python MB": self.process.memory_info().rss / _MB,
            "python threads": threading.active_count(),
            "python files": self.process.num_fds(),
            "java objects held by python": self.gateway.java_gateway_server.getGateway().getBindings().size(),
            "heap MB": heap,
            "java threads": self.java.getThreadMXBean().getThreadCount(),
            "java files": self.jvm.num_fds(),
            "progress kept": len(query.recentProgress),
            "limits kept": len(statistics.pressure.history),
            "checkpoint files": checkpoint[0],
            "checkpoint KB": checkpoint[1] / 1024,
            "log KB": logs[1] / 1024,
            "shuffle files": files,
            "shuffle MB": size / _MB,
            "worker MB": sum(one.memory_info().rss for one in worker_processes(self.running.name).values())
            / _MB,
        }


#: By what it is: by how much a straight line through it may rise over the run, after its first part; in a short form, most of
#: what is kept for the last hundred batches is still filling up.
MAY_GROW = {
    "python objects": 2000,
    "python MB": 8,
    "python threads": 2,
    "python files": 4,
    "java objects held by python": 200,
    "heap MB": 15,
    "java threads": 12 if LONG_SECS else 100,
    "java files": 40,
    "progress kept": 0 if LONG_SECS else 100,
    "limits kept": 1000,
    "checkpoint files": 60 if LONG_SECS else 400,
    "checkpoint KB": 100 if LONG_SECS else 1000,
    "log KB": 200,
    "shuffle files": 100,
    "shuffle MB": 5,
    "worker MB": 10,
}


def _has_run(running: SparkTopology, batches: int) -> bool:
    assert not running.wait(0), running.error
    return running.statistics().batches >= batches


def test_many_batches_leave_nothing_behind(
    start: Callable[..., SparkTopology],
    spark: SparkSession,
    tmp_path: Path,
    note: Callable[..., None],
    say: Say,
) -> None:
    """F14, W26: memory, threads, files and what is told of the past are bounded, however long it runs."""
    dial = Dial(tmp_path / "dial")
    dial.set(0.0002)
    conf = {
        "topology.workers": 2,
        "stormspark.batch.target.ms": 20,
        "stormspark.log.dir": str(tmp_path / "logs"),
        "topology.max.spout.pending": 20,
    }
    running = start(build("many-batches", tmp_path / "dial"), conf=conf, checkpoint=tmp_path / "checkpoint")
    driver = Driver(running, spark, tmp_path)
    looks: list[dict[str, float]] = []
    first = BATCHES // 10
    for number in range(SAMPLES + 1):
        wanted = first + (BATCHES - first) * number // SAMPLES
        wait_for(partial(_has_run, running, wanted), 600 + LONG_SECS, f"{wanted} batches")
        looks.append(driver.look())
        if LONG_SECS:
            say("many batches: " + ", ".join(f"{name} {value:.0f}" for name, value in looks[-1].items()))
    workers = list(worker_processes("many-batches").values())
    running.stop()
    wait_until_gone(workers)

    grew: dict[str, str] = {}
    for name, most in MAY_GROW.items():
        series = [look[name] for look in looks]
        rise, _ = flatness(series, skip=0.3)
        note(
            f"{looks[-1]['batches']:.0f} batches",
            what=name,
            after=f"{looks[0]['batches']:.0f} batches: {series[0]:.1f}",
            half_way=f"{series[len(series) // 2]:.1f}",
            in_the_end=f"{series[-1]:.1f}",
            rise=f"{rise:+.1f}",
        )
        if rise > most:
            grew[name] = f"{rise:.1f}, and {most} is allowed: {[round(value, 1) for value in series]}"
    assert not grew
