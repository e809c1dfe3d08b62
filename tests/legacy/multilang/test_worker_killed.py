"""kill -9 of a worker on Spark: none of its children lives on, and the topology goes on with new ones."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from stormspark import TopologyBuilder
from stormspark.multilang import ShellBolt
from tests.conformance.components import EFFECTS, Numbers, Record, read_effects, recorded
from tests.legacy.multilang.languages import CHILDREN, OBEY
from tests.waiting import wait_for, wait_until_idle, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults]


class Orders(Record):
    """Has the child fork for the first number, and echo all others."""

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit(("fork" if tup["n"] == 0 else "echo", tup["n"]))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["order", "value"])


def values_of(folder: Path) -> list[tuple[Any, ...]]:
    """What the child answered: what it did, and a number."""
    return [one.values for one in recorded(read_effects(folder, "record"))]


def children_of(worker: psutil.Process) -> set[int]:
    return {process.pid for process in worker.children(recursive=True)}


def test_no_child_outlives_its_worker(start: Any, tmp_path: Path) -> None:
    """W9, E16: neither the child nor what it has forked; and none is left when the topology has ended."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(200))
    builder.set_bolt("orders", Orders()).shuffle_grouping("numbers")
    builder.set_bolt("child", ShellBolt(OBEY, ["what", "n"], cwd=CHILDREN), 2).shuffle_grouping("orders")
    builder.set_bolt("record", Record()).shuffle_grouping("child")
    conf = {"topology.workers": 2, "topology.max.spout.pending": 30, EFFECTS: str(tmp_path)}
    running = start(builder.create_topology("orphans"), conf=conf)
    try:
        wait_for(lambda: any(what == "fork" for what, _ in values_of(tmp_path)), message="a child to fork")
        forked = next(n for what, n in values_of(tmp_path) if what == "fork")
        workers = worker_processes("orphans")
        children = {worker: children_of(process) for worker, process in workers.items()}
        owner = next(worker for worker, pids in children.items() if forked in pids)
        assert len(children[owner]) >= 2
        os.kill(workers[owner].pid, signal.SIGKILL)
        wait_for(
            lambda: not any(map(psutil.pid_exists, children[owner])),
            message="the children of the worker to be gone",
        )
        wait_until_idle(running)
        everybody = {pid for process in worker_processes("orphans").values() for pid in children_of(process)}
        assert everybody
    finally:
        running.stop()
    wait_for(lambda: not any(map(psutil.pid_exists, everybody)), message="all children to be gone")
    assert running.error is None
    echoed = Counter(n for what, n in values_of(tmp_path) if what == "echo")
    assert set(echoed) == set(range(1, 200)), json.dumps(echoed)
