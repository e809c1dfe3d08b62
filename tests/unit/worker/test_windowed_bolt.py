"""Windowed bolts on the worker core, on a clock that the tests drive."""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest

from stormspark import (
    Count,
    Duration,
    FailedException,
    Fields,
    ReportedFailedException,
    TopologyBuilder,
    TupleWindow,
    WindowedBolt,
)
from stormspark.errors import InvalidTopologyError
from stormspark.plan import plan_topology
from stormspark.testing import TestWordSpout
from tests.unit.worker.components import Call, Collect, Script, fails_of
from tests.unit.worker.rig import Rig, two


class Windows(WindowedBolt):
    """Runs ``function(bolt, window)``; keeps (items, new, expired, start, end) of every window."""

    def __init__(self, function: Any = None, streams: dict[str, tuple[str, ...]] | None = None) -> None:
        self.function = function
        self.streams = streams or {"default": ("value",)}

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.context = context
        self.collector = collector
        self.seen: list[Any] = []
        self.kept: list[Any] = []
        self.cleaned = False

    def execute(self, window: TupleWindow) -> None:
        self.seen.append(
            (
                *([tup[0] for tup in tuples] for tuples in (window.tuples, window.new, window.expired)),
                window.start_timestamp,
                window.end_timestamp,
            )
        )
        if self.function is not None:
            self.function(self, window)

    def cleanup(self) -> None:
        self.cleaned = True

    def declare_output_fields(self, declarer: Any) -> None:
        for stream, fields in self.streams.items():
            declarer.declare_stream(stream, Fields(*fields))

    @property
    def items(self) -> list[list[Any]]:
        return [items for items, *_ in self.seen]


def rows(*values: Any) -> list[tuple[Any, ...]]:
    return [(value,) for value in values]


def windows_of(rig: Rig, component: str = "b") -> Windows:
    (executor,) = rig.users(component)
    bolt: Windows = executor.bolt
    return bolt


def heard(rig: Rig) -> list[tuple[str, int]]:
    """(ack or fail, message id), in order."""
    (spout,) = rig.users("a")
    return [(what, number) for what, number, *_ in spout.heard]


def acked(*numbers: int) -> list[tuple[str, int]]:
    return [("ack", number) for number in numbers]


def failed(*numbers: int) -> list[tuple[str, int]]:
    return [("fail", number) for number in numbers]


@pytest.mark.parametrize("workers", [1, 2])
def test_tumbling_counts_ack_what_leaves_the_window(workers: int) -> None:
    """A tumbling window acks its tuples when the next window pushes them out (C23, C27, C34, A4)."""
    rig = Rig(two(Windows().with_tumbling_window(Count(3)), rows(*range(8))), workers)
    rig.batches(3)
    assert windows_of(rig).items == [[0, 1, 2], [3, 4, 5]]
    assert heard(rig) == acked(0, 1, 2)  # 3, 4, 5 leave with the next window, 6 and 7 wait for it


def test_a_slide_that_is_left_out_is_one_tuple() -> None:
    """C23, C24: what is new and what has expired."""
    rig = Rig(two(Windows().with_window(Count(2)), rows(0, 1, 2)), 1)
    rig.batches(2)
    assert [window[:3] for window in windows_of(rig).seen] == [
        ([0], [0], []),
        ([0, 1], [1], []),
        ([1, 2], [2], [0]),
    ]
    assert heard(rig) == acked(0)


