"""Counts how often a row of a source has failed. A row that fails in each attempt at its batch is given up in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from stormspark.worker.sources.rows import comparable

__all__ = ["FailedRows"]


class FailedRows:
    """The rows of sources that failed in attempts at the current batch, and how often each has failed.

    A row is given up after ``most`` failed attempts at its batch. If ``most`` is 0, no row is given up.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._batch = -1
        self._attempts: Counter[tuple[int, Hashable]] = Counter()

    def add(self, batch: int, rows: Mapping[int, Iterable[Hashable]]) -> None:
        """Count the rows that failed in an attempt at ``batch``. ``rows`` has these rows for each task."""
        if batch != self._batch:
            self._batch = batch
            self._attempts.clear()
        self._attempts.update((task, comparable(row)) for task, of_task in rows.items() for row in of_task)

    def forget(self, committed: int) -> None:
        """Drop the rows of batch ``committed`` and of earlier batches, because these rows don't come again.

        >>> rows = FailedRows(1)
        >>> rows.add(7, {3: ["a"]}); rows.forget(7); rows.given_up(7)
        {}
        """
        if self._batch <= committed:
            self._attempts.clear()

    def given_up(self, batch: int) -> Mapping[int, tuple[Hashable, ...]]:
        """Return, for each task, those of its rows of ``batch`` that are not emitted any more.

        >>> rows = FailedRows(2)
        >>> rows.add(7, {3: ["a", "b"]}); rows.add(7, {3: ["b"]}); rows.given_up(7), rows.given_up(8)
        ({3: ('b',)}, {})
        """
        given_up: dict[int, tuple[Hashable, ...]] = {}
        if batch == self._batch and self._most:
            for (task, row), attempts in self._attempts.items():
                if attempts >= self._most:
                    given_up[task] = (*given_up.get(task, ()), row)
        return given_up
