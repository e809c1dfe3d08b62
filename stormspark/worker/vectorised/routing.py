"""Routes, which are groupings for whole record batches (D1-D13).

Each row goes to the tasks to which the tuple path would send it. Global and all groupings pass on whole record batches. A fields
grouping computes the same hashes as for tuples, but for whole columns. A shuffle goes on with the task whose turn it is. The
chooser of any other grouping is called row by row. It gets the row's values if its choice may depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stormspark.errors import EmitError, ValueNotHashableError
from stormspark.extras import pyarrow as pa
from stormspark.grouping import (
    AllGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    GroupingContext,
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    ShuffleGrouping,
)
from stormspark.grouping.columns import task_indices
from stormspark.wire.column_hashes import column_hashes
from stormspark.worker.vectorised.rows import rows_of

__all__ = ["Route", "Share", "make_route"]

#: A task, and the positions of the rows that it gets, in ascending order. None stands for all rows.
Share: TypeAlias = tuple[int, NDArray[np.intp] | None]
#: A function that takes a record batch and returns its shares. No task has more than one share.
Route: TypeAlias = "Callable[[pa.RecordBatch], list[Share]]"

#: Groupings whose chooser is called row by row, although its choice does not depend on the values.
_BLIND = (LoadAwareShuffleGrouping, LocalFirstGrouping, NoneGrouping)


def make_route(grouping: Grouping, choose: Callable[[Sequence[Any]], Any], context: GroupingContext) -> Route:
    """Make the route of one sender for one subscription. ``choose`` is the chooser of the same sender and subscription."""
    targets = context.targets
    if type(grouping) is GlobalGrouping or (type(grouping) is FieldsGrouping and not grouping.fields):
        return lambda _batch: [(targets[0], None)]
    if type(grouping) is AllGrouping:
        return lambda _batch: [(task, None) for task in targets]
    if type(grouping) is FieldsGrouping:
        return _by_key(grouping, context)
    if type(grouping) in (ShuffleGrouping, LocalOrShuffleGrouping):
        return _in_turn(choose, len(grouping.candidates(targets, context.local_targets)))
    return _row_by_row(choose, single=grouping.single, blind=isinstance(grouping, _BLIND), context=context)


def _by_key(grouping: FieldsGrouping, context: GroupingContext) -> Route:
    targets, ints = context.targets, context.ints
    columns = [context.fields.index(name) for name in grouping.fields]

    def route(batch: pa.RecordBatch) -> list[Share]:
        if len(targets) == 1 and all(_always_has_hash(batch.column(at).type) for at in columns):
            return [(targets[0], None)]
        hashes = []
        for at in columns:
            try:
                hashes.append(column_hashes(batch.column(at), ints))
            except ValueNotHashableError as error:
                place = f"field {context.fields[at]!r} of stream {context.stream!r} of {context.source!r}"
                msg = f"{place}: {error}"
                raise ValueNotHashableError(msg) from None
        if len(targets) == 1:
            return [(targets[0], None)]
        return _shares(task_indices(hashes, len(targets)), targets)

    return route


def _always_has_hash(kind: pa.DataType) -> bool:
    """Return whether every value of the type can be a key (D2)."""
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_floating(kind)
    )


def _in_turn(choose: Callable[[Sequence[Any]], int], number: int) -> Route:
    # Choose each task once, so that the chooser's next task is the first again.
    turn = [choose(()) for _ in range(number)]
    if number == 1:
        return lambda _batch: [(turn[0], None)]
    done = 0

    def route(batch: pa.RecordBatch) -> list[Share]:
        nonlocal done
        rows, first = batch.num_rows, done
        done = (done + rows) % number
        shares: list[Share] = []
        for place in range(min(number, rows)):
            shares.append((turn[(first + place) % number], np.arange(place, rows, number)))
        return shares

    return route


def _row_by_row(
    choose: Callable[[Sequence[Any]], Any], *, single: bool, blind: bool, context: GroupingContext
) -> Route:
    targets = context.targets
    number_of = {task: number for number, task in enumerate(targets)}

    def route(batch: pa.RecordBatch) -> list[Share]:
        values = [()] * batch.num_rows if blind else rows_of(batch)
        chosen = [choose(row) for row in values]
        try:
            if single:
                return _shares(np.array([number_of[task] for task in chosen], np.int32), targets)
            copies = [(number_of[task], row) for row, tasks in enumerate(chosen) for task in tasks]
        except KeyError as error:
            msg = (
                f"component {context.source!r}, task {context.sender}, stream {context.stream!r}: the grouping chose task "
                f"{error}; it must be one of {sorted(targets)}"
            )
            raise EmitError(msg) from None
        if not copies:
            return []
        tasks, rows = np.array(copies, np.intp).T
        return [
            (task, rows[tasks == number]) for number, task in enumerate(targets) if (tasks == number).any()
        ]

    return route


def _shares(numbers: NDArray[np.int32], targets: tuple[int, ...]) -> list[Share]:
    """Make the shares of the targets. ``numbers``: for each row, the index of its target in ``targets``."""
    if not len(numbers):
        return []
    counts = np.bincount(numbers, minlength=len(targets))
    there = np.flatnonzero(counts).tolist()
    if len(there) == 1:
        return [(targets[there[0]], None)]
    # NumPy sorts small integers by radix. The sort is stable, so rows stay in order within a task (E31).
    small = numbers.astype(np.int16) if len(targets) < 2**15 else numbers
    rows = np.argsort(small, kind="stable")
    ends = np.cumsum(counts).tolist()
    return [(targets[number], rows[ends[number] - counts[number] : ends[number]]) for number in there]