class Timed(Script):
    """Emits a row (at, value) when the simulated time is `at` seconds."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        super().open(conf, context, collector)
        self.context = context

    def next_tuple(self) -> None:
        if self.next < len(self.rows) and self.context.now_ms() >= self.rows[self.next][0] * 1000:
            self.next += 1
            self.collector.emit(self.rows[self.next - 1][1:], message_id=self.next - 1)


def test_durations_go_by_the_time_of_arrival() -> None:
    """C29: 2 s that slide by 1 s, up to one millisecond before the trigger."""
    spout = Timed([(at, value) for at, value in ((0, "a"), (0.5, "b"), (1, "c"), (1.5, "d"), (3.5, "e"))])
    rig = Rig(two(Windows().with_window(Duration.seconds(2), timedelta(seconds=1)), spout), 1)
    rig.batches(2)
    for _ in range(12):
        rig.advance(0.5, 2)
    assert windows_of(rig).seen == [
        (["a", "b"], ["a", "b"], [], -1001, 999),
        (["a", "b", "c", "d"], ["c", "d"], [], -1, 1999),
        (["c", "d"], [], ["a", "b"], 999, 2999),
        (["e"], ["e"], ["c", "d"], 1999, 3999),
        (["e"], [], [], 2999, 4999),
        # At 6 s there is nothing: no call, though "e" has just expired (C28).
    ]
    assert heard(rig) == acked(0, 1, 2, 3, 4)


def test_a_worker_that_was_busy_fires_once_and_misses_nothing() -> None:
    """C29, W14: the window grows by as much as the trigger is late, or 1 would be too old for any."""
    spout = Timed([(at, at) for at in (0, 1, 2, 3, 4)])
    rig = Rig(two(Windows().with_tumbling_window(Duration.seconds(1)), spout), 1)
    rig.batches(1)
    for seconds in (1, 2.5, 0.5, 1, 1):
        rig.advance(seconds, 2)
    assert windows_of(rig).items == [[0], [1], [2, 3], [4]]


def event_bolt(function: Any = None, **kwargs: Any) -> Windows:
    bolt = Windows(function, **kwargs).with_timestamp_field("value")
    return bolt.with_window(Duration(20), Duration(10)).with_watermark_interval(Duration(100))


@pytest.mark.parametrize("workers", [1, 2])
def test_event_time_goes_by_watermarks(workers: int) -> None:
    """C30, C32, A22: once an interval, the bolt's own."""
    rig = Rig(two(event_bolt().with_lag(Duration(5)), rows(3, 7, 5, 18, 26, 41)), workers)
    rig.batches(2)
    assert windows_of(rig).items == []
    rig.advance(0.1, 3)
    assert windows_of(rig).items == [[3, 5, 7], [3, 5, 7, 18], [18, 26]]
    assert sorted(heard(rig)) == acked(0, 1, 2)


