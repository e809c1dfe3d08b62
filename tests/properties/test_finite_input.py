"""Finite inputs go through windows, joins and bolts that hold tuples, and what comes out is what a plain computation says.

Topologies are random: several workers, windows of all kinds, tuples that fail at the last bolt and come again, also those that
came out of a flush.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import (
    BasicBolt,
    Bolt,
    Count,
    Duration,
    Fields,
    OutputFieldsDeclarer,
    Spout,
    Topology,
    TopologyBuilder,
    TupleWindow,
    WindowedBolt,
)
from stormspark.local import LocalTopology, SimulatedClock
from stormspark.plan import plan_topology
from stormspark.windowing import EventTimeWindows, Length

#: More batches than any of these topologies needs.
MOST_BATCHES = 400
FIELDS = Fields("n", "at")


@dataclass
class Run:
    """What the components of the running topology share, as they all live in this process."""

    dice: Random
    out: list[tuple[Any, ...]]
    #: How many more tuples the last bolt fails.
    fails: int = 0


now: Run


class Finite(Spout):
    """Emits rows, and those that fail again; says when it is done."""

    waits = False

    def __init__(self, rows: Iterable[tuple[int, int]], *, tracked: bool = True) -> None:
        self.rows, self.tracked = list(rows), tracked

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        index, tasks = context.this_task_index, len(context.component_tasks(context.this_component_id))
        mine = self.rows[index::tasks]
        self.collector, self.left, self.open_rows = collector, deque(mine), Counter(mine)

    def next_tuple(self) -> None:
        if self.left and now.dice.random() < 0.8:
            row = self.left.popleft()
            self.collector.emit(row, message_id=row if self.tracked else None)

    def is_done(self) -> bool:
        return not self.left

    def fail(self, message_id: Any) -> None:
        self.left.append(message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(FIELDS)


class Pass(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit(tup.values)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(FIELDS)


class Batches(Bolt):
    """Holds tuples until there are three; by ticks, or by `end_of_input`."""

    waits = False

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector, self.held = collector, []  # type: ignore[var-annotated]

    def execute(self, tup: Any) -> None:
        self.held.append(tup)
        if len(self.held) >= 3:
            self.write()

    def write(self) -> None:
        held, self.held = self.held, []
        for tup in held:
            self.collector.emit(tup.values, anchors=held)
        for tup in held:
            self.collector.ack(tup)

    def end_of_input(self) -> None:
        self.write()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(FIELDS)


class ByTicks(Batches):
    end_of_input = Bolt.end_of_input

    def execute(self, tup: Any) -> None:
        if tup.is_tick:
            self.collector.ack(tup)
            self.write()
        else:
            self.held.append(tup)

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {"topology.tick.tuple.freq.secs": 3600}


class Windows(WindowedBolt):
    """Emits the rows of each window; ``whole`` as one tuple."""

    waits = False

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, window: TupleWindow) -> None:
        if self.whole:
            items = tuple(sorted((tup["n"], tup["at"]) for tup in window))
            self.collector.emit((items, window.end_timestamp))
        else:
            for tup in window.new:
                self.collector.emit(tup.values)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(FIELDS)


class Joined(Windows):
    """Joins the two spouts by ``n``."""

    def execute(self, window: TupleWindow) -> None:
        sides: dict[str, list[int]] = {"a": [], "b": []}
        for tup in window:
            sides[tup.source_component].append(tup["n"])
        for n in sides["a"]:
            for other in sides["b"]:
                if n == other:
                    self.collector.emit((n, 0))


class Collect(Bolt):
    waits = False

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Any) -> None:
        if now.fails > 0 and now.dice.random() < 0.3:
            now.fails -= 1
            self.collector.fail(tup)
            return
        now.out.append(tuple(tup.values))
        self.collector.ack(tup)


def run(
    topology: Topology, seed: int, *, fails: int = 0, passes: float = 0.0, **conf: Any
) -> tuple[Any, list[Any]]:
    """Run a topology until it ends by itself. Return its statistics, and what has come out.

    At random, ``passes`` seconds pass between two batches.
    """
    global now  # noqa: PLW0603
    now = Run(Random(seed), [], fails)
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    clock = SimulatedClock()
    running = LocalTopology(plan_topology(topology, settings), clock, Random(seed))
    try:
        for _ in range(MOST_BATCHES):
            if running.wait(0):
                break
            if now.dice.random() < 0.3:
                clock.advance(passes)
            running.run_batch()
        assert running.wait(0), "it has not ended"
    finally:
        running.kill()
    statistics = running.statistics()
    assert statistics.total("pending") == 0 and statistics.backlog == 0
    return statistics, now.out


def event(bolt: WindowedBolt, length: Length, slide: Length, **options: Any) -> WindowedBolt:
    return bolt.with_window(length, slide).with_timestamp_field("at").with_lag(Duration(10**6))


ROWS = st.lists(st.integers(0, 300), max_size=40).map(lambda times: list(enumerate(times)))
COUNTS = st.integers(1, 9).map(Count)
DURATIONS = st.integers(1, 60).map(Duration)
STAGES = st.lists(st.sampled_from(["pass", "batches", "ticks", "tumbling", "counts", "arrival"]), max_size=4)


def stage(kind: str, length: int) -> Any:
    return {
        "pass": Pass,
        "batches": Batches,
        "ticks": ByTicks,
        "tumbling": lambda: event(Windows(), Duration(length), Duration(length)),
        "counts": lambda: Windows().with_window(Count(length + 3), Count(length)),
        "arrival": lambda: Windows().with_tumbling_window(Duration.seconds(length)),
    }[kind]()


@pytest.mark.slow
@given(
    rows=ROWS,
    stages=STAGES,
    length=st.integers(1, 8),
    tasks=st.integers(1, 3),
    workers=st.integers(1, 3),
    fails=st.integers(0, 4),
    exactly_once=st.booleans(),
    passes=st.sampled_from([0.0, 0.4, 5.0]),
    seed=st.integers(0, 2**32),
)
def test_all_that_went_in_comes_out(
    rows: list[tuple[int, int]],
    stages: list[str],
    length: int,
    tasks: int,
    workers: int,
    fails: int,
    exactly_once: bool,
    passes: float,
    seed: int,
) -> None:
    """Whatever holds it on its way; exactly once if nothing fails, or if batches are transactions."""
    if exactly_once and any(one in ("batches", "ticks") for one in stages):
        exactly_once = False  # these bolts hold tuples outside of their state
    builder = TopologyBuilder()
    builder.set_spout("spout", Finite(rows), 1 if exactly_once else tasks)
    before = "spout"
    for number, kind in enumerate(stages):
        builder.set_bolt(f"{number} {kind}", stage(kind, length), tasks).fields_grouping(before, Fields("n"))
        before = f"{number} {kind}"
    builder.set_bolt("collect", Collect()).shuffle_grouping(before)
    conf = {"topology_workers": workers, "topology_message_timeout_secs": 1000}
    if exactly_once:
        conf["stormspark_exactly_once"] = True
    statistics, out = run(builder.create_topology("t"), seed, fails=fails, passes=passes, **conf)
    assert set(out) == set(rows)
    if not fails:
        assert Counter(out) == Counter(rows)
        assert statistics.components["spout"].acked == len(rows)
    assert statistics.total("late") == 0


@pytest.mark.slow
@given(
    rows=ROWS,
    length=COUNTS | DURATIONS,
    slide=COUNTS | DURATIONS,
    workers=st.integers(1, 3),
    exactly_once=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_all_windows_fire_that_have_rows(
    rows: list[tuple[int, int]], length: Length, slide: Length, workers: int, exactly_once: bool, seed: int
) -> None:
    """Event time: the windows are those of a plain computation over all rows."""
    expected = Counter(windows_of(rows, length, slide))
    builder = TopologyBuilder()
    builder.set_spout("spout", Finite(rows))
    builder.set_bolt("windows", event(Windows(whole=True), length, slide)).shuffle_grouping("spout")
    builder.set_bolt("collect", Collect()).shuffle_grouping("windows")
    _, out = run(
        builder.create_topology("t"), seed, topology_workers=workers, stormspark_exactly_once=exactly_once
    )
    assert Counter(out) == expected


def windows_of(rows: list[tuple[int, int]], length: Length, slide: Length) -> list[tuple[Any, ...]]:
    """The windows of all rows, by the definition of windows."""
    # Rows of the same time are in the order in which they came, and this spout emits in order.
    rows = sorted(rows, key=lambda row: row[1])
    found = []
    if isinstance(slide, Count):
        ends = [*range(slide.value, len(rows) + 1, slide.value)]
        if rows and len(rows) % slide.value:
            ends.append(len(rows))
        # Tumbling windows have nothing in common, so the last one may be short.
        tumbling = isinstance(length, Count) and slide.value >= length.value
        begins = [end - 1 - (end - 1) % slide.value if tumbling else 0 for end in ends]
        reaches = [(rows[end - 1][1], rows[begin:end]) for begin, end in zip(begins, ends, strict=True)]
    elif rows:
        first, last = (-(-at // slide.value) * slide.value for at in (rows[0][1], rows[-1][1]))
        last += length.value if isinstance(length, Duration) else 0
        reaches = [
            (end, [row for row in rows if row[1] <= end]) for end in range(first, last + 1, slide.value)
        ]
    else:
        reaches = []
    for end, reach in reaches:
        by_count = isinstance(length, Count)
        items = reach[-length.value :] if by_count else [row for row in reach if row[1] > end - length.value]
        if items:
            found.append((tuple(sorted(items)), end))
    return found


@pytest.mark.slow
@given(
    left=st.lists(st.integers(0, 6), max_size=15),
    right=st.lists(st.integers(0, 6), max_size=15),
    length=st.integers(1, 40),
    by_event=st.booleans(),
    fails=st.integers(0, 2),
    workers=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_joins_have_all_pairs(
    left: list[int], right: list[int], length: int, by_event: bool, fails: int, workers: int, seed: int
) -> None:
    """Of a tumbling window, also if one side has nothing."""
    builder = TopologyBuilder()
    sides = {
        name: [(n, 1 + position % length) for position, n in enumerate(values)]
        for name, values in (("a", left), ("b", right))
    }
    for name, rows in sides.items():
        builder.set_spout(name, Finite(rows))
    joined = Joined().with_tumbling_window(Duration.minutes(5))
    bolt = builder.set_bolt("join", joined.with_timestamp_field("at") if by_event else joined, 2)
    bolt.fields_grouping("a", Fields("n")).fields_grouping("b", Fields("n"))
    builder.set_bolt("collect", Collect()).shuffle_grouping("join")
    conf = {"topology_workers": workers, "topology_message_timeout_secs": 1000}
    _, out = run(builder.create_topology("t"), seed, fails=fails, **conf)
    expected = Counter((n, 0) for n in left for other in right if n == other)
    if fails:
        assert set(out) == set(expected)
    else:
        assert Counter(out) == expected


@given(ROWS, st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32))
def test_event_time_begins_anew_after_the_end(
    rows: list[tuple[int, int]], length: int, slide: int, seed: int
) -> None:
    """What comes then is not late, and fires the same windows."""
    windows = EventTimeWindows[tuple[int, int]](Duration(length), Duration(slide))
    order = rows[:]
    Random(seed).shuffle(order)
    fired = []
    for _ in range(2):
        assert all(windows.add(row, row[1]) for row in order)
        fired.append([(window.items, window.end) for window in windows.end()])
        assert not len(windows.items)
    assert fired[0] == fired[1]


@pytest.mark.parametrize("workers", [1, 3])
def test_windows_in_a_loop_flush_until_nothing_goes_round(workers: int) -> None:
    """Each row goes round three times; at each time a window holds it."""

    class Rounds(Windows):
        def execute(self, window: TupleWindow) -> None:
            for tup in window.new:
                times = tup["at"]
                stream = "again" if times < 3 else "default"
                self.collector.emit((tup["n"], times + 1), stream)

        def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
            declarer.declare(FIELDS)
            declarer.declare_stream("again", FIELDS)

    builder = TopologyBuilder()
    builder.set_spout("spout", Finite([(n, 0) for n in range(7)]))
    bolt = builder.set_bolt("rounds", Rounds().with_tumbling_window(Count(5)), 2)
    bolt.shuffle_grouping("spout").shuffle_grouping("rounds", "again")
    builder.set_bolt("collect", Collect()).shuffle_grouping("rounds")
    _, out = run(builder.create_topology("t"), 1, topology_workers=workers)
    assert sorted(out) == [(n, 4) for n in range(7)]
