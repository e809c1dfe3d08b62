"""Keeps the items of windows in pages, which the caller stores. So a batch writes only the pages that it changed.

`PagedItems` behaves like `Held`, which keeps all items in memory. An item goes into the newest page, whatever its time is. Items
leave in the order of their times. So one key, the ``cut``, separates the items that have left from those that are held. A page is
written again when new items went into it, or when at most a quarter of its items is left.

A new item is hardly ever earlier than an item that has left, because in event time it is late then. But if the slide is longer
than the length, items between two windows leave without a window, and earlier items are not late. Then the items that have left
are removed from their pages, and the cut goes back.

A page that is not in memory is loaded when a window needs it. A window's pages are read in the order of their first times. So
only pages whose times overlap are needed at the same time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

from stormspark.windowing.lengths import Count, Length
from stormspark.windowing.window import Window

__all__ = ["ItemsOfPages", "PagedItems", "Rows"]

_T = TypeVar("_T")
#: The time and the number of an item. Items of the same time are in the order of their numbers, which is the order of arrival.
Key: TypeAlias = tuple[int, int]
#: The number of items per page.
_PAGE = 256
_BEFORE_ALL: Key = (-1, -1)


class Rows(NamedTuple, Generic[_T]):
    """Items of a page, in the order of their keys: the items' times, their numbers, and the items themselves."""

    times: list[int]
    numbers: list[int]
    items: list[_T]


@dataclass(eq=False, slots=True)
class _Page(Generic[_T]):
    number: int
    #: None while the page is not in memory.
    rows: Rows[_T] | None
    #: ``size``: how many items the page stores. ``left``: how many of these items have left, although the page still stores them.
    size: int
    left: int
    #: The keys of the first and the last item that are still held.
    first: Key
    last: Key
    in_order: bool = True
    #: ``changed``: the page's present contents are not written yet. ``written``: the page was written at least once.
    changed: bool = True
    written: bool = False