def test_a_quiet_stream_stalls_the_windows() -> None:
    """C30: until every input stream has delivered something."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script(rows(5, 15, 25)))
    builder.set_spout("quiet", Timed([(1, 18), (2, 100)]))
    bolt = Windows().with_tumbling_window(Duration(10)).with_timestamp_field("value")
    builder.set_bolt("b", bolt).shuffle_grouping("a").shuffle_grouping("quiet")
    rig = Rig(builder, 1)
    rig.batches(1)
    rig.advance(0.9)
    assert windows_of(rig).items == []
    rig.advance(1.05, 2)  # now 18 is there
    rig.advance(1)
    assert windows_of(rig).items == [[5]]
    rig.advance(1, 2)  # the other one is at 25 only
    assert windows_of(rig).items == [[5], [15, 18]]


class LateScript(Timed):
    """Rows (at, timestamp)."""


LATE = [(0, 12), (0, 31), (1, 29), (1, 45), (2, 60)]


@pytest.mark.parametrize("workers", [1, 2])
def test_late_tuples_go_to_their_stream_as_copies(workers: int) -> None:
    """C31: with field late_tuple, anchored to the late tuple, which is acked."""
    bolt = event_bolt().with_late_tuple_stream("late")
    builder = two(bolt, LateScript(LATE))
    builder.set_bolt("c", Call(keep_late, {"default": ("n",)})).shuffle_grouping("b", "late")
    rig = Rig(builder, workers)
    rig.batches(2)
    rig.advance(0.5, 2)
    rig.advance(0.5, 2)
    rig.advance(1, 2)
    assert 29 not in {item for items in windows_of(rig).items for item in items}
    (late,) = [bolt.kept for bolt in rig.users("c")]
    ((copy, fields),) = late
    assert fields == ["late_tuple"]
    assert (copy["value"], copy.source_component, copy.source_stream, copy.roots) == (
        29,
        "a",
        "default",
        None,
    )
    assert ("fail", 2) in heard(rig)  # keep_late has failed it: it was anchored
    assert Counter(number for _, number in heard(rig)).most_common(1)[0][1] == 1


def keep_late(bolt: Any, tup: Any) -> None:
    bolt.kept.append((tup["late_tuple"], list(tup.fields)))
    bolt.collector.fail(tup)


def test_without_a_stream_late_tuples_are_logged_and_acked(caplog: pytest.LogCaptureFixture) -> None:
    """C31, W14: not each of them, for one timestamp that is far ahead makes all late."""
    late = [(1, number) for number in range(100, 200)]
    rig = Rig(two(event_bolt(), LateScript([(0, 10**15), *late])), 1)
    rig.batches(1)
    rig.advance(0.5)
    with caplog.at_level(logging.INFO, "stormspark.task.b"):
        rig.advance(0.5, 2)
    assert heard(rig) == acked(*range(1, 101))
    told = [record.getMessage() for record in caplog.records if "late tuple" in record.getMessage()]
    assert len(told) == 7 and "(100,)" in told[0] and "64 so far" in told[-1]


@pytest.mark.parametrize("wrong", [None, "12", 1.5, True])
def test_a_tuple_without_a_timestamp_fails_alone(wrong: Any) -> None:
    """C23, W22: with an error that says what came; the task and what it holds go on."""
    rig = Rig(two(event_bolt(), rows(3, 5, wrong, 18, 36)), 1)
    rig.batches(1)
    rig.advance(0.1, 2)
    assert windows_of(rig).items == [[3, 5], [3, 5, 18], [18]]
    assert sorted(heard(rig)) == [*acked(0, 1), ("fail", 2)]
    (error,) = rig.errors
    assert f"must be an integer, in epoch milliseconds, got {wrong!r} of type {type(wrong).__name__}" in error
    assert rig.tasks("b")[0].counters.restarts == 0


def test_an_extractor_gives_the_timestamp() -> None:
    """A timestamp extractor decides to which window a tuple belongs (C23)."""
    bolt = Windows().with_timestamp_extractor(lambda tup: tup["value"]["at"])
    rig = Rig(two(bolt.with_tumbling_window(Duration(10)), rows({"at": 5}, {"at": 15}, {"at": 25})), 1)
    rig.batches(1)
    rig.advance(1)
    assert windows_of(rig).items == [[{"at": 5}], [{"at": 15}]]


def test_an_extractor_that_raises_restarts_the_task() -> None:
    """W22: as any code of the bolt does."""
    bolt = Windows().with_timestamp_extractor(lambda tup: 10 // tup["value"])
    rig = Rig(two(bolt.with_tumbling_window(Duration(10)), rows(1, 0)), 1)
    rig.batches(2)
    assert heard(rig) == [("fail", 1), ("fail", 0)] and rig.tasks("b")[0].counters.restarts == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_window_emits_is_anchored_to_all_of_it(workers: int) -> None:
    """C27, E17, E25: a result that fails fails every tuple of its window, once; those that have left are acked."""

    def emit(bolt: Windows, window: TupleWindow) -> None:
        bolt.collector.emit((sum(tup["value"] for tup in window),))
        bolt.collector.emit((0,))

    def fail_nine(bolt: Any, tup: Any) -> None:
        (bolt.collector.fail if tup["value"] == 3 + 4 + 5 else bolt.collector.ack)(tup)

    builder = two(Windows(emit).with_tumbling_window(Count(3)), rows(*range(10)))
    builder.set_bolt("c", Call(fail_nine)).shuffle_grouping("b")
    rig = Rig(builder, workers)
    rig.batches(4)
    assert sorted(heard(rig)) == sorted([*acked(0, 1, 2), *failed(3, 4, 5)])
    assert all(ledger.ledger.statistics().parts == 0 or workers > 1 for ledger in rig.workers)


def test_anchors_can_be_named_or_left_out() -> None:
    """C27: anchors=() is an emit that nobody waits for; outside of a window there is nothing to anchor to."""

    def emit(bolt: Windows, window: TupleWindow) -> None:
        bolt.collector.emit(("none",), anchors=())
        bolt.collector.emit(("first",), anchors=[window[0]])

    def drop(bolt: Any, tup: Any) -> None:
        if tup["value"] == "first":
            bolt.collector.fail(tup)

    builder = two(Windows(emit).with_window(Count(2), Count(2)), rows(*range(4)))
    builder.set_bolt("c", Call(drop)).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(3)
    assert sorted(heard(rig)) == [("ack", 1), ("fail", 0), ("fail", 2)]


def test_windows_of_windows_are_anchored_to_all_that_went_into_them() -> None:
    """C27, E17, E25: a tuple of several trees."""

    def total(bolt: Windows, window: TupleWindow) -> None:
        bolt.collector.emit((sum(tup["value"] for tup in window),))

    builder = two(Windows(total).with_tumbling_window(Count(2)), rows(*range(10)))
    builder.set_bolt("c", Windows(total).with_tumbling_window(Count(2))).shuffle_grouping("b")
    builder.set_bolt("d", Call(lambda bolt, tup: bolt.collector.fail(tup))).shuffle_grouping("c")
    rig = Rig(builder, 1)
    rig.batches(3)
    assert windows_of(rig, "c").items == [[1, 5], [9, 13]]
    assert sorted(heard(rig)) == failed(*range(8))


class EmitsByTimer(Windows):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        context.set_timer(1, lambda: collector.emit(("by timer",)))


def test_what_is_emitted_outside_of_a_window_is_anchored_to_nothing() -> None:
    """C27: not to the window before, as in Storm, whose tuples may have been acked."""
    builder = two(EmitsByTimer().with_tumbling_window(Count(2)), rows(0, 1))
    builder.set_bolt("c", Call(lambda bolt, tup: bolt.collector.fail(tup))).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(1)
    rig.advance(1, 2)
    assert windows_of(rig).items == [[0, 1]]
    assert rig.tasks("c")[0].counters.failed == 1 and heard(rig) == []


@pytest.mark.slow
def test_emits_of_one_window_share_their_trees() -> None:
    """E17: the trees of thousands of tuples are put together once for a window, not for each emit."""

    def emit(bolt: Windows, window: TupleWindow) -> None:
        for number in range(50):
            bolt.collector.emit((number,))

    def keep(bolt: Any, tup: Any) -> None:
        bolt.kept.append(tup.roots)
        bolt.collector.ack(tup)

    builder = two(Windows(emit).with_tumbling_window(Count(2000)), rows(*range(4000)))
    builder.set_bolt("c", Call(keep)).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(3)
    roots = rig.users("c")[0].kept
    assert len(roots) == 100 and len(roots[0]) == 2000
    assert len({id(one) for one in roots}) == 2
    assert len(heard(rig)) == 2000


@pytest.mark.parametrize("error", [FailedException, ReportedFailedException])
def test_a_failed_exception_fails_the_window_and_the_task_goes_on(error: type[Exception]) -> None:
    """C27, W14: in Storm it kills the worker. The tuples leave the window, so none of them is acked later."""

    def execute(bolt: Windows, window: TupleWindow) -> None:
        if window[-1]["value"] == 3:
            raise error("not this one")

    rig = Rig(two(Windows(execute).with_window(Count(4), Count(2)), rows(*range(10))), 1)
    rig.batches(2)
    assert windows_of(rig).items == [[0, 1], [0, 1, 2, 3], [4, 5], [4, 5, 6, 7], [6, 7, 8, 9]]
    (spout,) = rig.users("a")
    assert [(what, n) for what, n, *_ in spout.heard] == [*failed(0, 1, 2, 3), *acked(4, 5)]
    assert f"{error.__name__}: not this one" in fails_of(spout)[0].reason
    task = rig.tasks("b")[0]
    assert (task.counters.restarts, task.counters.failed, task.counters.acked) == (0, 4, 2)
    assert len(rig.errors) == (error is ReportedFailedException)


def test_a_failed_exception_by_a_timer_is_the_same() -> None:
    """A FailedException in a window that a timer fires fails its tuples, without an error or a restart (C27, W14)."""

    def execute(bolt: Windows, window: TupleWindow) -> None:
        if window.end_timestamp == 20:
            raise FailedException("not this one")

    rig = Rig(two(event_bolt(execute), rows(3, 5, 18, 26, 36)), 1)
    rig.batches(1)
    rig.advance(0.1, 2)
    assert windows_of(rig).items == [[3, 5], [3, 5, 18], [26]]
    assert heard(rig) == failed(0, 1, 2)
    assert rig.errors == [] and rig.tasks("b")[0].counters.restarts == 0


@pytest.mark.parametrize("timer", [False, True])
def test_any_other_error_restarts_the_task_and_fails_all_it_held(timer: bool) -> None:
    """W14, W22: each tuple once, those that were in no window yet too."""

    def execute(bolt: Windows, window: TupleWindow) -> None:
        if window[-1]["value"] == 18:
            raise KeyError("oh")

    values = (3, 5, 18, 26, 36)
    bolt = event_bolt(execute) if timer else Windows(execute).with_window(Count(4), Count(1))
    rig = Rig(two(bolt, rows(*values)), 1)
    rig.batches(1)
    rig.advance(0.1, 2)
    task = rig.tasks("b")[0]
    assert task.counters.restarts == 1
    (spout,) = rig.users("a")
    gone = range(5) if timer else range(3)
    assert sorted(heard(rig)) == failed(*gone)
    assert all("KeyError" in verdict for _, _, verdict in spout.heard)
    assert windows_of(rig).items == ([] if timer else [[26], [26, 36]])


class WithTimer(Windows):
    """A timer of its own, set before that of the windows, which raises at its first call in the first instance."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        context.set_timer(1, self.complain)

    def complain(self) -> None:
        if self.context.now_ms() == 1000:
            raise KeyError("oh")


