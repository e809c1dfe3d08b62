"""Windows by the tuples' own timestamps (C30-C33).

Nothing fires before a watermark says that all up to it has come. Then the windows up to it fire, one after another:

- A slide of a duration: windows end at the multiples of the slide, the first one at the multiple that the earliest timestamp
  is rounded up to (C32). Where there is nothing, they go on at the next timestamp.
- A slide of so many tuples: a window ends with every so manieth tuple (C33).

Tuples are counted, and stand in their window, in the order of their timestamps. So what a window holds does not depend on when
the watermarks came. Storm takes the order of arrival and stops to look at the first tuple that is ahead by more than the lag;
what comes behind it, as it does where one stream is ahead of another, leaves Storm's windows unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from stormspark.windowing.lengths import Count, Length
from stormspark.windowing.window import Held, Items, Window

__all__ = ["EventTimeWindows"]

_T = TypeVar("_T")
#: A window of so many tuples is never empty again. Storm fires it at every slide, if there is something new or not; here
#: it fires so often, and then on where there is something new: a timestamp that is far ahead must not keep a task busy for ever.
_MOST_REPEATS = 1000


class EventTimeWindows(Generic[_T]):
    """Windows in event time, of ``items``: by default those that `Held` has in memory, which ``expire`` is told of.

    >>> from stormspark.windowing import Duration
    >>> windows = EventTimeWindows(Duration(20), Duration(10), expire=lambda gone: None)
    >>> [windows.add(t, t) for t in (603, 605, 607, 618, 626, 636)]
    [True, True, True, True, True, True]
    >>> [(window.end, window.items) for window in windows.advance(631)]
    [(610, (603, 605, 607)), (620, (603, 605, 607, 618)), (630, (618, 626))]
    >>> windows.add(630, 630)
    False
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
        # With such windows a tuple whose window has fired is in no later one.
        self._once = not (self._by_count or self._repeats) and slide.value >= length.value
        self._watermark = 0  # event time begins in 1970: what is older is late
        self._next_end = 0

    def add(self, item: _T, timestamp: int) -> bool:
        """Hold ``item``; false if it is late: it is older than the last watermark (C31).

        Or it is as old, and the only window that could have it has fired at just this watermark; Storm acks it unseen.
        """
        if timestamp < self._watermark or (self._once and timestamp <= self._next_end - self._slide):
            return False
        self.items.add(item, timestamp)
        return True

    def advance(self, watermark: int) -> Iterator[Window[_T]]:
        """Fire the windows up to ``watermark``. After each of them `drop` may be called."""
        self._watermark = max(self._watermark, watermark)
        return self._by_counts(watermark) if self._by_count else self._by_ends(watermark)

    @property
    def progress(self) -> tuple[Any, ...]:
        """What there is to know beside the items."""
        return self._watermark, self._next_end, self._lengths

    def restore(self, progress: tuple[Any, ...]) -> None:
        """Go on from `progress` with the items that are held by now, maybe by another length or slide.

        What no window has had is in those of now, as if they had begun where the last window ended.
        """
        self._watermark, self._next_end, *lengths = progress
        if not lengths or lengths[0] == self._lengths:
            return
        _, slide = lengths[0]
        if self._by_count:
            return
        if isinstance(slide, Count) or not self._next_end:
            self._next_end = 0
        else:
            fired = self._next_end - slide.value
            self._next_end = (fired // self._slide + 1) * self._slide
        if self._once:
            self.items.drop()

    def drop(self) -> None:
        """The items of the last window have failed: forget them."""
        self.items.drop()

    def _by_counts(self, watermark: int) -> Iterator[Window[_T]]:
        held = self.items
        while (reach := held.seen + self._slide) <= held.until(watermark):
            window = held.window(held.time(reach - 1), reach)
            if window is not None:
                yield window

    def _by_ends(self, watermark: int) -> Iterator[Window[_T]]:
        held, slide = self.items, self._slide
        repeated = 0
        while (end := self._next_end) <= watermark:
            window = held.window(end, held.until(end))
            repeated = repeated + 1 if window is not None and not window.new else 0
            if window is not None and not (self._repeats and repeated > _MOST_REPEATS):
                self._next_end = end + slide
                yield window
            elif (ahead := held.seen) < held.until(watermark):
                # What is held from here on is later than `end`: on to the end of the next window that has something new.
                self._next_end = -(-held.time(ahead) // slide) * slide
            else:
                if window is not None:
                    self._next_end = watermark // slide * slide + slide
                break
