"""A bolt that becomes ten times slower, and again as fast as before; a call that does not return for a while, and then does."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from stormspark.backpressure import Limits
from stormspark.driver.throttle import Throttle
from stormspark.metrics import TopologyStatistics
from stormspark.spark import SparkTopology
from tests.faults.backpressure.components import Dial, build
from tests.faults.backpressure.rounds import Rounds, full_speed, rate
from tests.faults.backpressure.watch import LONG_SECS, Say, Watch
from tests.waiting import PATIENCE_SECS

# In a short run, `test_recovers` and `test_slow_bolt` show as much.
pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow, pytest.mark.alone, pytest.mark.long]

FAST_SECS, SLOW_SECS = 0.0005, 0.005
STALL_SECS = 30.0 if LONG_SECS else 2.0
#: Of a fast part, of the slow one, and of the last one.
PART_SECS = max(20.0, (LONG_SECS - STALL_SECS) / 4) if LONG_SECS else 4.0
TARGET_SECS = 1.0 if LONG_SECS else 0.5
#: Full speed is this share of what it was before. How long it takes to be back there says little on a machine that others use as
#: well, so a short run counts rounds.
FULL = 0.9 if LONG_SECS else 0.3
MOST_ROUNDS = 3 if LONG_SECS else 6
#: In targets: of so many a round may be while a bolt is at fault, and the one that runs when the load changes has to end first.
LONGEST_ROUND = 4
#: So many rounds at full speed are no luck.
TOGETHER = 3 if LONG_SECS else 1


@dataclass
class Course:
    """What became of one run."""

    statistics: TopologyStatistics
    rounds: Rounds
    seconds: float
    executed: int
    spout_tasks: Sequence[int]
    #: By what changed: how many seconds, and rounds, until it ran at full speed again.
    recovery: dict[str, tuple[float, int]] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Executed tuples a second, over the whole run."""
        return self.executed / self.seconds


@pytest.fixture
def take_course(
    start: Callable[..., SparkTopology], spark: SparkSession, tmp_path: Path, folder: Path, say: Say
) -> Callable[[str], Course]:
    """Runs the topology through it: fast, slow, fast, stalled, fast."""

    def take(name: str) -> Course:
        path = tmp_path / f"{name}-dial"
        dial = Dial(path)
        dial.set(FAST_SECS)
        # A call that stalls for as long as a message may take is a reason to time out, whatever backpressure does.
        conf = {
            "topology.workers": 2,
            "topology.message.timeout.secs": 120,
            "stormspark.batch.target.ms": TARGET_SECS * 1000,
            "stormspark.log.dir": str(tmp_path),
        }
        running = start(build(name, path), conf=conf)
        watch = Watch(running, spark, say)
        watch.until(lambda: watch.rounds, PATIENCE_SECS, "the first round")
        watch.begin()
        began, executed = time.monotonic(), watch.statistics().components["slow"].executed

        def part() -> None:
            first = len(watch.rounds)
            watch.run(PART_SECS)
            if not LONG_SECS:  # what long runs are compared by is their time
                watch.until(lambda: len(watch.rounds) >= first + 3, PATIENCE_SECS, "three rounds")

        part()
        changed = time.monotonic()
        before = [one for one in watch.rounds if began + (changed - began) / 3 < one.ended]
        full = FULL * rate(before or watch.rounds[-1:])
        dial.set(SLOW_SECS)
        part()
        dial.set(FAST_SECS)
        faster = time.monotonic()
        part()
        dial.stall()
        watch.run(STALL_SECS)
        dial.set(FAST_SECS)
        released = time.monotonic()
        part()

        now, seconds = watch.statistics(), time.monotonic() - began
        watch.save(folder)
        running.stop()
        assert running.error is None
        executed = now.components["slow"].executed - executed
        spouts = running.plan.components["flood"].tasks
        course = Course(now, watch.rounds, seconds, executed, spouts)
        course.recovery = {
            "ten times faster": full_speed(watch.rounds, faster, full, together=TOGETHER),
            "stall over": full_speed(watch.rounds, released, full, together=TOGETHER),
        }
        return course

    return take


def _fixed(limits: Limits, throttle: Throttle) -> Limits:
    return limits


def _row(run: str, course: Course) -> dict[str, Any]:
    pressure, flood = course.statistics.pressure, course.statistics.components["flood"]
    assert pressure is not None
    return {
        "run": run,
        "seconds": f"{course.seconds:.0f}",
        "rounds": len(course.rounds),
        "longest_round_s": f"{max(one.seconds for one in course.rounds):.1f}",
        "tuples_a_second": f"{course.rate:.0f}",
        "queued_at_most": max(one.queued for one in course.rounds),
        "limit_changes": pressure.limit_changes,
        "failed": flood.failed,
        "timed_out": flood.timed_out,
        **{
            f"full_speed_after_{name.replace(' ', '_')}": f"{seconds:.1f} s, {rounds} rounds"
            for name, (seconds, rounds) in course.recovery.items()
        },
    }


def test_it_follows_the_bolt_and_is_back_at_full_speed_soon(
    take_course: Callable[[str], Course], note: Callable[..., None]
) -> None:
    """F14, W1, F9: three target batch times after a step down of the load, or after a stall, all is as it was; limits hardly move
    otherwise.
    """
    course = take_course("steps")
    note("A step of the load, tenfold, and a stall", **_row("controller", course))
    pressure, flood = course.statistics.pressure, course.statistics.components["flood"]
    assert pressure is not None
    assert flood.failed == flood.timed_out == 0
    assert course.statistics.components["slow"].errors == 0
    for what, (seconds, rounds) in course.recovery.items():
        assert rounds <= MOST_ROUNDS, f"{what}: {pressure.history}"
        assert seconds < math.inf, f"{what}: {pressure.history}"
        assert not LONG_SECS or seconds <= MOST_ROUNDS * LONGEST_ROUND * TARGET_SECS, (
            f"{what}: {pressure.history}"
        )
    # Each of the four changes takes some; what a limit swings about would take one a round.
    assert pressure.limit_changes <= 24 + len(course.rounds) // 10, pressure.history


@pytest.mark.skipif(
    not LONG_SECS, reason="it takes a long run for each limit; `make soak-backpressure` has the time"
)
def test_no_fixed_limit_is_much_better(
    take_course: Callable[[str], Course], note: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F14: what Spark's users have without it is a number of rows a batch, the same for ever. The best of several that
    lets nothing time out gets through hardly more.
    """
    table = "The controller against fixed limits"
    course = take_course("against-limits")
    note(table, **_row("controller", course))
    rates = {}
    for limit in (500, 1500, 4500, 13500):
        fixed: Limits = dict.fromkeys(course.spout_tasks, limit)
        with monkeypatch.context() as patch:
            patch.setattr(Throttle, "limits", property(partial(_fixed, fixed)))
            one = take_course(f"limit-{limit}")
        note(table, **_row(f"{limit} tuples a round", one))
        flood = one.statistics.components["flood"]
        if flood.failed == flood.timed_out == 0:
            rates[limit] = one.rate
    best = max(rates, key=lambda limit: rates[limit])
    note(
        table,
        run=f"controller / best fixed limit ({best})",
        tuples_a_second=f"{course.rate / rates[best]:.1%}",
    )
    assert course.rate >= 0.9 * rates[best]