def test_the_timer_of_an_instance_that_has_ended_does_not_go_off() -> None:
    """W22: though it fell due at the same moment; what it holds has failed, so nobody may execute it."""

    def emit(bolt: Windows, window: TupleWindow) -> None:
        bolt.collector.emit((len(window),))

    builder = two(WithTimer(emit).with_tumbling_window(Duration.seconds(1)), rows(0, 1))
    builder.set_bolt("c", Collect()).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(1)
    rig.advance(1, 2)
    assert sorted(heard(rig)) == failed(0, 1)
    assert rig.users("c")[0].seen == []


def test_what_a_user_acks_or_fails_by_hand_has_its_verdict() -> None:
    """C27, E14: it is not acked again when it leaves, and is no anchor any more."""

    def execute(bolt: Windows, window: TupleWindow) -> None:
        bolt.collector.ack(window[0])
        bolt.collector.fail(window[1], "by hand")
        bolt.collector.emit(("rest",))

    def fail(bolt: Any, tup: Any) -> None:
        bolt.collector.fail(tup)

    builder = two(Windows(execute).with_tumbling_window(Count(3)), rows(*range(6)))
    builder.set_bolt("c", Call(fail)).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(3)
    assert sorted(heard(rig)) == [*acked(0, 3), *failed(1, 2, 4, 5)]
    assert rig.errors == []


