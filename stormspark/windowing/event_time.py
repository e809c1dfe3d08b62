"""Windows by the tuples' own timestamps (C30-C33).

A watermark says that all tuples up to a time have come. Then the windows up to that time fire, in order:

- If the slide is a duration, windows end at the multiples of the slide. The first one ends at the earliest timestamp,
  rounded up to a multiple (C32). After a gap without tuples, the next timestamp is rounded up in the same way.
- If the slide is n tuples, a window ends with every n-th tuple (C33).

A tuple is late if it is older than the watermark, and a window with it or a later window has fired. In Storm every tuple that is
older than the watermark is late. By that rule a tuple that has failed, and comes again with its old timestamp, would be lost
although its window is still open.

Windows count and order tuples by their timestamps. So the contents of a window do not depend on when the watermarks came. Storm
goes through the tuples in the order of arrival, and stops at the first tuple that is ahead of the window by more than the lag. If
one stream is ahead of another, Storm may expire tuples that have not been in any window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from stormspark.windowing.lengths import Count, Length
from stormspark.windowing.window import Held, Items, Window

__all__ = ["EventTimeWindows"]

_T = TypeVar("_T")
#: If the length is a count, no window is empty after the first item. Storm fires a window at every slide, even if the window has
#: no new item. In stormspark at most this many windows in a row fire without a new item. Otherwise a timestamp far in the
#: future would keep a task busy for ever.
_MOST_REPEATS = 1000


class EventTimeWindows(Generic[_T]):
    """Windows in event time over ``items``. By default `Held` keeps the items in memory, and calls ``expire`` with those that
    leave the windows.

    >>> from stormspark.windowing import Duration
    >>> windows = EventTimeWindows(Duration(20), Duration(10), expire=lambda gone: None)
    >>> [windows.add(t, t) for t in (603, 605, 607, 618, 626, 636)]
    [True, True, True, True, True, True]
    >>> [(window.end, window.items) for window in windows.advance(631)]
    [(610, (603, 605, 607)), (620, (603, 605, 607, 618)), (630, (618, 626))]
    >>> windows.add(630, 630)
    False
    >>> [(window.end, window.items) for window in windows.end()]
    [(640, (626, 636)), (650, (636,))]
    """

    def __init__(
        self,
        length: Length,
        slide: Length,
        expire: Callable[[list[_T]], None] = lambda gone: None,
        items: Items[_T] | None = None,
    ) -> None:
        self.items: Items[_T] = Held[_T](length, expire) if items is None else items
        self._slide = slide.value
        self._lengths = (length, slide)
        self._by_count = isinstance(slide, Count)
        self._repeats = isinstance(length, Count)
        self._tumbles_by_count = self._by_count and self._repeats and slide.value >= length.value
        # Whether windows don't overlap. Then a tuple whose window has fired is in no later window.
        self._once = not (self._by_count or self._repeats) and slide.value >= length.value
        self._begin()

    def _begin(self) -> None:
        self._watermark = 0  # Event time begins in 1970: older tuples are late.
        self._next_end = 0
        self._fired = -1  # the end of the last window that fired

    def add(self, item: _T, timestamp: int) -> bool:
        """Hold ``item`` and return true. If the item is late, only return false (C31).

        If windows don't overlap, an item whose timestamp equals the watermark is also late, once its window has fired.
        Storm acks such an item, and puts it into no window.
        """
        if timestamp <= self._fired and (timestamp < self._watermark or self._once):
            return False
        if timestamp < self._watermark:
            self._go_back_to(timestamp)
        self.items.add(item, timestamp)
        return True

    def _go_back_to(self, timestamp: int) -> None:
        """If windows with this timestamp were passed over, because they were empty, let them fire after all."""
        if not self._by_count:
            self._next_end = min(self._next_end, -(-timestamp // self._slide) * self._slide)

    def advance(self, watermark: int) -> Iterator[Window[_T]]:
        """Fire the windows up to ``watermark``. After each of them, `drop` may be called."""
        self._watermark = max(self._watermark, watermark)
        return self._by_counts(watermark) if self._by_count else self._by_ends(watermark)

    @property
    def progress(self) -> tuple[Any, ...]:
        """The state of these windows, apart from the items."""
        return self._watermark, self._next_end, self._lengths, self._fired

    def restore(self, progress: tuple[Any, ...]) -> None:
        """Continue from `progress` with the items that are held already. Length and slide may have changed.

        The new windows begin where the last old one ended, and contain all items that were in no window so far.
        """
        self._watermark, self._next_end, *others = progress
        # The progress of earlier versions does not have the last window's end. It can't have been after the watermark.
        self._fired = others[1] if len(others) > 1 else self._watermark - 1
        if not others or others[0] == self._lengths:
            return
        _, slide = others[0]
        if self._by_count:
            return
        if isinstance(slide, Count) or not self._next_end:
            self._next_end = 0
        else:
            fired = self._next_end - slide.value
            self._next_end = (fired // self._slide + 1) * self._slide
        if self._once:
            self.items.drop()

    def end(self) -> Iterator[Window[_T]]:
        """Fire all windows that have items, because the input has ended. After each of them, `drop` may be called.

        If the slide is a count, the last window has the items that were in no window, even if they are fewer than the slide. If
        windows overlap, it also has items of earlier windows.
        Afterwards all items have expired, and event time begins anew.
        """
        held = self.items
        if len(held):
            last = held.time(len(held) - 1)
            if self._by_count:
                yield from self._by_counts(last)
                if len(held) > held.seen:
                    window = held.window(last, len(held), only_new=self._tumbles_by_count)
                    if window is not None:
                        yield window
            else:
                # The last window that has an item; or, if windows repeat, the first one that has all.
                reach = 0 if self._repeats else self._lengths[0].value
                yield from self._by_ends(-(-(last + reach) // self._slide) * self._slide)
        held.end()
        self._begin()

    def drop(self) -> None:
        """Forget the items of the last window, because they have failed."""
        self.items.drop()

    def _by_counts(self, watermark: int) -> Iterator[Window[_T]]:
        held = self.items
        while (reach := held.seen + self._slide) <= held.until(watermark):
            window = held.window(held.time(reach - 1), reach)
            if window is not None:
                self._fired = window.end
                yield window

    def _by_ends(self, watermark: int) -> Iterator[Window[_T]]:
        held, slide = self.items, self._slide
        repeated = 0
        while (end := self._next_end) <= watermark:
            window = held.window(end, held.until(end))
            repeated = repeated + 1 if window is not None and not window.new else 0
            if window is not None and not (self._repeats and repeated > _MOST_REPEATS):
                self._next_end, self._fired = end + slide, end
                yield window
            elif (ahead := held.seen) < held.until(watermark):
                # All remaining items are later than `end`. Continue with the end of the next window that has a new item.
                self._next_end = -(-held.time(ahead) // slide) * slide
            else:
                if window is not None:
                    self._next_end = watermark // slide * slide + slide
                break
