"""Whatever happens while spouts are held, they are not held for good (W1)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from stormspark.spark import SparkTopology
from tests.faults.backpressure.components import Dial, build
from tests.faults.backpressure.rounds import full_speed, rate
from tests.faults.backpressure.watch import LONG_SECS, Say, Watch
from tests.waiting import PATIENCE_SECS, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow, pytest.mark.alone]

COST_SECS = 0.002
TARGET_SECS = 0.5
SETTLE_SECS = 4.0 if LONG_SECS else 1.5
PAUSE_SECS = 15.0 if LONG_SECS else 2.0
#: Each of these so often.
TIMES = max(1, int(LONG_SECS / 60))
#: Of what it did before; and so many seconds it may take, a new worker's start among them. On a machine that others use as well
#: neither says much in a short run.
FULL, MOST_SECS = (0.75, 30.0) if LONG_SECS else (0.3, 90.0)


class _Scene:
    """A topology whose spout is held."""

    def __init__(self, running: SparkTopology, watch: Watch, dial: Dial) -> None:
        self.running, self.watch, self.dial = running, watch, dial


def _kill_spouts_worker(scene: _Scene) -> None:
    _kill(scene, "flood")


def _kill_bolts_worker(scene: _Scene) -> None:
    _kill(scene, "slow")


def _kill(scene: _Scene, component: str) -> None:
    plan = scene.running.plan
    worker = plan.tasks[plan.components[component].tasks[0]].worker
    victim = worker_processes(scene.running.name)[worker]
    victim.kill()
    victim.wait(60)


@contextmanager
def _stopped(process: psutil.Process) -> Iterator[None]:
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def _pause_driver(scene: _Scene) -> None:
    """Spark's part of it: no batch begins, none ends, and Python waits for it."""
    with _stopped(scene.watch.jvm):
        time.sleep(PAUSE_SECS)


def _pause_worker(scene: _Scene) -> None:
    plan = scene.running.plan
    worker = plan.tasks[plan.components["slow"].tasks[0]].worker
    with _stopped(worker_processes(scene.running.name)[worker]):
        time.sleep(PAUSE_SECS)


def _stall(scene: _Scene) -> None:
    scene.dial.stall()
    time.sleep(PAUSE_SECS)
    scene.dial.set(COST_SECS)


HURTS = {
    "driver paused": _pause_driver,
    "bolt's worker killed": _kill_bolts_worker,
    "spout's worker killed": _kill_spouts_worker,
}
if LONG_SECS:
    HURTS |= {"the bolt stalls": _stall, "bolt's worker paused": _pause_worker}


def _recovery(watch: Watch, over: float, full: float) -> float:
    return full_speed(watch.rounds, over, full, together=2)[0]


def _is_fast(watch: Watch, over: float, full: float) -> bool:
    return _recovery(watch, over, full) < MOST_SECS


def test_a_topology_that_is_held_goes_on_at_full_speed(
    start: Callable[..., SparkTopology],
    spark: SparkSession,
    tmp_path: Path,
    note: Callable[..., None],
    say: Say,
) -> None:
    """W1, F14, E15: relief is computed from each round anew, so nothing that is lost on the way can hold a spout for ever."""
    dial = Dial(tmp_path / "dial")
    dial.set(COST_SECS)
    conf = {
        "topology.workers": 2,
        "topology.message.timeout.secs": 120,
        "stormspark.batch.target.ms": TARGET_SECS * 1000,
        "stormspark.log.dir": str(tmp_path),
    }
    running = start(build("recovers", tmp_path / "dial"), conf=conf)
    watch = Watch(running, spark, say)
    scene = _Scene(running, watch, dial)
    watch.until(lambda: watch.rounds, PATIENCE_SECS, "the first round")
    for what, hurt in list(HURTS.items()) * TIMES:
        watch.run(SETTLE_SECS)
        watch.until(partial(watch.is_held_by, "slow"), MOST_SECS, "the spout to be held")
        full = FULL * rate(watch.rounds[-3:])
        hurt(scene)
        over = time.monotonic()

        watch.until(partial(_is_fast, watch, over, full), 2 * MOST_SECS, f"full speed after {what}")
        note(
            "Held, and hurt",
            what=what,
            full_speed_after_s=f"{_recovery(watch, over, full):.1f}",
            before_per_s=f"{full / FULL:.0f}",
            queued_at_most=max(one.queued for one in watch.rounds),
        )
    now = watch.statistics()
    running.stop()
    assert running.error is None
    flood = now.components["flood"]
    assert now.components["slow"].errors == 0, now.components["slow"].last_error
    assert flood.timed_out == 0
    assert flood.failed == flood.worker_lost, "nothing fails but what a killed worker had"