def test_a_window_that_fails_after_an_ack_by_hand_fails_the_rest() -> None:
    """When a window fails after an explicit ack, only its other tuples fail (C27, E14)."""

    def execute(bolt: Windows, window: TupleWindow) -> None:
        bolt.collector.ack(window[0])
        raise FailedException("the rest")

    rig = Rig(two(Windows(execute).with_tumbling_window(Count(3)), rows(*range(3))), 1)
    rig.batches(2)
    assert sorted(heard(rig)) == [*acked(0), *failed(1, 2)]
    assert rig.errors == []


def test_ticks_are_in_no_window() -> None:
    """C9: Storm puts them into windows, and dies of them in event time."""
    for bolt in (event_bolt(), Windows().with_tumbling_window(Count(2))):
        builder = two(bolt, rows(3, 15))
        builder._declarers["b"].add_configuration("topology.tick.tuple.freq.secs", 0.1)
        rig = Rig(builder, 1)
        rig.batches(1)
        rig.advance(0.1, 2)
        assert windows_of(rig).items in ([[3]], [[3, 15]])
        assert rig.errors == []


def test_windows_are_those_of_a_task() -> None:
    """C34: of two tasks each has its own."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script(rows(*range(8))))
    builder.set_bolt("b", Windows().with_tumbling_window(Count(2)), 2).fields_grouping("a", Fields("value"))
    rig = Rig(builder, 1)
    rig.batches(2)
    of_tasks = [[item for items in executor.bolt.items for item in items] for executor in rig.users("b")]
    assert sorted(chain(*of_tasks)) == list(range(8)) and list(map(len, of_tasks)) == [4, 4]


def test_the_graceful_end_cleans_up_and_acks_nothing() -> None:
    """C1, C27: what is in a window is replayed."""
    rig = Rig(two(Windows().with_tumbling_window(Count(2)), rows(0, 1, 2)), 1)
    rig.batches(2)
    bolt = windows_of(rig)
    rig.cluster.close()
    assert bolt.cleaned and heard(rig) == []


def test_a_tuple_is_pickled_without_its_trees() -> None:
    """A pickled tuple keeps its values and its source, but not its trees (C31)."""

    def keep(bolt: Windows, window: TupleWindow) -> None:
        bolt.kept = list(window)

    rig = Rig(two(Windows(keep).with_window(Count(1)), rows(7)), 1)
    rig.batches(1)
    (tup,) = windows_of(rig).kept
    copy = pickle.loads(pickle.dumps(tup))
    assert tup.roots is not None and copy.roots is None
    assert (copy.values, copy["value"], copy.source_task, repr(copy)) == ((7,), 7, tup.source_task, repr(tup))


def test_a_tuple_without_values_is_an_anchor() -> None:
    """E4: though it has no length."""

    def execute(bolt: Any, tup: Any) -> None:
        bolt.collector.emit((1,), anchors=tup)
        bolt.collector.ack(tup)

    builder = two(Call(execute), Script([()], fields=()))
    builder.set_bolt("c", Call(lambda bolt, tup: bolt.collector.fail(tup))).shuffle_grouping("b")
    rig = Rig(builder, 1)
    rig.batches(2)
    assert heard(rig) == failed(0)


# -- what is wrong is told before anything runs ------------------------------------------------------------------


def planned(bolt: Any, conf: dict[str, Any] | None = None, own: dict[str, Any] | None = None) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("windowed", bolt).shuffle_grouping("words").add_configurations(own or {})
    return plan_topology(builder.create_topology("t"), conf)


@pytest.mark.parametrize(
    ("bolt", "conf", "message"),
    [
        (Windows(), {}, "Window length is not specified"),
        (
            Windows().with_tumbling_window(Duration.seconds(16)),
            {},
            "32000 ms is more than topology.message.timeout.secs, 30 s",
        ),
        (
            Windows().with_window(Count(5)),
            {"topology.max.spout.pending": 5},
            "6 tuples is more than topology.max.spout",
        ),
        (
            Windows().with_window(Count(5)).with_late_tuple_stream("late"),
            {},
            "only when specifying a timestamp",
        ),
        (
            Windows().with_window(Count(5)).with_timestamp_field("word"),
            {"topology.bolts.late.tuple.stream": "late"},
            "has not declared 'late', its stream of late tuples",
        ),
        (
            Windows().with_window(Count(5)).with_timestamp_field("at"),
            {},
            "the timestamp is field 'at', but stream 'default' of 'words' has only 'word'",
        ),
    ],
)
def test_what_can_not_work_is_refused_when_it_is_planned(
    bolt: Any, conf: dict[str, Any], message: str
) -> None:
    """C26: with the component, the user's line and what to do."""
    with pytest.raises(InvalidTopologyError, match=rf"{__file__}:\d+: windowed bolt 'windowed': .*{message}"):
        planned(bolt, conf)