class PagedItems(Generic[_T]):
    """Items for windows of ``length``, in pages of ``page`` items.

    ``load`` is a function that returns the rows of a written page, given the page's number. About ``most`` items of written pages
    are kept in memory, or all if ``most`` is None. Pages that changed since the last call of `changes` are always in memory. If
    ``most`` is given, windows hold `ItemsOfPages`, and do not know which items are new or expired.

    >>> from stormspark.windowing import Count, ProcessingTimeWindows
    >>> written = {}
    >>> windows = ProcessingTimeWindows(Count(3), Count(2), items=PagedItems(Count(3), written.__getitem__))
    >>> [windows.evaluate(n).items for n in range(1, 6) if windows.add(n, now=n)]
    [(1, 2), (2, 3, 4)]
    >>> pages, gone = windows.items.changes()
    >>> [(number, rows.items) for number, rows in pages], gone
    ([(0, [1, 2, 3, 4, 5])], [])
    """

    def __init__(
        self, length: Length, load: Callable[[int], Rows[_T]], most: int | None = None, page: int = _PAGE
    ) -> None:
        self.seen = 0
        self._length = length
        self._load = load
        self._most = most
        self._page = page
        self._pages: list[_Page[_T]] = []
        self._open: _Page[_T] | None = None  # the page that new items go into
        self._gone: list[int] = []  # pages that were written and are empty now
        self._count = 0
        self._next_number = self._next_page = 0
        self._cut = _BEFORE_ALL
        #: The pages in memory whose contents are written. The page that was used last comes last.
        self._loaded: OrderedDict[int, _Page[_T]] = OrderedDict()
        self._in_memory = 0
        self._version = 0

    def __len__(self) -> int:
        return self._count

    def add(self, item: _T, time: int) -> None:
        """Hold ``item``."""
        key = (time, self._next_number)
        self._next_number += 1
        if key < self._cut:
            self._go_back_to(key)
        page = self._open
        if page is None or page.size >= self._page:
            page = self._open = _Page[_T](self._next_page, Rows([], [], []), 0, 0, key, key)
            self._next_page += 1
            self._pages.append(page)
        times, numbers, items = self._rows_of(page)
        if key < page.last:
            page.in_order = False
        times.append(time)
        numbers.append(key[1])
        items.append(item)
        if not page.changed:
            page.changed = True
            self._forget(page)  # before its size changes, which is what it counted as
        page.size += 1
        page.first, page.last = min(page.first, key), max(page.last, key)
        self._count += 1
        self._version += 1

    def until(self, time: float) -> int:
        """Return how many items have this time or an earlier one."""
        count = 0
        for page in self._pages:
            if page.last[0] <= time:
                count += page.size - page.left
            elif page.first[0] <= time:
                count += bisect_right(self._ordered(page).times, time) - page.left
        return count

    def time(self, position: int) -> int:
        """Return the time of the item at ``position``."""
        for times, _, _ in self._runs():
            if position < len(times):
                return times[position]
            position -= len(times)
        raise IndexError(position)

    def window(
        self, end: int, reach: int, after: float | None = None, *, only_new: bool = False
    ) -> Window[_T] | None:
        """See `Held.window`."""
        if isinstance(self._length, Count):
            gone = max(0, reach - self._length.value)
        else:
            gone = min(reach, self.until(end - self._length.value if after is None else after))
        gone = max(gone, self.seen if only_new else 0)
        before = max(0, self.seen - gone)
        expired = self._leave(gone)
        self.seen = count = reach - gone
        if not count:
            return None
        start = None if isinstance(self._length, Count) else end - self._length.value
        if self._most is not None:
            return Window(ItemsOfPages(self, count), (), (), start, end)
        items = tuple(self._first(count))
        return Window(items, items[before:], tuple(expired), start, end)

    def compact(self, end: int) -> None:
        """Do nothing: expired items are kept until the next call of `window`."""

    def drop(self) -> None:
        """Remove the items of the last window."""
        self._leave(self.seen)
        self.seen = 0

    def end(self) -> None:
        """Expire all items. Later items may be earlier than these, so nothing counts as having left."""
        self._leave(self._count)
        self.seen, self._cut = 0, _BEFORE_ALL

    # -- storing the pages -----------------------------------------------------------------------------------

    def changes(self) -> tuple[list[tuple[int, Rows[_T]]], list[int]]:
        """Return the pages to write, with their numbers. Also return the numbers of the pages that became empty since the last
        call.
        """
        changed = []
        for page in self._pages:
            if page.left * 4 >= page.size * 3:
                self._remove_left(page)
            if page.changed:
                changed.append((page.number, self._ordered(page)))
                page.changed, page.written = False, True
                self._remember(page)
        gone, self._gone = self._gone, []
        return changed, gone

    def close(self, number: int) -> None:
        """Put no more items into page ``number``, because the page is large already."""
        if self._open is not None and self._open.number == number:
            self._open = None

    @property
    def progress(self) -> tuple[Any, ...]:
        """The state of these items, apart from the pages."""
        return self.seen, self._cut, self._next_number, self._next_page

    def restore(self, progress: tuple[Any, ...]) -> None:
        """Continue from `progress`. After this, call `hold` for each page."""
        self.seen, self._cut, self._next_number, self._next_page = progress

    def hold(self, number: int, rows: Rows[_T]) -> None:
        """Add a page that was written earlier. Call this in the order of the pages' numbers."""
        keys = list(zip(rows.times, rows.numbers, strict=True))
        left = bisect_right(keys, self._cut)
        page = _Page(number, rows, len(keys), left, keys[min(left, len(keys) - 1)], keys[-1])
        page.changed, page.written = False, True
        self._pages.append(page)
        self._open = page
        self._count += page.size - left
        self._remember(page)

    # --------------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """A number that changes whenever an item has come or left."""
        return self._version

    def first(self, count: int) -> Iterator[_T]:
        """Return an iterator over the first items, page by page."""
        return islice((item for _, _, items in self._runs() for item in items), count)

    def _first(self, count: int) -> list[_T]:
        found: list[_T] = []
        for _, _, items in self._runs():
            found += items
            if len(found) >= count:
                break
        del found[count:]
        return found

    def _leave(self, gone: int) -> list[_T]:
        expired: list[_T] = []
        if not gone:
            return expired
        rest = gone
        for times, numbers, items in self._runs():
            taken = min(rest, len(times))
            rest -= taken
            if self._most is None:
                expired += items[:taken]
            if not rest:
                self._cut = times[taken - 1], numbers[taken - 1]
                break
        self._count -= gone
        self._version += 1
        self._pages = [page for page in self._pages if page.first > self._cut or self._stays(page)]
        return expired

    def _go_back_to(self, key: Key) -> None:
        """Move the cut before ``key``. No page stores items that have left any more, because they would count as held."""
        for page in self._pages:
            if page.left:
                self._remove_left(page)
        self._cut = key[0], -1

    def _remove_left(self, page: _Page[_T]) -> None:
        """Remove the items that have left from a page, which is to be written again."""
        for column in self._ordered(page):
            del column[: page.left]
        if not page.changed:
            self._forget(page)
        page.size, page.left, page.changed = page.size - page.left, 0, True

    def _stays(self, page: _Page[_T]) -> bool:
        """Return whether any item of a page is left after the cut has moved."""
        if page.last > self._cut:
            times, numbers, _ = self._ordered(page)
            page.left = bisect_right(range(page.size), self._cut, key=lambda at: (times[at], numbers[at]))
            page.first = times[page.left], numbers[page.left]
            return True
        if page.written:
            self._gone.append(page.number)
        if not page.changed:
            self._forget(page)
        if page is self._open:
            self._open = None
        return False

    def _runs(self) -> Iterator[Rows[_T]]:
        """Yield all held items in order, in blocks."""
        pages = sorted(self._pages, key=attrgetter("first"))
        # (Time, number, item) of pages that overlap. No two numbers are equal, so a comparison never reaches the items.
        merged: list[tuple[int, int, _T]] = []
        for page, following in zip_longest(pages, pages[1:]):
            if merged:
                before = bisect_left(merged, page.first)
                yield from _unzipped(merged[:before])
                del merged[:before]
            times, numbers, items = self._ordered(page)
            left = page.left
            rows = Rows(times[left:], numbers[left:], items[left:])
            if merged or (following is not None and following.first < page.last):
                merged = sorted([*merged, *zip(*rows, strict=True)], key=_key)
            else:
                yield rows
        yield from _unzipped(merged)

    def _ordered(self, page: _Page[_T]) -> Rows[_T]:
        rows = self._rows_of(page)
        if not page.in_order:
            order = sorted(zip(*rows, strict=True), key=_key)
            rows.times[:], rows.numbers[:], rows.items[:] = map(list, zip(*order, strict=True))
            page.in_order = True
        return rows

    def _rows_of(self, page: _Page[_T]) -> Rows[_T]:
        if page.rows is not None:
            if not page.changed:
                self._loaded.move_to_end(page.number)
            return page.rows
        rows = page.rows = self._load(page.number)
        self._remember(page)
        return rows

    def _remember(self, page: _Page[_T]) -> None:
        """Note that a page is in memory and may be unloaded. If too many pages are in memory, unload those whose last use was
        longest ago.
        """
        self._loaded[page.number] = page
        self._in_memory += page.size
        while self._most is not None and self._in_memory > self._most and len(self._loaded) > 1:
            oldest = next(iter(self._loaded.values()))
            self._forget(oldest)
            oldest.rows = None

    def _forget(self, page: _Page[_T]) -> None:
        if self._loaded.pop(page.number, None) is not None:
            self._in_memory -= page.size


