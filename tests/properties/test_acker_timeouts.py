"""E10, E28, C11, W2, W3: message timeouts on clocks that jump forward or back, or stand still."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import BasicBolt, Bolt, Spout, TopologyBuilder
from stormspark.acker import RunningClock
from stormspark.local import InProcessWorkers
from stormspark.plan import plan_topology
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.spout_task import SpoutTask
from tests.properties.test_acker_tasks import declare

TIMEOUT = 30
GAP = 2

#: Whole seconds, so that sums are exact: usual steps, standstill, a jump forward, one back.
STEPS = st.one_of(st.integers(0, 9), st.just(0), st.integers(10, 500), st.integers(-500, -1))


@given(
    gap=st.integers(0, 5),
    events=st.lists(st.tuples(st.sampled_from(["begin_batch", "advance", "end_batch"]), STEPS), max_size=60),
)
def test_the_running_clock_counts_work_whole_and_gaps_up_to_a_limit(
    gap: int, events: list[tuple[str, int]]
) -> None:
    """E28, W2, W3: what goes back counts as nothing; a batch that never ended was followed by a gap."""
    clock = RunningClock(gap)
    now = 1000
    seconds, last, working = 0, None, False
    for event, step in events:
        now += step
        getattr(clock, event)(now)
        if event == "begin_batch":
            if last is not None:
                seconds += min(max(now - last, 0), gap)
            last, working = now, True
        elif working and last is not None:
            seconds += max(now - last, 0)
            last, working = now, event == "advance"
        assert clock.seconds == seconds


class Emits(Spout):
    """Emits what it is told to, notes what times out."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.todo: list[int] = []
        self.heard: list[tuple[str, int]] = []

    def next_tuple(self) -> None:
        while self.todo:
            number = self.todo.pop()
            self.collector.emit((number,), message_id=number)

    def ack(self, message_id: Any) -> None:
        self.heard.append(("ACKED", message_id))

    def fail(self, message_id: Any) -> None:
        self.heard.append((self.collector.verdict.outcome.name, message_id))

    def declare_output_fields(self, declarer: Any) -> None:
        declare(declarer)


