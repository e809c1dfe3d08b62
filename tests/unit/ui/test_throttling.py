"""Who is slowed down because of whom, in the progress line and below the summary's table."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from stormspark.backpressure import BoltPressure, LimitChange, Pressure, SpoutPressure
from stormspark.metrics import (
    Histogram,
    LatencySummary,
    LongCall,
    TaskCounters,
    TopologyStatistics,
    summarise,
)
from stormspark.ui import Speedometer, print_summary
from stormspark.ui.throttling import throttling_lines

MB = 1024 * 1024


def bolt(queued: int = 0, size: int = 0, work: float = 0.0, *, above: bool = False) -> BoltPressure:
    return BoltPressure(queued, size, 1_000_000, 100 * MB, work, above)


def held(by: str | None, limit: int | None = 100, **throttled_ms: float) -> SpoutPressure:
    return SpoutPressure(limit, by, throttled_ms)


def at(
    seconds: float,
    spouts: dict[str, SpoutPressure],
    bolts: dict[str, BoltPressure],
    executed: int = 0,
    busy: float = 0.0,
    at_once: int = 0,
    mean_calls: float = 0.0,
    blocked: LongCall | None = None,
    **counts: Any,
) -> TopologyStatistics:
    """A topology whose bolts have executed so much, in so many seconds of work; ``counts`` are of each of its components."""
    work = Histogram(count=executed, seconds=busy)
    components = {name: summarise("spout", 2, [TaskCounters(**counts)], None) for name in spouts}
    components |= {
        name: summarise(
            "bolt",
            2,
            [
                TaskCounters(
                    executed=executed,
                    latency=work,
                    queued=pressed.queued,
                    queued_bytes=pressed.queued_bytes,
                    **counts,
                )
            ],
            None,
            calls_at_once=at_once,
            mean_calls_under_way=mean_calls,
            blocked_loop=blocked,
        )
        for name, pressed in bolts.items()
    }
    pressure = Pressure(spouts, bolts, 17, [LimitChange(1.0, "words", 100, "count")])
    return TopologyStatistics("t", "local", seconds, 9, LatencySummary(), components, pressure=pressure)


def test_the_line_names_the_bolt_and_its_queue_where_that_is_above_a_mark():
    """The progress line names the bolt that throttles spouts, and its queue when that is above the mark (F11, W1)."""
    full = bolt(5000, 98 * MB, 3.0, above=True)
    now = Speedometer().read(at(3.0, {"words": held("count")}, {"count": full, "other": bolt()}))
    assert "tuples/s  throttled by count (queue 98 MB of 100)  acked" in str(now)


def test_the_line_says_what_a_tuple_takes_where_time_is_what_is_short():
    """F11: of the last few seconds, not of the whole run."""
    speedometer, spouts = Speedometer(), {"words": held("count")}
    speedometer.read(at(10.0, spouts, {"count": bolt()}, executed=1_000_000, busy=10.0))
    now = speedometer.read(at(12.0, spouts, {"count": bolt(2100, 9000, 2.1)}, executed=1_002_000, busy=12.0))
    assert now.throttled == "count (1.00 ms per tuple, 2.1 s of work waits)"


def test_one_tuple_that_takes_for_ever_is_compared_with_what_tuples_took_before():
    """F11: a batch in which nothing was executed says nothing of the cost."""
    speedometer, spouts = Speedometer(), {"words": held("count")}
    for second in (1.0, 2.0):
        now = speedometer.read(at(second, spouts, {"count": bolt(9, 9, 4.0)}, executed=10, busy=5.0))
    assert now.throttled == "count (500 ms per tuple, 4.0 s of work waits)"
    assert Speedometer().read(at(1.0, spouts, {"count": bolt(9, 9)})).throttled == "count (busy)"


def test_of_several_the_worst_is_named():
    """F11, F13: a queue above its mark before one that is only long, then the one with most work."""
    spouts = {"a": held("x"), "b": held("y"), "c": held("z"), "d": held(None)}
    bolts = {
        "x": bolt(work=9.0),
        "y": bolt(10, 95 * MB, 1.0, above=True),
        "z": bolt(work=3.0),
        "w": bolt(work=99.0),
    }
    look = at(1.0, spouts, bolts)
    assert Speedometer().read(look).throttled == "y (queue 95 MB of 100)"
    del spouts["b"]
    assert (Speedometer().read(look).throttled or "").startswith("x (")


def test_nothing_is_shown_while_no_spout_is_held():
    """F6: a limit that is in nobody's way is no news."""
    look = at(5.0, {"words": held(None, 1000)}, {"count": bolt(10, 1000)})
    assert "throttled" not in str(Speedometer().read(look))
    assert list(throttling_lines(look)) == []
    assert list(throttling_lines(replace(look, pressure=None))) == []


def test_what_does_not_fit_is_counted_in_the_line():
    """The progress line counts the tuples that were shed (X51)."""
    now = Speedometer().read(at(5.0, {"words": held(None)}, {"count": bolt()}, shed=3))
    assert "failed 0  shed 6  pending" in str(now)


