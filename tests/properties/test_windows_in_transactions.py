"""Windows where batches are transactions: workers, drivers and tuples fail anywhere, and each window happens once (C41, C44)."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stormspark import (
    Count,
    Duration,
    FailedException,
    Fields,
    KeyValueState,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    StatefulBolt,
    StatefulWindowedBolt,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    TupleWindow,
    WindowedBolt,
)
from stormspark.plan import plan_topology
from stormspark.windowing import EventTimeWindows, Length, ProcessingTimeWindows, Watermarks
from tests.properties.test_transactions import LONG_SECS, Engine, acked, clock
from tests.repeatable_spouts import NumbersFromState

#: `make soak` draws more of them.
EXAMPLES = int(os.environ.get("WINDOW_EXAMPLES", min(8, settings().max_examples // 6)))
MESSAGES = 40
#: What is drawn outside of the state; each example has its own.
dice = Random()
#: How likely a component fails a tuple or raises, and how often it may: a batch of many windows has to come to its end.
accidents, ACCIDENTS = 0.0, 15
happened = 0
DISORDER = 30


def timestamp(n: int) -> int:
    """Out of order by less than `DISORDER`; every eleventh comes far too late."""
    return n * 10 + n * 7 % DISORDER if n % 11 else max(0, n * 10 - 300)


class Numbers(NumbersFromState):
    """Some of them a batch, and then the last ones, which let all others out of their windows."""

    fields = ("n", "at")

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.left = 0

    def next_tuple(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.left = dice.randrange(12)
            clock.advance(dice.choice([0, 0.004, 0.05, 0.3]))
        elif self.n < MESSAGES:
            self.emit_next(self.n, timestamp(self.n))

    def ack(self, message_id: Any) -> None:
        acked[message_id] += 1


def happens(likely: float) -> bool:
    global happened  # noqa: PLW0603
    found = happened < ACCIDENTS and dice.random() < likely
    happened += found
    return found


def accident(collector: Any, tup: Any) -> None:
    if happens(0.02):
        clock.advance(LONG_SECS)  # the superstep is cut, and the batch has more rounds
    if happens(accidents):
        collector.fail(tup)
    if happens(accidents):
        msg = "not this time"
        raise FailedException(msg)
    if happens(accidents):
        msg = "an accident"
        raise ValueError(msg)


class Windows(WindowedBolt):
    persistent = False

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, window: TupleWindow) -> None:
        items = [tup["n"] for tup in window]
        deltas = ([tup["n"] for tup in window.new], [tup["n"] for tup in window.expired])
        assert all(tup.source_component == "numbers" and tup["at"] == timestamp(tup["n"]) for tup in window)
        self.collector.emit((items, *deltas, window.start_timestamp, window.end_timestamp))
        accident(self.collector, window[0])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("items", "new", "expired", "start", "end"))


class Counting(StatefulWindowedBolt[KeyValueState[str, int]], Windows):
    """Counts its windows, and does not have them in memory."""

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.state = state

    def execute(self, window: TupleWindow) -> None:
        self.state["windows"] = self.state.get("windows", 0) + 1
        items = [tup["n"] for tup in window]
        self.collector.emit((items, [], [], window.start_timestamp, window.end_timestamp))
        accident(self.collector, window[-1])


class Collect(StatefulBolt[KeyValueState[int, Any]]):
    """What comes, in order."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def init_state(self, state: KeyValueState[int, Any]) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        self.state[len(self.state)] = tup.values
        accident(self.collector, tup)
        if tup.state != 1:
            self.collector.ack(tup)


class Late(Collect):
    """Late tuples, as the one value of another tuple."""

    def execute(self, tup: Tuple) -> None:
        super().execute(Tuple(tup["late_tuple"].values, tup._source, tup.roots))


def model(length: Length, slide: Length) -> list[tuple[Any, ...]]:
    """One after another, in event time without a limit, or by counts."""
    windows = ProcessingTimeWindows[int](length, slide)
    fired = [windows.evaluate(n) for n in range(MESSAGES) if windows.add(n, n)]
    return [(list(w.items), list(w.new), list(w.expired)) for w in fired if w is not None]


def run(
    bolt: WindowedBolt, seed: int, deaths: float, failing: float, workers: int, late: str | None = None
) -> tuple[Engine, list[Any], list[Any]]:
    """What came out of the windows, and who was late."""
    global accidents, happened
    dice.seed(seed)
    accidents, happened = failing, 0
    acked.clear()
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("windows", bolt).shuffle_grouping("numbers")
    builder.set_bolt("collect", Collect()).shuffle_grouping("windows")
    if late:
        builder.set_bolt("late", Late()).shuffle_grouping("windows", late)
    conf = {"topology.workers": workers, "stormspark.exactly.once": True}
    plan = plan_topology(builder.create_topology("t"), conf)
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(plan, Path(folder) / "state", Random(seed), deaths)
        rest = 0
        while rest < 4:
            clock.advance(1.0 if rest else 0.1)
            engine.batch()
            emitted = engine.state("numbers").get("n", 0)
            assert set(acked) <= set(range(emitted)), "an ack before its commit"
            rest += emitted == MESSAGES
        for worker in engine.workers:
            worker.validate()
            left = worker.ledger.statistics()
            assert not worker.backlog and left.open == left.parts == 0
        assert max(acked.values()) == 1
        if not deaths:
            assert set(acked) == set(range(MESSAGES))
        found = engine.state("collect")
        if isinstance(bolt, Counting):
            assert engine.state("windows") == {"windows": len(found)}
        late_ones = engine.state("late") if late else {}
        return engine, [found[i] for i in range(len(found))], list(late_ones.values())


