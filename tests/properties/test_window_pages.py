"""Windows whose items are in pages, against those that have them in memory: the same windows, wherever a batch is lost (C41)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.windowing import (
    Duration,
    EventTimeWindows,
    Length,
    PagedItems,
    ProcessingTimeWindows,
    Rows,
    Window,
)
from tests.properties.test_windows import LENGTHS

#: What a step does: an item with that timestamp, a watermark or a look at the clock, the end of a batch, or its loss.
COMMIT, LOSS = "commit", "loss"
STEPS = st.lists(
    st.integers(0, 60) | st.tuples(st.integers(0, 70)) | st.sampled_from([COMMIT, COMMIT, LOSS]),
    min_size=15,
    max_size=80,
)


class Kept:
    """A state: what is committed, as bytes."""

    def __init__(self) -> None:
        self.committed: dict[Any, bytes] = {}
        self.written = 0

    def load(self, number: int) -> Rows[int]:
        rows: Rows[int] = pickle.loads(self.committed[number])
        return rows

    def commit(self, items: PagedItems[int], progress: Any) -> None:
        pages, gone = items.changes()
        for number, rows in pages:
            assert rows.times == sorted(rows.times)
            self.committed[number] = pickle.dumps(rows)
            self.written += len(rows.items)
        for number in gone:
            del self.committed[number]
        self.committed["progress"] = pickle.dumps((items.progress, progress))
        in_memory = [page.size for page in items._pages if page.rows is not None]
        assert items._in_memory == sum(in_memory)
        assert items._most is None or sum(in_memory) <= items._most or len(in_memory) == 1

    def restore(self, items: PagedItems[int]) -> Any:
        held, progress = pickle.loads(self.committed["progress"])
        items.restore(held)
        for number in sorted(one for one in self.committed if one != "progress"):
            items.hold(number, self.load(number))
        return progress


def plain(window: Window[int] | None, persistent: bool) -> Any:
    if window is None:
        return None
    items = list(window.items)
    assert len(window.items) == len(items)
    assert [window.items[at] for at in range(len(items))] == items
    assert list(window.items[1:-1]) == items[1:-1] and list(window.items[::-2]) == items[::-2]
    known = () if persistent else (window.new, window.expired)
    return items, *known, window.start, window.end


def paged(length: Length, kept: Kept, page: int, most: int | None) -> PagedItems[int]:
    return PagedItems(length, kept.load, most, page)


@given(LENGTHS, LENGTHS, STEPS, st.integers(1, 7), st.sampled_from([None, 1, 5, 100]))
def test_event_time(length: Length, slide: Length, steps: list[Any], page: int, most: int | None) -> None:
    """C30-C33, C41: out of order, late, in pages of any size, with little in memory, with batches that come again."""
    kept = Kept()
    in_memory = EventTimeWindows[int](length, slide)
    in_pages = EventTimeWindows[int](length, slide, items=paged(length, kept, page, most))
    kept.commit(in_pages.items, in_pages.progress)  # type: ignore[arg-type]
    batch: list[Any] = []
    number = 0

    def play(step: Any, windows: EventTimeWindows[int], number: int, persistent: bool) -> Any:
        if isinstance(step, tuple):
            return [plain(window, persistent) for window in windows.advance(*step)]
        return windows.add(number, step)

    # What is taken back comes again in the same order, so the sequence as a whole is what one without losses sees.
    for step in [*steps, COMMIT, LOSS, 70, (90,), LOSS, COMMIT]:
        if step == COMMIT:
            kept.commit(in_pages.items, in_pages.progress)  # type: ignore[arg-type]
            batch.clear()
        elif step == LOSS:
            in_pages = EventTimeWindows[int](length, slide, items=paged(length, kept, page, most))
            in_pages.restore(kept.restore(in_pages.items))  # type: ignore[arg-type]
            for again, its_number, expected in batch:
                assert play(again, in_pages, its_number, most is not None) == expected
        else:
            expected = play(step, in_memory, number, most is not None)
            assert play(step, in_pages, number, most is not None) == expected
            batch.append((step, number, expected))
            number += 1
    held = [item for _, _, items in in_pages.items._runs() for item in items]  # type: ignore[attr-defined]
    assert len(held) == len(in_pages.items)
    in_state = [item for name in kept.committed if name != "progress" for item in kept.load(name).items]
    assert set(held) <= set(in_state) and len(in_state) <= 4 * len(held) + 3


def test_what_comes_late_for_an_empty_window_outlives_a_restart_although_later_items_have_left() -> None:
    """C31, C41: between two windows that leave gaps, items leave without a window. Earlier items are not late then."""
    kept = Kept()

    def begun_again() -> EventTimeWindows[int]:
        windows = EventTimeWindows[int](Duration(5), Duration(10), items=paged(Duration(5), kept, 4, None))
        if kept.committed:
            windows.restore(kept.restore(windows.items))  # type: ignore[arg-type]
        return windows

    windows = begun_again()
    assert windows.add(1, 13) and not list(windows.advance(25))  # in no window, and gone
    assert windows.add(2, 7) and windows.add(3, 2)  # in the window that ends at 10, and in none
    for _ in range(3):
        kept.commit(windows.items, windows.progress)  # type: ignore[arg-type]
        windows = begun_again()
    assert [(window.end, window.items) for window in windows.advance(26)] == [(10, (2,))]


@given(LENGTHS, LENGTHS, STEPS, st.integers(1, 7), st.sampled_from([None, 1, 5, 100]))
def test_processing_time(
    length: Length, slide: Length, steps: list[Any], page: int, most: int | None
) -> None:
    """Processing-time windows kept in pages behave as windows in memory, through commits and losses (C23, C29, C34, C41)."""
    kept = Kept()
    in_memory = ProcessingTimeWindows[int](length, slide)
    in_pages = ProcessingTimeWindows[int](length, slide, items=paged(length, kept, page, most))
    kept.commit(in_pages.items, in_pages.progress)  # type: ignore[arg-type]
    batch: list[Any] = []
    number = now = 0

    def play(wait: int | None, windows: ProcessingTimeWindows[int], now: int, number: int) -> Any:
        due = windows.period is not None if wait is None else windows.add(number, now)
        return plain(windows.evaluate(now), most is not None) if due else None

    for step in [*steps, COMMIT, LOSS, 70, (90,), LOSS, COMMIT]:
        if step == COMMIT:
            kept.commit(in_pages.items, in_pages.progress)  # type: ignore[arg-type]
            batch.clear()
        elif step == LOSS:
            in_pages = ProcessingTimeWindows[int](length, slide, items=paged(length, kept, page, most))
            in_pages.restore(kept.restore(in_pages.items))  # type: ignore[arg-type]
            for wait, at, its_number, expected in batch:
                assert play(wait, in_pages, at, its_number) == expected
        else:
            wait = None if isinstance(step, tuple) else step
            now += step[0] // 8 if isinstance(step, tuple) else step // 8
            expected = play(wait, in_memory, now, number)
            assert play(wait, in_pages, now, number) == expected
            batch.append((wait, now, number, expected))
            number += 1


def _bulk(items: int, batch: int) -> tuple[Kept, PagedItems[int], list[int]]:
    kept = Kept()
    held = PagedItems[int](Duration(items), kept.load, 1000)
    writes = []
    for number in range(2 * items):
        held.add(number, number)
        if number % batch == batch - 1:
            held.window(number, held.until(number))
            before = kept.written
            kept.commit(held, None)
            writes.append(kept.written - before)
    return kept, held, writes


@pytest.mark.slow
def test_a_batch_writes_what_came_and_left_whatever_the_window_holds() -> None:
    """C41: 10 items a batch cost the same beside 100,000 as beside 1,000, and no more than the page that is being filled."""
    _, small, few = _bulk(1_000, 10)
    kept, large, many = _bulk(100_000, 10)
    assert len(small) == 1_000 and len(large) == 100_000
    assert max(many) <= max(few) <= 2 * 256 + 10
    assert len(kept.committed) < 100_000 / 256 * 1.1 + 3
    assert large._in_memory <= 1000 + 256
