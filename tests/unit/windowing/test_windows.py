"""Windows by example; tests/properties/test_windows.py holds them against the definition."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark.windowing import Count, Duration, EventTimeWindows, Length, ProcessingTimeWindows, Window

MINUTES = 60_000


def event_windows(length: Length, slide: Length, *timestamps: int) -> tuple[EventTimeWindows[int], list[int]]:
    gone: list[int] = []
    windows = EventTimeWindows[int](length, slide, gone.extend)
    for timestamp in timestamps:
        assert windows.add(timestamp, timestamp)
    return windows, gone


def shown(windows: Any) -> list[tuple[int, list[int], list[int], list[int]]]:
    """(end, items, new, expired)."""
    return [(w.end, list(w.items), list(w.new), list(w.expired)) for w in windows]


def test_storms_documented_example() -> None:
    """C32: length 20 s, slide 10 s, lag 5 s; the first end is the earliest timestamp rounded up, and gaps are skipped."""
    windows, gone = event_windows(Duration(20), Duration(10), 3, 5, 7, 18, 26, 36)
    assert shown(windows.advance(31)) == [
        (10, [3, 5, 7], [3, 5, 7], []),
        (20, [3, 5, 7, 18], [18], []),
        (30, [18, 26], [26], [3, 5, 7]),
    ]
    assert gone == [3, 5, 7]
    for later in (7225, 7226, 7227, 7239):
        assert windows.add(later, later)
    assert shown(windows.advance(7234)) == [
        (40, [26, 36], [36], [18]),
        (50, [36], [], [26]),
        (7230, [7225, 7226, 7227], [7225, 7226, 7227], []),  # 36 left when the window was empty (C28)
    ]
    assert gone == [3, 5, 7, 18, 26, 36]


def test_a_window_says_where_it_begins_and_ends() -> None:
    """C24, C32: (end - length, end]; no beginning for a window of so many tuples."""
    windows, _ = event_windows(Duration(20), Duration(10), 10, 11, 30)
    assert [(w.start, w.end, w.items) for w in windows.advance(30)] == [
        (-10, 10, (10,)),
        (0, 20, (10, 11)),
        (10, 30, (11, 30)),  # 10 is not in it: the start is exclusive
    ]
    counts, _ = event_windows(Count(2), Count(2), 10, 11, 30)
    assert [(w.start, w.end, w.items) for w in counts.advance(30)] == [(None, 11, (10, 11))]


def test_counts_over_event_time_fire_as_many_windows_as_the_counts_allow() -> None:
    """C33: with equal timestamps too."""
    windows, _ = event_windows(Count(5), Count(2), 10, 10, 11, 12, 12, 12, 12, 13, 14, 15)
    assert [w.items for w in windows.advance(20)] == [
        (10, 10),
        (10, 10, 11, 12),
        (10, 11, 12, 12, 12),
        (12, 12, 12, 12, 13),
        (12, 12, 13, 14, 15),
    ]


def test_equal_timestamps_at_the_watermark_are_not_left_behind() -> None:
    """C33, W14: Storm counts what is later than its last window only, and so never gets to these."""
    windows, gone = event_windows(Count(2), Count(2), 10, 10, 10)
    assert [w.items for w in windows.advance(10)] == [(10, 10)]
    assert windows.add(10, 10)
    assert [w.items for w in windows.advance(11)] == [(10, 10)]
    assert gone == [10, 10]


def test_a_count_that_slides_by_time_repeats_its_window() -> None:
    """C23, C33: at each slide the last three, with something new or not."""
    windows, _ = event_windows(Count(3), Duration(10), 3, 5, 7, 18, 26, 36)
    assert [w.items for w in windows.advance(31)] == [(3, 5, 7), (5, 7, 18), (7, 18, 26)]
    for later in (65, 66, 67, 79):
        assert windows.add(later, later)
    assert shown(windows.advance(74)) == [
        (40, [18, 26, 36], [36], [7]),
        (50, [18, 26, 36], [], []),
        (60, [18, 26, 36], [], []),
        (70, [65, 66, 67], [65, 66, 67], [18, 26, 36]),
    ]


def test_a_duration_that_slides_by_a_count() -> None:
    """C23, C33: with every third tuple those of the last 20 ms."""
    windows, _ = event_windows(Duration(20), Count(3), 603, 605, 607, 618, 625, 626, 629, 636)
    assert [(w.end, w.items) for w in windows.advance(631)] == [
        (607, (603, 605, 607)),
        (626, (607, 618, 625, 626)),
    ]


def test_tuples_out_of_order_stand_in_the_order_of_their_timestamps() -> None:
    """C31: up to the watermark in any order; and one stream that is ahead hides nothing of another (W14)."""
    windows, _ = event_windows(Duration(10), Duration(10), 632, 605, 629, 603, 626)
    assert [w.items for w in windows.advance(631)] == [(603, 605), (626, 629)]


def test_late_means_after_the_window_has_fired() -> None:
    """C31: Storm loses 8, although its window is open, and so what comes again because it has failed."""
    windows, _ = event_windows(Duration(10), Duration(10), 3)
    assert not shown(windows.advance(9))
    assert windows.add(8, 8)
    assert windows.add(9, 9)
    assert [w.items for w in windows.advance(15)] == [(3, 8, 9)]
    assert not windows.add(10, 10)
    assert windows.add(11, 11)
    assert [w.items for w in windows.advance(20)] == [(11,)]


def test_a_window_that_was_passed_over_empty_fires_when_something_comes_for_it() -> None:
    """C31, C32: in order, because no later window has fired."""
    windows, _ = event_windows(Duration(10), Duration(10), 3, 75)
    assert [w.items for w in windows.advance(72)] == [(3,)]
    assert windows.add(33, 33) and windows.add(15, 15)
    assert [(w.end, w.items) for w in windows.advance(80)] == [(20, (15,)), (40, (33,)), (80, (75,))]


def test_a_tuple_at_the_watermark_whose_window_has_fired_is_late() -> None:
    """C31, W14: Storm takes it, and acks it without any window; a sliding window still has it."""
    tumbling, _ = event_windows(Duration(10), Duration(10), 5, 10)
    assert [w.items for w in tumbling.advance(10)] == [(5, 10)]
    assert not tumbling.add(10, 10)
    sliding, _ = event_windows(Duration(20), Duration(10), 5, 10)
    assert [w.items for w in sliding.advance(10)] == [(5, 10)]
    assert sliding.add(10, 10)
    assert [w.items for w in sliding.advance(20)] == [(5, 10, 10)]


def test_a_slide_longer_than_the_length_leaves_gaps() -> None:
    """C23: (18, 20] and (28, 30]; what is between them leaves unseen."""
    windows, gone = event_windows(Duration(2), Duration(10), 15, 19, 20, 21, 29)
    assert shown(windows.advance(30)) == [(20, [19, 20], [19, 20], [15]), (30, [29], [29], [19, 20, 21])]
    assert gone == [15, 19, 20, 21]


@pytest.mark.parametrize("slide", [Duration(1), Duration(10)])
def test_an_age_without_tuples_is_skipped(slide: Duration) -> None:
    """C32: not looked at slide by slide. The far future makes all that comes after it late (C31)."""
    far = 10**18
    windows, gone = event_windows(Duration(10), slide, 5, far)
    fired = [w.items for w in windows.advance(far)]
    assert fired[0] == (5,) and fired[-1] == (far,) and len(fired) <= 20
    assert gone == [5]
    assert not windows.add(100, 100)


def test_a_count_that_slides_by_time_is_not_repeated_for_ever() -> None:
    """C33: Storm repeats it at every slide of the age, one by one."""
    far = 10**18
    windows, _ = event_windows(Count(3), Duration(10), 5, far)
    fired = list(windows.advance(far))
    assert [w.items for w in fired[:2]] == [(5,), (5,)] and fired[-1].items == (5, far)
    assert fired[-1].end == far and len(fired) == 1002
    assert windows.add(far + 7, far + 7)
    after = [(w.end, w.items) for w in windows.advance(far + 10)]
    assert after == [(far + 10, (5, far, far + 7))]


def test_windows_that_were_not_repeated_are_not_made_up_for() -> None:
    """C33: the next watermark goes on where the last one stood."""
    far = 10**18
    windows, _ = event_windows(Count(3), Duration(10), 5, far)
    assert len(list(windows.advance(far - 25))) == 1001
    assert [(w.end, w.items) for w in windows.advance(far)] == [
        (far - 20, (5,)),
        (far - 10, (5,)),
        (far, (5, far)),
    ]


def test_what_is_older_than_1970_is_late() -> None:
    """C31: as in Storm, whose watermark begins at 0."""
    windows, _ = event_windows(Duration(10), Duration(10), 0, 3)
    assert not windows.add(-1, -1)
    assert [w.items for w in windows.advance(10)] == [(0,), (3,)]


def test_a_failed_window_leaves_without_expiring() -> None:
    """W14: what has failed is neither acked nor seen again."""
    windows, gone = event_windows(Duration(20), Duration(10), 3, 5, 18, 26)
    fires = windows.advance(31)
    assert next(fires).items == (3, 5)
    windows.drop()
    assert shown(fires) == [(20, [18], [18], []), (30, [18, 26], [26], [])]
    assert not gone


def processing(length: Length, slide: Length) -> tuple[ProcessingTimeWindows[int], list[int]]:
    gone: list[int] = []
    return ProcessingTimeWindows[int](length, slide, gone.extend), gone


def test_the_first_window_takes_all_and_the_next_ones_what_came_since() -> None:
    """C29: at a fixed rate, up to one millisecond before the trigger."""
    windows, gone = processing(Duration(100), Duration(100))
    for time in (0, 5, 99, 100):
        windows.add(time, time)
    first = windows.evaluate(100)
    assert first == Window((0, 5, 99), (0, 5, 99), (), -1, 99)
    windows.add(130, 130)
    assert shown([windows.evaluate(200)]) == [(199, [100, 130], [100, 130], [0, 5, 99])]
    assert gone == [0, 5, 99]


def test_a_late_trigger_makes_its_window_longer_and_the_next_one_shorter() -> None:
    """C29, W14: so no tuple is in two tumbling windows or in none."""
    windows, _ = processing(Duration(100), Duration(100))
    for time in range(0, 500, 40):
        windows.add(time, time)
    fired = [windows.evaluate(at) for at in (100, 270, 300, 400)]
    assert [w and w.items for w in fired] == [
        (0, 40, 80),
        (120, 160, 200, 240),
        (280,),
        (320, 360),
    ]


def test_before_its_first_window_nothing_leaves() -> None:
    """C29, C33: Storm's compaction lets go what is older than the length, although the first window takes all there is."""
    windows, gone = processing(Duration(10), Duration(1000))
    for time in range(900):
        windows.add(time, time)
    assert not gone
    first = windows.evaluate(1000)
    assert first is not None and len(first.items) == 900


