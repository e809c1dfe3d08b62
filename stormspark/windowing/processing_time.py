"""Windows by the time at which tuples arrive (C29), and windows of a number of tuples (C23, C34)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from stormspark.windowing.lengths import Count, Duration, Length
from stormspark.windowing.window import Held, Items, Window

__all__ = ["ProcessingTimeWindows"]

_T = TypeVar("_T")
_COMPACT_EVERY = 100  # items, as in Storm (C33)


class ProcessingTimeWindows(Generic[_T]):
    """Windows in processing time.

    ``period`` is the interval in milliseconds at which `evaluate` is to be called, at a fixed rate. It is None if `evaluate` is
    to be called when `add` returns true. ``items`` keeps the items. By default it is a `Held`, which keeps them in memory, and
    calls ``expire`` with the items that no window needs any more.

    >>> gone = []
    >>> windows = ProcessingTimeWindows(Count(3), Count(2), gone.extend)
    >>> [windows.evaluate(now=n).items for n in range(1, 7) if windows.add(n, now=n)]
    [(1, 2), (2, 3, 4), (4, 5, 6)]
    >>> gone
    [1, 2, 3]
    """

    def __init__(
        self,
        length: Length,
        slide: Length,
        expire: Callable[[list[_T]], None] = lambda gone: None,
        items: Items[_T] | None = None,
    ) -> None:
        self.period = slide.value if isinstance(slide, Duration) else None
        self.items: Items[_T] = Held[_T](length, expire) if items is None else items
        self._slide: float = slide.value if isinstance(slide, Count) else math.inf
        self._length = length.value
        self._lengths = (length, slide)
        self._tumbling = type(length) is type(slide) and slide.value >= length.value
        # If both are durations, a late timer makes its window longer than the length. The window then needs items that are older
        # than the length, so `add` must not compact them.
        self._drifts = isinstance(length, Duration) and isinstance(slide, Duration)
        self._added = 0  # since the last evaluation
        self._uncompacted = 0
        self._last_end: float = -math.inf

    def add(self, item: _T, now: int) -> bool:
        """Hold ``item``. Return true if so many items were added that `evaluate` is to be called."""
        self.items.add(item, now)
        self._added += 1
        if self._added >= self._slide:
            return True
        self._uncompacted += 1
        if self._uncompacted >= _COMPACT_EVERY and not self._drifts:
            self._uncompacted = 0
            self.items.compact(now)
        return False

    def evaluate(self, now: int) -> Window[_T] | None:
        """Return the window that is due; None if it is empty.

        If the slide is a duration, a timer calls this, and the window's end is one millisecond ago. If the length is a duration
        too, the items of the present millisecond wait for the next window. The window then begins at the last window's end +
        slide - length, even if the timer is late or early. So a tumbling window begins where the last one ended, and no item is
        omitted or repeated. The first window takes all items (C29).
        """
        self._uncompacted = 0
        held = self.items
        if self.period is None:
            # `_added` is greater than the slide only after a restart with another slide. Then each further item makes a window
            # due, until `_added` is smaller than the slide.
            self._added = max(0, self._added - int(self._slide))
            return held.window(now, len(held) - self._added)
        self._added = 0
        end = now - 1
        if not self._drifts:
            return held.window(end, len(held))
        after = self._last_end + self.period - self._length
        self._last_end = end
        return held.window(end, held.until(end), after)

    def end(self, now: int) -> Iterator[Window[_T]]:
        """Return a last window with the items that were in no window yet, if there are any, because the input has ended. If
        windows overlap, it also has items of earlier windows, as many as the length allows.

        Afterwards all items have expired, and windows begin anew.
        """
        held = self.items
        if len(held) > held.seen:
            after = (
                self._last_end + self.period - self._length
                if self._drifts and self.period is not None
                else None
            )
            window = held.window(now, len(held), after, only_new=self._tumbling)
            if window is not None:
                yield window
        held.end()
        self._added = self._uncompacted = 0
        self._last_end = -math.inf

    @property
    def progress(self) -> tuple[Any, ...]:
        """The state of these windows, apart from the items."""
        return self._added, self._last_end, self._lengths

    def restore(self, progress: tuple[Any, ...]) -> None:
        """Continue from `progress` with the items that are held already. Length and slide may have changed.

        If they have changed, all items that were in no window yet count as added since the last evaluation. If the windows are
        tumbling now, the items that were in a window are forgotten.
        """
        self._added, self._last_end, *lengths = progress
        if lengths and lengths[0] != self._lengths:
            self._added = len(self.items) - self.items.seen
            if self._tumbling:
                self.items.drop()

    def drop(self) -> None:
        """Forget the items of the last window, because they have failed."""
        self.items.drop()
