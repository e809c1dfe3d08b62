"""A spout at full speed into a bolt that is a hundred times slower: the spout is slowed down, and nothing else happens.

In the short form a few seconds, with slack for a busy machine; ``make soak-backpressure`` runs minutes of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stormspark.driver.throttle import Throttle
from stormspark.spark import SparkTopology
from tests.faults.backpressure.components import Dial, build
from tests.faults.backpressure.rounds import rate, utilisation
from tests.faults.backpressure.watch import LONG_SECS, Say, Watch, flatness
from tests.waiting import PATIENCE_SECS

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow, pytest.mark.alone]

COST_SECS = 0.001
SECS = LONG_SECS or 7.0
#: Of the bolt's own rate. A short run is over before it has settled, on a machine that does other things too, where a bolt
#: beside its spout gets the least.
LEAST_SHARE = 0.9 if LONG_SECS else 0.1
#: What a flat series may rise over the run, and its highest value be above the median, as shares of the median, and MB besides.
MAY_RISE, MAY_STAND_OUT, SLACK_MB = (0.05, 0.15, 8.0) if LONG_SECS else (0.2, 0.3, 25.0)


#: What runs, in how many workers, how many tasks each of spout and bolt, and whether the bolt computes or sleeps.
RUNS = {"across workers": (2, 1, False)}
if LONG_SECS:
    RUNS |= {
        "beside each other": (2, 2, False),
        "one worker": (1, 1, False),
        "across workers, it computes": (2, 1, True),
    }


@pytest.mark.parametrize("run", RUNS)
def test_memory_is_flat_and_the_bolt_busy(
    run: str,
    start: Callable[..., SparkTopology],
    spark: SparkSession,
    tmp_path: Path,
    folder: Path,
    note: Callable[..., None],
    say: Say,
) -> None:
    """F14, F6, F11, B4: bounded memory, nothing fails, order is kept, the bolt hardly waits, it is told who held the spout."""
    workers, each, computes = RUNS[run]
    dial = Dial(tmp_path / "dial")
    dial.set(COST_SECS)
    name = "slow-" + re.sub(r"\W+", "-", run)
    topology = build(name, tmp_path / "dial", spouts=each, bolts=each, computes=computes)
    running = start(topology, conf={"topology.workers": workers, "stormspark.log.dir": str(tmp_path)})
    watch = Watch(running, spark, say)
    watch.until(lambda: watch.rounds, PATIENCE_SECS, "the first round")
    # A bolt beside its spout takes the time of that, and is named where it has three quarters of a round:
    # on a machine that does other things too, a short run may not see that.
    apart = run.startswith("across")
    if apart or LONG_SECS:
        watch.until(partial(watch.is_held_by, "slow"), PATIENCE_SECS, "the spout to be held")
    held_before = watch.held_ms("slow")
    began = time.monotonic()
    watch.begin()
    watch.run(SECS)
    watch.save(folder)
    now, held = watch.statistics(), watch.held_ms("slow") - held_before
    running.stop()

    assert running.error is None and now.pressure is not None
    settled = watch.rounds.since(began + SECS / 5)
    share = utilisation(settled)
    changes = now.pressure.limit_changes - watch.samples[len(watch.samples) // 5].limit_changes
    slow, flood = now.components["slow"], now.components["flood"]
    series = {
        name: [getattr(sample, name) for sample in watch.samples]
        for name in ("worker_mb", "largest_worker_mb", "driver_mb", "heap_mb")
    }
    note(
        "A spout at full speed, a slow bolt",
        run=run,
        seconds=f"{SECS:g}",
        rounds=len(watch.rounds),
        tuples_a_second=f"{rate(settled):.0f}",
        of_its_own_rate=f"{share:.1%}",
        queued_at_most=max(one.queued for one in watch.rounds),
        limit_changes=f"{now.pressure.limit_changes}, {changes} when settled",
        failed=flood.failed,
        timed_out=flood.timed_out,
        **{
            f"{name.removesuffix('_mb')}_MB": "{:.0f}, rise {:+.1f}, peak {:+.1f}".format(
                sorted(values)[len(values) // 2], *flatness(values)
            )
            for name, values in series.items()
        },
    )
    assert flood.failed == flood.timed_out == slow.failed == slow.errors == 0, slow.last_error
    assert share >= LEAST_SHARE
    for name, values in series.items():
        middle, (rise, peak) = sorted(values)[len(values) // 2], flatness(values)
        assert rise <= MAY_RISE * middle + SLACK_MB, f"{name} grows: {values}"
        assert peak <= MAY_STAND_OUT * middle + SLACK_MB, f"{name} is not flat: {values}"
    assert set(now.pressure.spouts["flood"].throttled_ms) <= {"slow"}
    if apart or LONG_SECS:
        assert held > (SECS * 1000 / 2 if LONG_SECS else 0)
    if apart:
        assert flood.skipped_backpressure_ms > 0
    # A limit follows the speed of its bolts. On a machine that does other things too, that speed really changes by factors from
    # round to round, which a long run averages. That noise alone moves no limit shows on a simulated clock (`test_simulation`).
    assert not LONG_SECS or changes <= max(3, len(settled) // 4), now.pressure.history


@pytest.mark.skipif(
    not LONG_SECS, reason="it shows that this can fail; `make soak-backpressure` has the time"
)
def test_without_limits_tuples_pile_up_and_that_is_noticed(
    start: Callable[..., SparkTopology],
    spark: SparkSession,
    tmp_path: Path,
    note: Callable[..., None],
    say: Say,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the others keep empty is not empty by itself: up to the marks of the worker, which are the last resort."""
    monkeypatch.setattr(Throttle, "limits", None)
    dial = Dial(tmp_path / "dial")
    dial.set(COST_SECS)
    running = start(build("no-limits", tmp_path / "dial"), conf={"topology.workers": 2})
    watch = Watch(running, spark, say)
    watch.period = 1.0
    watch.until(lambda: watch.rounds, PATIENCE_SECS, "the first round")
    watch.begin()
    watch.run(20)
    series = [sample.worker_mb for sample in watch.samples]
    rise, peak = flatness(series, skip=0)
    queued = max(one.queued for one in watch.rounds)
    running.kill()
    note("A spout at full speed, a slow bolt", run="without limits", seconds=20, queued_at_most=queued,
         worker_MB=f"{sorted(series)[len(series) // 2]:.0f}, rise {rise:+.1f}, peak {peak:+.1f}")  # fmt: skip
    assert queued > 10_000