def test_the_settings_are_the_configuration_of_the_component() -> None:
    """C25, A20, A22: the topology's below the bolt's below the declarer's."""
    bolt = Windows().with_window(Count(5), Duration(7)).with_watermark_interval(timedelta(seconds=2))
    assert bolt.get_component_configuration() == {
        "topology.bolts.window.length.count": 5,
        "topology.bolts.window.length.duration.ms": None,
        "topology.bolts.window.sliding.interval.count": None,
        "topology.bolts.window.sliding.interval.duration.ms": 7,
        "topology.bolts.watermark.event.interval.ms": 2000,
    }
    assert planned(Windows(), {"topology.bolts.window.length.duration.ms": 10})
    own = {"topology.bolts.window.length.count": 50}
    with pytest.raises(InvalidTopologyError, match="of 50 tuples"):
        planned(bolt, {"topology.max.spout.pending": 10}, own)
    # The bolt's own duration hides the topology's count, although a count would win where both are set.
    timed = Windows().with_tumbling_window(Duration(5))
    assert planned(timed, {"topology.bolts.window.length.count": 50, "topology.max.spout.pending": 10})


def test_trees_time_out_by_the_setting_of_the_topology() -> None:
    """C26, A21: what a bolt says of it changes nothing, so it changes no check."""
    bolt = Windows().with_tumbling_window(Duration.seconds(20))
    with pytest.raises(InvalidTopologyError, match=r"topology.message.timeout.secs, 30 s"):
        planned(bolt, own={"topology.message.timeout.secs": 60})
    assert planned(bolt, {"topology.message.timeout.secs": 40})
    assert planned(bolt, {"topology.enable.message.timeouts": False})