class ItemsOfPages(Sequence[_T]):
    """The items of a window, which are read page by page while that window is executed.

    Once an item has been added to the held items, or has left them, reading raises RuntimeError.
    """

    def __init__(self, held: PagedItems[_T], count: int) -> None:
        self._held, self._count, self._version = held, count, held.version

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[_T]:
        self._check()
        return self._held.first(self._count)

    @overload
    def __getitem__(self, position: int) -> _T: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[_T, ...]: ...

    def __getitem__(self, position: int | slice) -> _T | tuple[_T, ...]:
        """Return one item, or a tuple of items for a slice. This also reads all earlier items of the window."""
        self._check()
        if isinstance(position, slice):
            wanted = range(self._count)[position]
            low, high = min(wanted, default=0), max(wanted, default=-1) + 1
            found = list(islice(self._held.first(self._count), low, high))
            return tuple(found[at - low] for at in wanted)
        at = range(self._count)[position]
        return next(islice(self._held.first(self._count), at, None))

    def _check(self) -> None:
        if self._version != self._held.version:
            msg = (
                "this window is over: with persistence, its tuples are read page by page during execute; keep those that you "
                "need"  # C41
            )
            raise RuntimeError(msg)


def _key(row: tuple[int, int, Any]) -> Key:
    return row[0], row[1]


def _unzipped(merged: list[tuple[int, int, _T]]) -> Iterator[Rows[_T]]:
    if merged:
        times, numbers, items = map(list, zip(*merged, strict=True))
        yield Rows(times, numbers, items)
