"""The windows of a windowed bolt's task, as state. Windows are stored as state if batches are transactions (C41).

The windows have a key-value store of their own, in addition to the store of the bolt's own state. In the state table, the rows
of this store have the kind ``window``. The keys of this store are:

    n            page n of the tuples, pickled whole: their origins, their times, their values
    "progress"   how far the windows are: which tuples have left, the next window's end, watermarks, when the timer is due

Each batch writes the page that is being filled and the pages that were begun in the batch. It deletes pages that have no tuple
left, and writes the progress if that has changed. A tuple's origin is stored with the index of the task that emitted the tuple,
because the ids of tasks change when other components are added or removed (A18).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import cloudpickle

from stormspark.api import Fields, TopologyContext, Tuple, TupleSource
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.errors import CheckpointError, SerializationError
from stormspark.windowing import PagedItems, Rows

__all__ = ["WindowState"]

_PROGRESS: Final = "progress"
#: Once a page has this many bytes, a new page begins. Pages are small, because each batch writes the whole page that is being
#: filled.
_PAGE_BYTES: Final = 32 << 10


class _Source(NamedTuple):
    """The origin of a tuple, which is a stream of a task. The task is named by its index."""

    component: str
    stream: str
    task: int
    fields: tuple[str, ...]


class WindowState:
    """The stored windows of one task, for one instance of its bolt. ``store`` is the store of the windows.

    Error messages call the task ``name``. ``abort`` aborts the batch for the given reason.
    """

    def __init__(self, store: KeyValueStore, name: str, abort: Callable[[str], None]) -> None:
        self.abort = abort
        self._store, self._name = store, name
        self._sources: dict[_Source, TupleSource] = {}
        self._known: dict[TupleSource, _Source] = {}
        self._progress: Mapping[str, Any] | None = store.get(_PROGRESS)

    def begin(self, context: TopologyContext) -> None:
        """Set the ``context``, which knows the tasks that tuples come from."""
        self._context = context

    @property
    def progress(self) -> Mapping[str, Any] | None:
        """How far the windows were when they were last saved; None if they were never saved."""
        return self._progress

    def load(self, number: int) -> Rows[Tuple]:
        """Return the rows of a page. Raises `CheckpointError` if they can't be read."""
        return self._unpickled(self._store[number])

    def restore(self, items: PagedItems[Tuple]) -> None:
        """Give all pages to ``items``. Raises `CheckpointError` if they can't be read."""
        for number, page in self._store.iterate():
            if number != _PROGRESS:
                items.hold(number, self._unpickled(page))

    def save(self, items: PagedItems[Tuple], progress: Mapping[str, Any]) -> None:
        """Put the changes into the store. If a tuple can't be pickled, raises a `SerializationError` that names the tuple."""
        pages, gone = items.changes()
        for number, rows in pages:
            page = self._pickled(rows)
            self._store.put(number, page)
            if len(page) >= _PAGE_BYTES:
                items.close(number)
        for number in gone:
            self._store.delete(number)
        if progress != self._progress:
            self._store.put(_PROGRESS, progress)
            self._progress = progress

    # --------------------------------------------------------------------------------------------------------

    def _pickled(self, rows: Rows[Tuple]) -> bytes:
        sources: dict[_Source, int] = {}
        places = [sources.setdefault(self._described(tup._source), len(sources)) for tup in rows.items]
        values = [tup.values for tup in rows.items]
        page = [tuple(one) for one in sources], places, rows.times, rows.numbers, values
        try:
            return pickle.dumps(page, 5)
        except Exception:  # pickle finds no class that was defined in a notebook or a script
            try:
                return bytes(cloudpickle.dumps(page, 5))
            except Exception as error:
                raise self._unpicklable(rows, error) from error

    def _unpicklable(self, rows: Rows[Tuple], error: Exception) -> SerializationError:
        culprit = next((tup for tup in rows.items if not _can_pickle(tup.values)), None)
        shown = "a tuple of its windows" if culprit is None else f"{culprit!r:.300}"
        msg = (
            f"{self._name}: its windows are state, since batches are transactions, and {shown} can't be pickled: {error}; "
            f"emit plain data"
        )
        return SerializationError(msg)

    def _unpickled(self, page: bytes) -> Rows[Tuple]:
        try:
            described, places, times, numbers, values = pickle.loads(page)
        except Exception as error:
            msg = (
                f"{self._name}: the content of its windows can't be read: {type(error).__name__}: {error}; the classes of "
                f"values must be in the modules in which they were before"
            )
            raise CheckpointError(msg) from error
        sources = [self._source(_Source(*one)) for one in described]
        return Rows(
            times,
            numbers,
            [Tuple(of_one, sources[place]) for place, of_one in zip(places, values, strict=True)],
        )

    def _described(self, source: TupleSource) -> _Source:
        found = self._known.get(source)
        if found is None:
            tasks = self._context.component_tasks(source.component)
            index = tasks.index(source.task)
            found = self._known[source] = _Source(
                source.component, source.stream, index, tuple(source.fields)
            )
            self._sources.setdefault(found, source)
        return found

    def _source(self, described: _Source) -> TupleSource:
        found = self._sources.get(described)
        if found is None:
            component, stream, index, fields = described
            known = component in self._context.component_ids
            tasks = self._context.component_tasks(component) if known else []
            task = tasks[index] if index < len(tasks) else -1  # the task does not exist any more
            found = self._sources[described] = TupleSource(component, task, stream, Fields(fields))
            self._known[found] = described
        return found


def _can_pickle(values: tuple[Any, ...]) -> bool:
    try:
        cloudpickle.dumps(values, 5)
    except Exception:
        return False
    return True
