"""Holds items for windows, in the order of time, and cuts windows out of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from stormspark.windowing.lengths import Count, Length

__all__ = ["Held", "Items", "Window"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Window(Generic[_T]):
    """A window as it fires (C24).

    ``new`` are the items that were in no window before. ``expired`` are the items that have expired since the last evaluation.
    ``end`` is inclusive. ``start`` is ``end`` minus the length, exclusive; None for a window whose length is a count. If a timer
    ends the window late or early, the first item may be earlier or later than ``start``.
    """

    items: Sequence[_T]
    new: tuple[_T, ...]
    expired: tuple[_T, ...]
    start: int | None
    end: int


class Items(Protocol[_T]):
    """Items held for windows: in memory (`Held`), or in pages (`PagedItems`)."""

    #: How many of the items have been in a window. They are the first ones.
    seen: int

    def __len__(self) -> int: ...

    def add(self, item: _T, time: int) -> None:
        """Hold ``item``."""

    def until(self, time: int) -> int:
        """Return how many items have this time or an earlier one."""

    def time(self, position: int) -> int:
        """Return the time of the item at ``position``."""

    def window(
        self, end: int, reach: int, after: float | None = None, *, only_new: bool = False
    ) -> Window[_T] | None:
        """Of the first ``reach`` items, expire those that are too old at ``end``, and return the others as a window. If
        ``only_new``, expire those that were in a window, too.

        Return None if none are left (C28).
        """

    def compact(self, end: int) -> None:
        """Expire items that can be in no window that ends at ``end`` or later, or leave that to the next call of `window`."""

    def drop(self) -> None:
        """Remove the items of the last window."""

    def end(self) -> None:
        """Expire all items, because the input has ended. Later items may be earlier than these."""


class Held(Generic[_T]):
    """Items in memory, in the order of time. Items of the same time are in the order of arrival.

    ``expire`` gets each item once, when the item expires. Items that `drop` removes do not go to ``expire``.

    Invariant: the first ``seen`` items are exactly those that were in a window and may be in the next window, too.

    All work but sorting is linear in the number of added items and in the sizes of windows. If an item came out of order, all
    held items are sorted once, when their order matters. The memory of removed items is freed once at least half of the items in
    memory are removed ones.
    """

    __slots__ = ("_expire", "_expired", "_first", "_in_order", "_items", "_length", "_times", "seen")

    def __init__(self, length: Length, expire: Callable[[list[_T]], None]) -> None:
        self.seen = 0
        self._length = length
        self._expire = expire
        self._times: list[int] = []
        self._items: list[_T] = []
        self._first = 0  # items before this position are removed
        self._in_order = True
        self._expired: list[_T] = []

    def __len__(self) -> int:
        return len(self._times) - self._first

    def add(self, item: _T, time: int) -> None:
        """Hold ``item``."""
        times = self._times
        if times and time < times[-1]:
            self._in_order = False
        times.append(time)
        self._items.append(item)

    def until(self, time: int) -> int:
        """Return how many items have this time or an earlier one."""
        self._put_in_order()
        return bisect_right(self._times, time, self._first) - self._first

    def time(self, position: int) -> int:
        """Return the time of the item at ``position``."""
        self._put_in_order()
        return self._times[self._first + position]

    def window(
        self, end: int, reach: int, after: float | None = None, *, only_new: bool = False
    ) -> Window[_T] | None:
        """Of the first ``reach`` items, expire those that are too old at ``end``, and return the others as a window. If
        ``only_new``, expire those that were in a window, too.

        Return None if none are left (C28). If the length is a duration, the window has the items later than ``after``, by default
        ``end`` minus the length.
        """
        gone = max(self._too_old(end, reach, after), self.seen if only_new else 0)
        before = max(0, self.seen - gone)
        self._leave(gone)
        self.seen = left = reach - gone
        # Like Storm, forget the items that expired before an empty window (C28).
        expired, self._expired = tuple(self._expired), []
        if not left:
            return None
        items = tuple(self._items[self._first : self._first + left])
        start = None if isinstance(self._length, Count) else end - self._length.value
        return Window(items, items[before:], expired, start, end)

    def compact(self, end: int) -> None:
        """Expire items that can be in no window that ends at ``end`` or later (C33)."""
        gone = self._too_old(end, len(self), None)
        self.seen = max(0, self.seen - gone)
        self._leave(gone)

    def drop(self) -> None:
        """Remove the items of the last window without calling ``expire``, because they have failed."""
        self._forget(self.seen)
        self.seen = 0

    def end(self) -> None:
        """Expire all items."""
        self._leave(len(self))
        self.seen, self._expired = 0, []

    def _put_in_order(self) -> None:
        if not self._in_order:
            times, items = self._times, self._items
            order = sorted(range(self._first, len(times)), key=times.__getitem__)
            self._times = [times[i] for i in order]
            self._items = [items[i] for i in order]
            self._first = 0
            self._in_order = True

    def _too_old(self, end: int, reach: int, after: float | None) -> int:
        self._put_in_order()
        if isinstance(self._length, Count):
            return max(0, reach - self._length.value)
        first = self._first
        after = end - self._length.value if after is None else after
        return bisect_right(self._times, after, first, first + reach) - first

    def _leave(self, gone: int) -> None:
        if gone:
            items = self._items[self._first : self._first + gone]
            self._forget(gone)
            self._expired += items
            self._expire(items)

    def _forget(self, gone: int) -> None:
        self._first += gone
        if self._first * 2 >= len(self._times):
            del self._times[: self._first], self._items[: self._first]
            self._first = 0