def test_an_empty_window_is_none_and_forgets_what_has_expired() -> None:
    """An empty window does not fire, and the tuples that have expired are released (C28)."""
    windows, gone = processing(Duration(10), Duration(10))
    windows.add(1, 1)
    assert windows.evaluate(10) is not None
    assert windows.evaluate(20) is None
    assert gone == [1]
    windows.add(25, 25)
    assert shown([windows.evaluate(30)]) == [(29, [25], [25], [])]


def test_the_queue_is_compacted_every_hundred_tuples() -> None:
    """C33: what has left then is told to the next window."""
    windows, gone = processing(Count(5), Duration(1000))
    for number in range(99):
        assert not windows.add(number, number)
    assert not gone
    windows.add(99, 99)
    assert gone == list(range(95))
    last = windows.evaluate(1000)
    assert last is not None and last.items == (95, 96, 97, 98, 99) and last.expired == tuple(range(95))


class Compared(int):
    """A timestamp that counts how often it is compared."""

    times = 0

    def __lt__(self, other: int) -> bool:
        Compared.times += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Compared.times += 1
        return int(self) > int(other)


@pytest.mark.parametrize("slide", [Duration(1), Count(1)], ids=str)
def test_the_work_for_a_window_does_not_grow_with_what_is_held(slide: Length) -> None:
    """C33: Storm looks at all that is held for each window; here it is less than 100 comparisons for each of 2000."""
    Compared.times = 0
    windows = EventTimeWindows[int](Duration(3), slide, lambda gone: None)
    for time in range(2000, 0, -1):
        windows.add(time, Compared(time))
    assert sum(1 for _ in windows.advance(1999)) == 1999
    assert Compared.times < 2000 * 100