def test_the_summary_says_for_how_long_and_because_of_whom():
    """F6, F11: time and its share by bolt, the limit now, queues against both marks, how often limits changed."""
    spouts = {
        "words": held("count", 2030, parse=1_100.0, count=40_100.0),
        "other": held(None, None, count=5_000.0),
        "few": held("count", 1, count=5_000.0),
    }
    bolts = {"count": bolt(12_000, 1_258_291, 0.8), "parse": bolt(), "fine": bolt(3, 300)}
    out = io.StringIO()
    print_summary(at(50.0, spouts, bolts), Console(file=out, width=200))
    assert out.getvalue().splitlines()[-7:] == [
        "ms: for spouts, from the emit until the tree is acked; for bolts, in execute",
        "words: throttled 41.2 of 50.0 s (82%): 40.1 s by count, 1.1 s by parse; limit now 2,030 tuples per round",
        "other: throttled 5.0 of 50.0 s (10%): 5.0 s by count; no limit now",
        "few: throttled 5.0 of 50.0 s (10%): 5.0 s by count; limit now 1 tuple per round",
        "count: queue 12,000 of 1,000,000 tuples, 1.2 MB of 100, 0.8 s of work",
        "parse: queue 0 of 1,000,000 tuples, 0 MB of 100",
        "limits changed 17 times",
    ]


def test_the_other_brake_is_shown_too():
    """B4, F8: of two tasks in ten seconds, five of their seconds; and what was shed (X51)."""
    look = at(10.0, {"words": held(None)}, {}, skipped_max_spout_ms=5_000.0)
    assert list(throttling_lines(look)) == ["words: paused for 25% of the time at topology.max.spout.pending"]
    look = at(10.0, {}, {"count": bolt()}, shed=1234)
    assert list(throttling_lines(look)) == [
        "count: 1,234 tuples did not fit into its queue and were dropped or failed"
    ]


def test_the_summary_says_what_waited_at_the_end():
    """F6: the controller sees no round after the stop began, but the counters do. No call may have ended before the stop."""
    bolts = {"ask": replace(bolt(90, 9000, 18.0), first_call_secs=4.0)}
    look = at(10.0, {"words": held("ask", ask=9_000.0)}, bolts)
    assert "ask: queue 90 of 1,000,000 tuples, 0.0086 MB of 100" in list(throttling_lines(look))
    later = replace(
        look.components["ask"], queued=45, queued_bytes=4500, histogram=Histogram(count=1, seconds=4.0)
    )
    look = replace(look, components={**look.components, "ask": later})
    assert "ask: queue 45 of 1,000,000 tuples, 0.0043 MB of 100, 9.0 s of work" in list(
        throttling_lines(look)
    )


def limited(unfelt: int | None) -> SpoutPressure:
    return SpoutPressure(None, None, {}, max_pending=200, unfelt_max_pending=unfelt)


def test_below_the_table_stands_which_limit_would_not_be_felt() -> None:
    """What the limit cost, and which value would cost nothing (B4)."""
    look = at(10.0, {"words": limited(34_000)}, {}, skipped_max_spout_ms=19_000.0)
    assert list(throttling_lines(look)) == [
        "words: paused for 95% of the time at topology.max.spout.pending (200 per task; 34,000 would not be felt)"
    ]


def test_no_value_is_named_that_is_unknown_or_not_larger() -> None:
    for unfelt in (None, 150):
        (line,) = throttling_lines(at(10.0, {"words": limited(unfelt)}, {}, skipped_max_spout_ms=19_000.0))
        assert line.endswith("topology.max.spout.pending (200 per task)")


def test_a_spout_is_never_paused_for_more_than_all_of_the_time() -> None:
    """The time of a pause counts when it ends, so a moment may have more of it than it is long."""
    (line,) = throttling_lines(at(10.0, {"words": limited(None)}, {}, skipped_max_spout_ms=29_000.0))
    assert "paused for 100% of the time" in line


def test_the_progress_line_says_how_much_the_limit_holds_a_spout_now() -> None:
    """It is the share of the last few seconds, of the spout that is held most."""
    speedometer, spouts = Speedometer(), {"words": limited(34_000)}
    now = speedometer.read(at(10.0, spouts, {}))
    assert now.paused is None
    now = speedometer.read(at(12.0, spouts, {}, skipped_max_spout_ms=3_000.0))
    assert now.paused == "75% at max pending of words (200 per task; 34,000 would not be felt)"
    assert "tuples/s  paused 75% at max pending of words" in str(now)
    speedometer.read(at(28.0, spouts, {}, skipped_max_spout_ms=3_000.0))
    now = speedometer.read(at(34.0, spouts, {}, skipped_max_spout_ms=3_000.0))
    assert now.paused is None


