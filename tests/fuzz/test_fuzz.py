"""Random topologies in the in-process supersteps, on the local engine and on Spark, all compared with the model.

``FUZZ_TOPOLOGIES`` and ``FUZZ_SPARK`` say how many, ``FUZZ_SEED`` where the seeds begin: one that fails runs again alone with
``FUZZ_SEED=<seed> FUZZ_TOPOLOGIES=1``.
"""

from __future__ import annotations

import json
import os
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stormspark import Topology
from stormspark.local import InProcessWorkers, SimulatedClock, submit
from stormspark.plan import plan_topology
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.core import Worker
from stormspark.worker.step import Step
from tests.fuzz.components import FOLDER, Notes, begin_run, built
from tests.fuzz.model import foretell
from tests.fuzz.spec import TopologySpec, random_topology
from tests.spark.waiting import wait_until_idle

FIRST = int(os.environ.get("FUZZ_SEED", "1"))
IN_PROCESS = range(FIRST, FIRST + int(os.environ.get("FUZZ_TOPOLOGIES", "60")))
ON_SPARK = range(FIRST, FIRST + int(os.environ.get("FUZZ_SPARK", "3")))

#: Simulated seconds between two batches: ticks of 0.4 s come in nearly every one.
_STEP = 0.35
_MOST_BATCHES = 400
#: Batches without anything after which nothing will come: joins give up after eight ticks.
_QUIET_BATCHES = 14


def check(spec: TopologySpec, notes: Notes) -> None:
    """The run's verdicts and executions are those of the model."""
    foretold = foretell(spec, notes.emitted)
    everyone = sum(spout.tasks * spout.messages for spout in spec.spouts)
    assert len(notes.emitted) == everyone
    assert notes.executed == foretold.executed
    assert notes.verdicts == {
        message: ["FAILED" if fails else "ACKED"] for message, fails in foretold.fails.items()
    }


def run_to_its_end(run_batch: Callable[[], list[Any]], clock: SimulatedClock) -> None:
    """Run batches until nothing happens any more."""
    quiet, seen = 0, -1
    for _ in range(_MOST_BATCHES):
        clock.advance(_STEP)
        reports = run_batch()
        counters = [c for report in reports for c in report.counters.values()]
        done = sum(c.emitted + c.executed + c.acked + c.failed for c in counters)
        waits = sum(report.backlog for report in reports)
        quiet = 0 if done != seen or waits else quiet + 1
        seen = done
        if quiet >= _QUIET_BATCHES:
            return
    pytest.fail(f"not done after {_MOST_BATCHES} batches")


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", IN_PROCESS)
def test_in_process(seed: int, workers: int) -> None:
    """A15, B4-B10, C5, C9, D1-D15, E20-E26, E29-E34, X68: supersteps as on Spark, same frames and cuts, without a JVM."""
    spec = random_topology(seed)
    notes, clock = begin_run(), SimulatedClock()
    plan = plan_topology(built(spec), {"topology.workers": workers})
    cluster = InProcessWorkers(plan, clock, Random(seed))
    cluster.open()

    def run_batch() -> list[Any]:
        reports = cluster.run_batch()
        for worker in cluster.workers:
            worker.validate()
        return reports

    run_to_its_end(run_batch, clock)
    check(spec, notes)
    for worker in cluster.workers:
        statistics = worker.statistics()
        assert (statistics.open, statistics.known_outside, statistics.outgoing) == (0, 0, 0), statistics


