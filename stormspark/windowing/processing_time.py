"""Windows by the time at which tuples arrive (C29), and those of so many tuples (C34)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from stormspark.windowing.lengths import Count, Duration, Length
from stormspark.windowing.window import Held, Items, Window

__all__ = ["ProcessingTimeWindows"]

_T = TypeVar("_T")
_COMPACT_EVERY = 100  # items, as in Storm (C33)


class ProcessingTimeWindows(Generic[_T]):
    """Windows in processing time. ``period`` is the time in milliseconds after which `evaluate` is to be called, again and
    again at a fixed rate; None where `add` says when. ``items`` are by default those that `Held` has in memory, which
    ``expire`` is told of.

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
        # A duration that a timer evaluates grows with the timer's drift: what will be too old is not known beforehand.
        self._drifts = isinstance(length, Duration) and isinstance(slide, Duration)
        self._added = 0  # since the last evaluation
        self._uncompacted = 0
        self._last_end: float = -math.inf

    def add(self, item: _T, now: int) -> bool:
        """Hold ``item``; true if a window is due, so `evaluate` is to be called."""
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
        """The window that ends now; None if there is nothing in it.

        By a timer it ends one millisecond ago, because more may come in this one. Then one of a duration begins where the last
        one began, plus the slide, however late or early the timer is: so tumbling windows leave nothing out and have nothing
        twice. The first one takes all there is (C29).
        """
        self._uncompacted = 0
        held = self.items
        if self.period is None:
            # More than a slide only where there was another slide before: one window after another then, with each item.
            self._added = max(0, self._added - int(self._slide))
            return held.window(now, len(held) - self._added)
        self._added = 0
        end = now - 1
        if not self._drifts:
            return held.window(end, len(held))
        after = self._last_end + self.period - self._length
        self._last_end = end
        return held.window(end, held.until(end), after)

    @property
    def progress(self) -> tuple[Any, ...]:
        """What there is to know beside the items."""
        return self._added, self._last_end, self._lengths

    def restore(self, progress: tuple[Any, ...]) -> None:
        """Go on from `progress` with the items that are held by now, maybe by another length or slide.

        What no window has had is in those of now.
        """
        self._added, self._last_end, *lengths = progress
        if lengths and lengths[0] != self._lengths:
            self._added = len(self.items) - self.items.seen
            if self._tumbling:
                self.items.drop()

    def drop(self) -> None:
        """The items of the last window have failed: forget them."""
        self.items.drop()