class OwnConfiguration(Windows):
    def get_component_configuration(self) -> dict[str, Any]:
        return {"mine": 1}


def test_a_configuration_of_its_own_does_not_hide_the_windows() -> None:
    """A bolt's own configuration does not hide the settings of its window (A20, C25)."""
    plan = planned(OwnConfiguration().with_window(Count(5)))
    conf = plan.components["windowed"].conf
    assert (conf["mine"], conf["topology.bolts.window.length.count"]) == (1, 5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda bolt: bolt.with_window(10), r"^Windows.with_window: length must be Count\(n\)"),
        (lambda bolt: bolt.with_window(Count(1), "1s"), "^Windows.with_window: slide must be Count"),
        (lambda bolt: bolt.with_window(Duration(0)), "length must be positive"),
        (lambda bolt: bolt.with_tumbling_window(None), "length must be Count"),
        (lambda bolt: bolt.with_lag(Count(1)), "with_lag: lag must be a Duration"),
        (lambda bolt: bolt.with_watermark_interval(Duration(0)), "interval must be positive"),
        (lambda bolt: bolt.with_timestamp_field(""), "with_timestamp_field: a field's name must be a string"),
        (lambda bolt: bolt.with_timestamp_extractor("at"), "expected a function of a tuple, got 'at'"),
        (lambda bolt: bolt.with_late_tuple_stream(None), "a stream's id must be a string"),
        (
            lambda bolt: bolt.with_timestamp_field("at").with_timestamp_extractor(len),
            "already configured with a timestamp",
        ),
    ],
)
def test_a_wrong_window_is_refused_at_once(call: Any, message: str) -> None:
    """A wrong argument of a window method is rejected in the call (C23, C26)."""
    with pytest.raises(InvalidTopologyError, match=message):
        call(Windows())


def test_a_window_is_a_sequence_of_its_tuples() -> None:
    """A window is a sequence of its tuples, and its repr shows what is new and expired (C24)."""

    def keep(bolt: Windows, window: TupleWindow) -> None:
        bolt.kept = [window]

    rig = Rig(two(Windows(keep).with_window(Count(2), Count(3)), rows(0, 1, 2)), 1)
    rig.batches(1)
    (window,) = windows_of(rig).kept
    assert (len(window), window[-1]["value"], [tup["value"] for tup in window]) == (2, 2, [1, 2])
    assert repr(window) == "TupleWindow(2 tuples, 2 new, 1 expired, (None, 0])"