class Holds(Bolt):
    """Keeps its tuples."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.kept: dict[int, Any] = {}

    def execute(self, tup: Any) -> None:
        self.kept[tup["uid"]] = tup


class Resets(BasicBolt):
    """Sends its tuples on, and resets the timeouts of some."""

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit(tup.values)
        if tup["uid"] % 3 == 0:
            collector.reset_timeout()

    def declare_output_fields(self, declarer: Any) -> None:
        declare(declarer)


@dataclass
class Open:
    """A message that is open: its age on the running clock, by the model."""

    since: int
    old_at: int | None = None


class Timeouts:
    """A topology of bolts that ack when they are told to, on a clock that a test drives."""

    def __init__(self, workers: int, seed: int) -> None:
        self.random = Random(seed)
        self.now = 5000
        builder = TopologyBuilder()
        builder.set_spout("emits", Emits(), 2)
        builder.set_bolt("resets", Resets(), 2).shuffle_grouping("emits")
        builder.set_bolt("holds", Holds(), 3).shuffle_grouping("resets")
        conf = {
            "topology.workers": workers,
            "topology.message.timeout.secs": TIMEOUT,
            "stormspark.clock.gap.ms": GAP * 1000,
            "stormspark.story.sample": 2,  # tracing changes nothing (W6)
            "stormspark.story.samples.per.sec": 1_000_000,
        }
        plan = plan_topology(builder.create_topology("timeouts"), conf)
        self.cluster = InProcessWorkers(plan, lambda: float(self.now), Random(seed))
        self.cluster.open()
        self.ran = 0  # seconds on the running clock, in every worker: nothing takes time inside a batch here
        self.before: int | None = None
        self.emitted = 0
        self.open: dict[int, Open] = {}

    def tasks(self, kind: type) -> list[Any]:
        return [t for w in self.cluster.workers for t in w.tasks.values() if isinstance(t, kind)]

    def holders(self) -> list[Any]:
        return [task.bolt for task in self.tasks(BoltTask) if task.component.id == "holds"]

    def some_kept(self) -> list[tuple[Any, int]]:
        return [(bolt, uid) for bolt in self.holders() for uid in bolt.kept if self.random.random() < 0.2]

    def batch(self, step: int) -> None:
        """Time passes, then the spouts emit, and bolts ack and reset some of what they keep."""
        self.now += step
        if self.before is not None:
            self.ran += min(max(step, 0), GAP)
        self.before = self.now
        for task in self.tasks(SpoutTask):
            for _ in range(self.random.randrange(3)):
                task.spout.todo.append(self.emitted)
                self.open[self.emitted] = Open(self.ran)
                self.emitted += 1
        acked, reset = self.some_kept(), self.some_kept()
        for bolt, uid in reset:
            bolt.collector.reset_timeout(bolt.kept[uid])
        for bolt, uid in acked:
            bolt.collector.ack(bolt.kept.pop(uid))
        self.cluster.run_batch()
        for worker in self.cluster.workers:
            worker.validate()
        for task in self.tasks(SpoutTask):
            self.check(task.spout, {uid for _, uid in acked})
        for _, uid in reset:
            self.touch(uid)

    def touch(self, uid: int) -> None:
        if uid in self.open:
            self.open[uid] = Open(self.ran)

    def check(self, spout: Any, acked: set[int]) -> None:
        for what, uid in spout.heard:
            one = self.open.pop(uid)
            if what == "ACKED":
                assert uid in acked
            else:
                assert what == "TIMED_OUT"
                assert self.ran >= one.since + TIMEOUT, "E28: not before the timeout"
        spout.heard.clear()

    def too_old(self) -> list[int]:
        """What should have timed out: two looks at the clock, a timeout apart, found it a timeout old."""
        late = []
        for uid, one in self.open.items():
            if one.old_at is None and self.ran >= one.since + TIMEOUT:
                one.old_at = self.ran
            if one.old_at is not None and self.ran >= one.old_at + TIMEOUT:
                late.append(uid)
        return late


@pytest.mark.slow
@given(workers=st.integers(1, 3), seed=st.integers(0, 2**32), steps=st.lists(STEPS, min_size=20, max_size=90))
def test_what_is_not_acked_times_out_between_one_and_two_timeouts_of_running_time(
    workers: int, seed: int, steps: list[int]
) -> None:
    """E9, E10, E28, C11, W2, W3: also with resets from every worker; what is acked in time never fails."""
    run = Timeouts(workers, seed)
    for step in steps:
        run.batch(step)
        assert not run.too_old()
    heard = run.emitted - len(run.open)
    counters = [task.counters for task in run.tasks(SpoutTask)]
    assert sum(c.acked + c.failed for c in counters) == heard
    assert sum(c.timed_out for c in counters) == sum(c.failed for c in counters)


@pytest.mark.slow
@given(workers=st.integers(1, 3), seed=st.integers(0, 2**32))
def test_what_is_reset_in_time_never_fails_and_the_rest_does(workers: int, seed: int) -> None:
    """C11, E6: for as long as somebody resets it, whichever worker that is."""
    run = Timeouts(workers, seed)
    run.random.random = lambda: 1.0  # type: ignore[method-assign]  # nothing is acked or reset by chance
    run.batch(1)
    run.random.randrange = lambda *_: 0  # type: ignore[method-assign]  # nothing more is emitted
    saved = {uid for uid in run.open if uid % 2}
    for _ in range(200):
        for bolt in run.holders():
            for uid in saved & bolt.kept.keys():
                bolt.collector.reset_timeout(bolt.kept[uid])
        run.batch(GAP)
        for uid in saved:
            run.touch(uid)
    assert set(run.open) == saved