FAULTS = {
    "seed": st.integers(0, 2**32),
    "deaths": st.sampled_from([0.0, 0.005, 0.03]),
    "failing": st.sampled_from([0.0, 0.02]),
    "workers": st.integers(1, 3),
}


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(length=st.integers(1, 20), slide=st.integers(1, 20), persistent=st.booleans(), **FAULTS)
def test_counts(length: int, slide: int, persistent: bool, **faults: Any) -> None:
    """C23, C34, C41: the windows of a run without batches, each once, and what is new and has expired in each."""
    bolt = Counting().with_persistence().with_max_events_in_memory(3) if persistent else Windows()
    _, found, _ = run(bolt.with_window(Count(length), Count(slide)), **faults)
    expected = model(Count(length), Count(slide))
    if persistent:
        assert [items for items, *_ in found] == [items for items, *_ in expected]
    else:
        assert [one[:3] for one in found] == expected


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    length=st.integers(1, 1500).map(Duration) | st.integers(1, 20).map(Count),
    slide=st.sampled_from([None, Duration(100), Duration(700)]),
    **FAULTS,
)
def test_processing_time(length: Any, slide: Any, **faults: Any) -> None:
    """C29, C41: whenever they fire, each tuple is new once and expires once, in order, and windows follow each other."""
    tumbling = slide is None and isinstance(length, Duration)
    _, found, _ = run(Windows().with_window(length, length if tumbling else slide), **faults)
    new = [n for _, new, *_ in found for n in new]
    expired = [n for _, _, expired, *_ in found for n in expired]
    # What expired before a window that turned out to be empty is told to nobody (C28).
    assert new == sorted(set(new)) and expired == sorted(set(expired))
    ends = [end for *_, end in found]
    assert ends == sorted(ends)
    for items, *_ in found:
        assert items == list(range(items[0], items[-1] + 1))
        if isinstance(length, Count):
            assert len(items) <= length.value
    if tumbling:
        assert [n for items, *_ in found for n in items] == list(range(MESSAGES))


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(
    length=st.integers(1, 200).map(Duration) | st.integers(1, 9).map(Count),
    slide=st.integers(1, 100).map(Duration) | st.integers(1, 9).map(Count),
    persistent=st.booleans(),
    **FAULTS,
)
def test_event_time(length: Any, slide: Any, persistent: bool, **faults: Any) -> None:
    """C30-C33, C41: on time or late, each once; the windows of those on time are those of a run that has no batches."""
    bolt: WindowedBolt = (
        Counting().with_persistence().with_max_events_in_memory(3) if persistent else Windows()
    )
    bolt.with_window(length, slide).with_timestamp_field("at").with_lag(Duration(DISORDER))
    bolt.with_late_tuple_stream("late").with_watermark_interval(Duration(50))
    _, found, late = run(bolt, late="late", **faults)
    late_ones = [n for n, _ in late]
    assert len(set(late_ones)) == len(late_ones)
    assert all(n % 11 == 0 for n in late_ones)
    on_time = sorted(set(range(MESSAGES)) - set(late_ones))
    expected = EventTimeWindows[int](length, slide)
    for n in on_time:
        assert expected.add(n, timestamp(n))
    marks = Watermarks([0], DISORDER)
    marks.track(0, max(map(timestamp, on_time)))
    watermark = marks.advanced()
    assert watermark is not None
    wanted = [
        (list(w.items), list(w.new), list(w.expired), w.start, w.end) for w in expected.advance(watermark)
    ]
    if persistent:
        wanted = [(items, [], [], start, end) for items, _, _, start, end in wanted]
    assert found == [tuple(one) for one in wanted]


@pytest.mark.slow
def test_what_has_left_its_windows_has_left_the_state() -> None:
    """C41: of 40 tuples in windows of 5 there is one page, with the last five."""
    engine, found, _ = run(Windows().with_tumbling_window(Count(5)), 7, 0, 0, 1)
    (task,) = (one for one in engine.workers[0].tasks.values() if one.component.id == "windows")
    assert task.state is not None and task.state.windows is not None and len(found) == MESSAGES // 5
    (page, progress) = sorted(task.state.windows, key=str)
    assert progress == "progress"
    _, _, _, _, values = pickle.loads(task.state.windows[page])
    assert [n for n, _ in values][-5:] == list(range(MESSAGES - 5, MESSAGES)) and len(values) < 20
