"""kill -9 of a worker: in the middle of a batch the topology goes on, and the others keep what they know."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter

import psutil
import pytest

from stormspark.errors import WorkerLostError
from tests.spark.topologies import FOLDER, holding, word_count
from tests.waiting import (
    PATIENCE_SECS,
    wait_for,
    wait_for_batches,
    wait_until_gone,
    wait_until_idle,
    worker_processes,
)

pytestmark = [pytest.mark.spark, pytest.mark.faults]

TOTAL = 60


def test_the_topology_goes_on_and_survivors_keep_their_memory(start, tmp_path):
    """E15, E16: what was under way fails at once; what lives on keeps its state and its trees."""
    # The pending limit makes many small batches: what was counted before the kill is known to be in committed
    # ones.
    conf = {"topology.workers": 2, "topology.max.spout.pending": 10, FOLDER: str(tmp_path)}
    running = start(holding(TOTAL, at=35), conf=conf)
    try:
        wait_for((tmp_path / "holding").exists, message="a bolt to hold in the middle of a batch")
        victim = int((tmp_path / "holding").read_text())
        before = {worker: process.pid for worker, process in worker_processes("holding").items()}
        lost = next(worker for worker, pid in before.items() if pid == victim)
        os.kill(victim, signal.SIGKILL)
        (tmp_path / "go").touch()
        wait_until_idle(running)
        after = {worker: process.pid for worker, process in worker_processes("holding").items()}
    finally:
        running.stop()
    assert running.error is None
    assert after[lost] != victim
    assert after[1 - lost] == before[1 - lost], "the other worker lives on"

    prepared = Counter(file.name.split("-")[1] for file in tmp_path.glob("prepared-*"))
    assert sorted(prepared.values()) == [1, 2], "only the bolt of the lost worker was prepared again"
    survivor = next(task for task, times in prepared.items() if times == 1)
    seen = json.loads((tmp_path / f"seen-{survivor}.json").read_text())
    mine = set(seen)
    assert min(mine) < 35 < max(mine), "it remembers what came before the kill as well as after"

    # The spout that lived replayed what failed: each of its numbers was acked in the end, by one verdict an
    # emit.
    verdicts = [path.read_text().split("\n")[:-1] for path in tmp_path.glob("verdicts-*")]
    whole = [
        lines for lines in verdicts if {line for line in lines if line.startswith("ack")} == _all_acked()
    ]
    assert len(whole) >= 2, "the living spout's numbers and those of the new one are all acked"
    assert running.statistics().components["numbers"].worker_lost > 0


def _all_acked() -> set[str]:
    return {f"ack {number}" for number in range(TOTAL)}


def test_a_worker_killed_between_batches_is_started_again(start, tmp_path):
    conf = {"topology.workers": 2, FOLDER: str(tmp_path), "stormspark.trigger.interval.ms": 500}
    running = start(word_count(10), conf=conf)
    try:
        wait_until_idle(running)
        victim = worker_processes("tested-word-count")[1].pid
        os.kill(victim, signal.SIGKILL)

        def both_live() -> bool:
            workers = worker_processes("tested-word-count")
            return len(workers) == 2 and workers[1].pid != victim

        wait_for(both_live, message="the worker's next life")
        wait_for_batches(running, 2)
        assert both_live()
    finally:
        running.stop()
    assert running.error is None


def test_workers_that_are_killed_while_they_start_are_started_again(start, tmp_path):
    """Before, in and after their hello: a process that is killed has nothing to say that would stop the topology."""
    conf = {"topology.workers": 2, FOLDER: str(tmp_path), "stormspark.max.attempts": 10}
    running = start(word_count(10), conf=conf)
    killed: set[int] = set()

    def newcomers() -> list[psutil.Process]:
        found = worker_processes("tested-word-count").get(1)
        return [found] if found is not None and found.pid not in killed else []

    try:
        for delay in (0.0, 0.2, 0.4, 0.6):
            wait_for(newcomers)
            time.sleep(delay)
            # Once it has forked, its process is another one.
            (victim,) = wait_for(newcomers)
            killed.add(victim.pid)
            victim.kill()
        wait_until_idle(running)
        assert running.error is None
    finally:
        running.stop()


def test_a_stopped_worker_is_given_up_and_replaced(start, tmp_path):
    conf = {"topology.workers": 2, FOLDER: str(tmp_path), "stormspark.worker.lease.secs": 2}
    running = start(word_count(10), conf=conf)
    try:
        wait_until_idle(running)
        frozen = worker_processes("tested-word-count")[0]
        os.kill(frozen.pid, signal.SIGSTOP)
        # For a moment there is none: the old one is ended before the new one begins.
        wait_for(lambda: worker_processes("tested-word-count").keys() >= {0} and not frozen.is_running())
        wait_for_batches(running, 2)
        wait_until_gone([frozen])  # ended by whoever started its successor
    finally:
        running.stop()
    assert running.error is None


def test_after_so_many_attempts_at_one_batch_the_topology_stops(start, tmp_path):
    # On the worker's thread the call that holds also holds up its batch, so both workers die in the same one.
    threads = {"stormspark.executor.threads": "never"}
    conf = {"topology.workers": 2, FOLDER: str(tmp_path), "stormspark.max.attempts": 2, **threads}
    running = start(holding(TOTAL, at=35), conf=conf)
    for _ in range(2):
        wait_for((tmp_path / "holding").exists)
        victim = int((tmp_path / "holding").read_text())
        (tmp_path / "holding").unlink()
        os.kill(victim, signal.SIGKILL)
    assert running.wait(PATIENCE_SECS)
    assert isinstance(running.error, WorkerLostError)
    assert "failed 2 times (stormspark.max.attempts)" in str(running.error)
    wait_for(lambda: not worker_processes("holding"))