@pytest.mark.parametrize("seed", IN_PROCESS)
def test_in_process_with_lost_workers(seed: int) -> None:
    """E15, E22-E26, E33, E35, B10: workers die in random supersteps of random batches, and all that is under way with them.

    Spouts that live hear one verdict for each of their messages, and ``acked`` only of what was executed whole. Spouts of a lost
    worker are opened anew and emit their messages again, which end as if nothing had been.
    """
    spec, random = random_topology(seed), Random(seed)
    notes, clock = begin_run(), SimulatedClock()
    workers = random.randint(2, 3)
    plan = plan_topology(built(spec), {"topology.workers": workers})

    def worker(index: int, incarnation: int) -> Worker:
        made = Worker(
            plan,
            index,
            incarnation=incarnation,
            clock=clock,
            epoch=0.0,
            random=Random(random.getrandbits(64)),
        )
        made.open()
        return made

    cores = [worker(index, 0) for index in range(workers)]
    deaths = sorted(random.randint(0, 6) for _ in range(random.randint(1, 3)))
    batch = attempt = 0

    def run_batch() -> list[Any]:
        nonlocal batch, attempt
        while deaths and deaths[0] == batch:
            deaths.pop(0)
            attempt += 1
            supersteps = random.randint(0, plan.last_superstep)
            run_supersteps(cores, Step(batch, attempt - 1, 0), supersteps)
            victim = random.randrange(workers)
            cores[victim] = worker(victim, attempt)
            for core in cores:
                if core.index != victim:
                    core.begin_attempt("a worker was lost")
        reports = run_supersteps(cores, Step(batch, attempt, 0), plan.last_superstep)
        batch += 1
        for core in cores:
            core.validate()
        return reports

    run_to_its_end(run_batch, clock)
    foretold = foretell(spec, notes.emitted)
    newest: Counter[tuple[str, int]] = Counter()
    for message in notes.emitted:
        spout, index, _, life = _parsed(message)
        newest[spout, index] = max(newest[spout, index], life)
    for message, fails in foretold.fails.items():
        spout, index, _, life = _parsed(message)
        heard = notes.verdicts.get(message, [])
        if life < newest[spout, index]:
            assert len(heard) <= 1  # its spout is gone; it may have heard before
            continue
        (verdict,) = heard
        assert verdict in ("ACKED", "WORKER_LOST", "FAILED")
        assert verdict != "ACKED" or not fails or _held_by_others(spec)
        assert verdict != "FAILED" or fails or _held_by_others(spec)
        if verdict == "ACKED":
            for (bolt, messages, turn), count in foretold.promised.items():
                if messages == f"[{message}]":
                    assert notes.executed[bolt, messages, turn] >= count
    for core in cores:
        assert core.statistics().open == 0


def _held_by_others(spec: TopologySpec) -> bool:
    """A join whose partner was lost acks alone, so it may bring no joined tuple that fails, or one of another life."""
    return any(bolt.acks == "join" for bolt in spec.bolts)


def _parsed(message: str) -> tuple[str, int, int, int]:
    spout, index, number, life = json.loads(message)
    return spout, index, number, life


def run_supersteps(cores: list[Worker], step: Step, last: int) -> list[Any]:
    """Run supersteps 0 to ``last`` of a batch; the reports, if the last of all was among them."""
    inbound: list[list[Frame]] = [[] for _ in cores]
    for superstep in range(last + 1):
        replies = [core.run(step._replace(superstep=superstep), inbound[core.index]) for core in cores]
        frames = [frame for reply in replies for frame in reply]
        inbound = [
            sorted((f for f in frames if f.target == core.index), key=lambda f: (f.sender, f.sequence))
            for core in cores
        ]
    return [pickle.loads(f.payload) for of in inbound for f in of if f.kind == FrameKind.REPORT]


def on_an_engine(spec: TopologySpec, folder: Path, start: Callable[[Topology, dict[str, Any]], Any]) -> None:
    """Run it on real time until it is idle, and compare."""
    folder.mkdir()
    begin_run()
    running = start(built(spec), {FOLDER: str(folder)})
    try:
        wait_until_idle(running, 120)
        statistics = running.statistics()
    finally:
        running.stop()
    assert running.error is None
    check(spec, Notes.read(folder))
    assert statistics.total("pending") == 0


@pytest.mark.spark
@pytest.mark.parametrize("seed", ON_SPARK)
def test_on_spark_and_on_the_local_engine(seed: int, start: Callable[..., Any], tmp_path: Path) -> None:
    """A15, B4-B10, C5, C9, D1-D15, E20-E26, E29-E34, X68: one, two or three workers, by the seed."""
    spec = random_topology(seed)
    workers = {"topology.workers": 1 + seed % 3}
    on_an_engine(spec, tmp_path / "local", lambda topology, conf: submit(topology, conf=conf | workers))
    on_an_engine(spec, tmp_path / "spark", lambda topology, conf: start(topology, conf=conf | workers))
