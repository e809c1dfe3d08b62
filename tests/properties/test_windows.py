"""Windows against a plain model that looks at everything there is at every window's end (C23-C34)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stormspark.windowing import (
    Count,
    Duration,
    EventTimeWindows,
    IdlingWatermarks,
    Length,
    ProcessingTimeWindows,
    Watermarks,
    Window,
)

COUNTS = st.integers(1, 6).map(Count)
DURATIONS = st.integers(1, 12).map(Duration)
LENGTHS = COUNTS | DURATIONS


@dataclass(frozen=True, order=True)
class Item:
    time: int
    number: int


@dataclass
class Model:
    """All items that have not left yet; a window is what the definition says of them."""

    length: Length
    held: list[Item] = field(default_factory=list)
    before: list[Item] = field(default_factory=list)
    left: list[Item] = field(default_factory=list)
    left_since: list[Item] = field(default_factory=list)
    failed: list[Item] = field(default_factory=list)

    def window(self, end: int, reach: Iterable[Item], after: int | None = None) -> Window[Item] | None:
        """(end - length, end], or the last so many, of those in reach; what is before the window leaves."""
        reach = sorted(reach)
        if isinstance(self.length, Count):
            items = reach[-self.length.value :]
        else:
            items = [one for one in reach if one.time > (end - self.length.value if after is None else after)]
        self._leave([one for one in reach if one not in items])
        new = [one for one in items if one not in self.before]
        expired, self.left_since, self.before = self.left_since, [], items
        if not items:
            return None
        start = None if isinstance(self.length, Count) else end - self.length.value
        return Window(tuple(items), tuple(new), tuple(expired), start, end)

    def _leave(self, items: list[Item]) -> None:
        self.held = [one for one in self.held if one not in items]
        self.left += items
        self.left_since += items

    def fail(self, window: Window[Item]) -> None:
        self.held = [one for one in self.held if one not in window.items]
        self.failed += window.items
        self.before = []


def check_leaving(model: Model, gone: list[Item], accepted: list[Item]) -> None:
    """Every item that was taken is held, or has left exactly once, or has failed."""
    assert Counter(gone) == Counter(model.left)
    assert Counter([*model.held, *gone, *model.failed]) == Counter(accepted)


@given(
    st.integers(1, 6).map(Count),
    (st.integers(1, 8) | st.integers(1, 350)).map(Count),
    st.integers(0, 400),
    st.sets(st.integers(0, 200)),
)
def test_windows_of_counts_by_arrival(length: Count, slide: Count, items: int, failing: set[int]) -> None:
    """C23, C24, C28, C33, C34: after each slide, the last so many; deltas; a failed window leaves."""
    gone: list[Item] = []
    windows = ProcessingTimeWindows[Item](length, slide, gone.extend)
    model = Model(length)
    assert windows.period is None
    for number in range(items):
        item = Item(number, number)
        model.held.append(item)
        due = windows.add(item, now=number)
        assert due == ((number + 1) % slide.value == 0)
        if due:
            window = windows.evaluate(now=number)
            assert window == model.window(number, model.held)
            if window is not None and len(gone) in failing:
                windows.drop()
                model.fail(window)
        # Between two windows the queue is compacted, at the latest 100 items after the last look at it (C33).
        assert number + 1 - len(gone) - len(model.failed) <= length.value + 100
    assert gone[: len(model.left)] == model.left
    assert gone == sorted(set(gone))
    assert not set(gone) & set(model.failed)


@given(
    LENGTHS, DURATIONS, st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 2, 120])), max_size=40)
)
def test_windows_by_a_timer(length: Length, slide: Duration, steps: list[tuple[int, int]]) -> None:
    """C29: a step adds items, lets time pass, and the timer is as late as the time that has passed."""
    gone: list[Item] = []
    windows = ProcessingTimeWindows[Item](length, slide, gone.extend)
    model = Model(length)
    assert windows.period == slide.value
    now, due, number = 0, slide.value, 0
    ends: list[int] = []
    seen: Counter[Item] = Counter()
    for passes, adds in steps:
        for _ in range(adds):
            item = Item(now, number)
            number += 1
            model.held.append(item)
            assert not windows.add(item, now)
        now += passes
        if now < due:
            continue
        due += ((now - due) // slide.value + 1) * slide.value
        end = now - 1
        # Storm: the length grows by how much later than the slide this trigger is; the first window takes all.
        after = ends[-1] + slide.value - length.value if ends else -1
        in_reach = model.held if isinstance(length, Count) else [x for x in model.held if x.time <= end]
        window = windows.evaluate(now)
        assert window == model.window(end, in_reach, after)
        seen.update(window.items if window else ())
        ends.append(end)
    # Those of a count may have left by compaction before the model sees it.
    assert gone[: len(model.left)] == model.left
    assert gone == sorted(set(gone))
    if isinstance(length, Duration):
        assert gone == model.left
    if length == slide:
        assert seen == Counter(x for x in [*model.held, *model.left] if ends and x.time <= ends[-1])


@given(DURATIONS, COUNTS, st.lists(st.integers(0, 6), max_size=300))
def test_windows_of_a_duration_that_slide_by_counts(length: Duration, slide: Count, waits: list[int]) -> None:
    """C23, C24, C33: (now - length, now] after each slide."""
    gone: list[Item] = []
    windows = ProcessingTimeWindows[Item](length, slide, gone.extend)
    model = Model(length)
    now = 0
    for number, wait in enumerate(waits):
        now += wait
        item = Item(now, number)
        model.held.append(item)
        if windows.add(item, now):
            assert windows.evaluate(now) == model.window(now, model.held)
    # Compaction may have let go what the model will only see gone at its next window (C33).
    assert gone[: len(model.left)] == model.left
    assert all(item.time <= now - length.value for item in gone)


AT_WATERMARK = -1
TIMES = st.integers(0, 40) | st.integers(0, 120) | st.just(AT_WATERMARK)
STEPS = st.lists(TIMES | st.tuples(st.integers(0, 130), st.booleans()), max_size=60)


@given(LENGTHS, LENGTHS, STEPS)
def test_windows_in_event_time(length: Length, slide: Length, steps: list[int | tuple[int, bool]]) -> None:
    """C28, C31, C32, C33: the windows of the definition, in order, whatever the order of arrival; late ones are told.

    A step is a timestamp, or a watermark and whether its windows fail.
    """
    gone: list[Item] = []
    windows = EventTimeWindows[Item](length, slide, gone.extend)
    model = Model(length)
    watermark = number = next_end = 0
    accepted: list[Item] = []
    fired: set[int] = set()
    for step in steps:
        if isinstance(step, int):
            if step == AT_WATERMARK:
                step = watermark  # noqa: PLW2901
            item = Item(step, number)
            number += 1
            once = isinstance(length, Duration) and isinstance(slide, Duration) and slide >= length
            late = step <= max(fired, default=-1) and (step < watermark or once)
            if not late and step < watermark:
                next_end = min(next_end, step) if isinstance(slide, Duration) else next_end
            assert windows.add(item, step) == (not late)
            if not late:
                accepted.append(item)
                model.held.append(item)
            continue
        watermark, fails = max(watermark, step[0]), step[1]
        expected: list[Window[Item]] = []
        got: list[Window[Item]] = []
        fires = windows.advance(watermark)
        released = sorted(one for one in accepted if one.time <= watermark)
        if isinstance(slide, Count):
            reaches = [
                (released[i - 1].time, released[:i])
                for i in range((next_end + 1) * slide.value, len(released) + 1, slide.value)
            ]
            next_end += len(reaches)
        else:
            first = -(-next_end // slide.value) * slide.value
            reaches = [
                (end, [one for one in released if one.time <= end])
                for end in range(first, watermark + 1, slide.value)
            ]
        for end, reach in reaches:
            window = model.window(end, [one for one in reach if one in model.held])
            if window is not None:
                expected.append(window)
                fired.add(end)
                got.append(next(fires))
                if fails:
                    windows.drop()
                    model.fail(window)
            if isinstance(slide, Duration) and not (window is None and end == watermark):
                next_end = end + 1
        assert got == expected
        assert next(fires, None) is None
        check_leaving(model, gone, accepted)
        for one, other in pairwise(got):
            assert one.end <= other.end


@given(
    st.dictionaries(st.integers(0, 2), st.integers(1, 9)),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)) | st.integers(0, 6), max_size=50),
)
def test_watermarks_without_idle_streams(
    idle_after: dict[int, int], lag: int, steps: list[tuple[int, int] | int]
) -> None:
    """C30: a step is a tuple of a stream, or the milliseconds until the watermark is computed again."""
    marks = IdlingWatermarks(range(3), lag, idle_after, now=0)
    greatest: dict[int, int] = {}
    since = dict.fromkeys(
        range(3), 0
    )  # when the watermark was computed first after the last tuple of a stream
    active: set[int] = set()
    now = last = 0
    for step in steps:
        if isinstance(step, tuple):
            stream, time = step
            marks.track(stream, time)
            greatest[stream] = max(time, greatest.get(stream, time))
            active.add(stream)
            continue
        now += step
        since.update(dict.fromkeys(active, now))
        active.clear()
        awake = [one for one in range(3) if one not in idle_after or now - since[one] < idle_after[one]]
        if not awake:
            reached = max(greatest.values(), default=None)
        elif all(one in greatest for one in awake):
            reached = min(greatest[one] for one in awake)
        else:
            reached = None
        expected = last if reached is None else reached - lag
        assert marks.advanced(now) == (expected if expected > last else None)
        last = max(last, expected)


@given(
    st.integers(1, 3),
    st.integers(0, 10),
    st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 60)) | st.none(), max_size=50),
)
def test_watermarks(streams: int, lag: int, steps: list[tuple[int, int] | None]) -> None:
    """C30: the least of the greatest minus the lag, once all streams have delivered, and only if it advances."""
    marks = Watermarks(range(streams), lag)
    greatest: dict[int, int] = {}
    last = 0
    for step in steps:
        if step is not None:
            stream = step[0] % streams
            marks.track(stream, step[1])
            greatest[stream] = max(step[1], greatest.get(stream, step[1]))
            continue
        expected = min(greatest.values()) - lag if len(greatest) == streams else 0
        assert marks.advanced() == (expected if expected > last else None)
        last = max(last, expected)