def test_the_line_names_a_bolt_with_as_many_calls_under_way_as_it_may_have() -> None:
    """J16: no more tuples would be executed with a higher max spout pending. It is the mean of the last few seconds."""
    speedometer, spouts, bolts = Speedometer(), {"words": limited(34_000)}, {"ask": bolt()}
    speedometer.read(at(1.0, spouts, bolts, at_once=100, calls_under_way=0.0))
    now = speedometer.read(at(8.0, spouts, bolts, at_once=100, calls_under_way=99.6))
    assert now.full is None, "half of the time"
    now = speedometer.read(at(14.0, spouts, bolts, at_once=100, calls_under_way=99.6))
    assert now.full == "ask: 100 of 100 calls under way"
    assert "tuples/s  ask: 100 of 100 calls under way  acked" in str(now)
    now = speedometer.read(at(28.0, spouts, bolts, at_once=100, calls_under_way=0.0))
    now = speedometer.read(at(34.0, spouts, bolts, at_once=100, calls_under_way=80.0))
    assert now.full is None


def test_a_full_bolt_that_throttles_is_named_once() -> None:
    now = Speedometer().read(
        at(9.0, {"words": held("ask")}, {"ask": bolt()}, 100, 5.0, at_once=20, calls_under_way=20.2)
    )
    assert now.throttled == "ask (50.0 ms per tuple, 20 of 20 calls under way)" and now.full is None


def test_the_line_of_a_topology_that_stops_names_no_bolt_that_slows_spouts_down() -> None:
    """No spout is asked for tuples, and what was known of the bolt does not go on: its first call "has lasted 3.0 s so far"."""
    look = at(9.0, {"words": held("ask")}, {"ask": bolt()}, 100, 5.0, at_once=20, calls_under_way=0.0)
    assert Speedometer().read(look).throttled is not None
    assert Speedometer().read(replace(look, before_stop=(100, 8.0))).throttled is None


def test_the_calls_of_a_bolt_on_the_workers_thread_are_not_counted() -> None:
    look = at(9.0, {"words": held(None)}, {"count": bolt()}, 100, 9.0)
    assert Speedometer().read(look).full is None and list(throttling_lines(look)) == []


def test_below_the_table_stands_which_bolts_were_full_all_the_time() -> None:
    spouts, bolts = {"words": held(None)}, {"ask": bolt()}
    assert list(throttling_lines(at(10.0, spouts, bolts, at_once=20, mean_calls=19.6))) == [
        "ask: 20 of 20 calls under way on average"
    ]
    assert list(throttling_lines(at(10.0, spouts, bolts, 4000, 196.0, at_once=20, mean_calls=15.0))) == []


def test_below_the_table_stands_who_blocked_the_event_loop() -> None:
    blocked = LongCall("ask[1]", "execute of ask[1] (ask.py:5)", 20.04)
    assert list(throttling_lines(at(40.0, {}, {"ask": bolt()}, blocked=blocked))) == [
        "ask: execute of ask[1] (ask.py:5) blocked the event loop of its worker, for up to 20.0 s at a time"
    ]


def waiting(look: TopologyStatistics, **down: int) -> TopologyStatistics:
    """The same topology, but tasks of these components wait for their restart."""
    components = {name: replace(one, down=down.get(name, 0)) for name, one in look.components.items()}
    return replace(look, components=components)


def test_the_line_says_how_many_tasks_of_the_slow_bolt_wait_for_their_restart() -> None:
    """W22: if all of them do, the time that a tuple took before explains nothing."""
    look = at(9.0, {"words": held("db")}, {"db": bolt(work=1.6)}, 100, 5.0)
    now = Speedometer().read(waiting(look, db=2))
    assert now.throttled == "db (2 of 2 tasks wait for their restart, 1.6 s of work waits)"
    now = Speedometer().read(waiting(look, db=1))
    assert now.throttled == "db (50.0 ms per tuple, 1 of 2 tasks waits for its restart, 1.6 s of work waits)"
    assert now.down is None


def test_the_line_names_tasks_that_wait_for_their_restart_where_no_bolt_throttles() -> None:
    look = at(9.0, {"words": held(None)}, {"db": bolt(), "fine": bolt()}, 100, 5.0)
    assert Speedometer().read(look).down is None
    now = Speedometer().read(waiting(look, db=2, words=1))
    assert "tuples/s  db: 2 of 2 tasks wait for their restart  acked" in str(now)


def test_a_queue_above_its_mark_hides_no_tasks_that_wait_for_their_restart() -> None:
    look = at(9.0, {"words": held("db")}, {"db": bolt(5000, 98 * MB, 3.0, above=True)})
    now = Speedometer().read(waiting(look, db=2))
    assert now.throttled == "db (queue 98 MB of 100)"
    assert now.down == "db: 2 of 2 tasks wait for their restart"


def test_below_the_table_stand_tasks_that_wait_for_their_restart() -> None:
    out = io.StringIO()
    print_summary(waiting(at(9.0, {}, {"db": bolt()}), db=2), Console(file=out, width=200))
    assert out.getvalue().splitlines()[-1] == "db: 2 of 2 tasks wait for their restart at the end"
