"""Redistribution: deals a bolt's state out to its tasks anew, key by key, if the number of tasks has changed (C36, D17).

A fields grouping sends a key to a task that depends on the key's hash and on the number of tasks. Users can declare that the keys
of a bolt's state are the values by which its fields groupings group (``stormspark.state.keys: grouping``). Then each key can move
to the task that will get its tuples.

**When.** State is dealt out anew in the first batch that the new tasks commit. Each task loads the keys that belong to it now.
Each worker writes one file for the batch. The file has the changes that the worker's tasks made, the keys that came to them from
other tasks, and the deletions of these keys at the other tasks. The batch's single commit has all these files and the new number
of tasks. So a crash before the commit leaves the whole old state, and a crash after it leaves the whole new state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from stormspark.checkpoint.handed_state import HandedState
from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.state_table import StateTable
from stormspark.errors import CheckpointError
from stormspark.extras import pyarrow as pa
from stormspark.grouping import FieldsGrouping
from stormspark.grouping.hashing import fields_task_index
from stormspark.plan.physical import ComponentPlan, PhysicalPlan

__all__ = ["Moved", "NotDealtOutError", "as_batch", "deal", "keys_are_of_grouping", "moves", "task_index_of"]


class NotDealtOutError(CheckpointError):
    """State can't be dealt out to another number of tasks, because of its keys. Trying again does not help."""


class Moved(NamedTuple):
    """A key of the state with its value. ``before`` is the index of the task that has had the key so far."""

    before: int
    key: bytes
    value: bytes


def keys_are_of_grouping(component: ComponentPlan) -> bool:
    """Whether the user has declared that the keys of the component's state are the values by which its groupings group."""
    return component.settings.state_keys == "grouping"


def task_index_of(key: Any, width: int, tasks: int, ints: str = "long") -> int:
    """Return the index of the task, among ``tasks`` tasks, to which a fields grouping of ``width`` fields sends ``key``.

    Raises ValueError if ``key`` can't come from such a grouping.

    >>> task_index_of("storm", 1, 4), task_index_of(("storm", 1), 2, 4)
    (0, 1)
    """
    if width == 1:
        return fields_task_index((key,), tasks, ints)
    if type(key) is not tuple or len(key) != width:
        msg = f"the key {key!r} is not a tuple of the {width} values by which its groupings group"
        raise ValueError(msg)
    return fields_task_index(key, tasks, ints)


def deal(
    plan: PhysicalPlan,
    component: ComponentPlan,
    table: StateTable | HandedState,
    as_of: int,
    mine: Collection[int],
    tasks_before: int,
) -> dict[int, list[Moved]]:
    """Return the state of ``component`` as of batch ``as_of``: the keys of each task whose index is in ``mine``, in order.

    ``tasks_before`` is the number of tasks that the component had then. Raises `NotDealtOutError`, which names the key, if a key
    can't come from the groupings, or is not with the task to which they sent it. So no task gets the same key from two tasks.
    """
    ints = plan.settings.fields_ints
    width = next(
        len(edge.grouping.key_fields)
        for edge in plan.edges
        if edge.target == component.id and isinstance(edge.grouping, FieldsGrouping)
    )
    dealt: dict[int, list[Moved]] = {index: [] for index in mine}
    for rows in table.plan_restore(component.id, None, as_of).rows():
        columns = (rows.column(name).to_pylist() for name in ("task", "key", "value"))
        for before, key, value in zip(*columns, strict=True):
            try:
                decoded = decode_key(key)
                index, was = (
                    task_index_of(decoded, width, n, ints) for n in (len(component.tasks), tasks_before)
                )
            except Exception as error:  # to unpickle a key runs any code
                msg = (
                    f"{component.place} has {len(component.tasks)} tasks now, but its state in {table.location} can't be "
                    f"dealt out to them (stormspark.state.keys: grouping): {error}. Give it as many tasks as before"
                )
                raise NotDealtOutError(msg) from error
            if was != before:
                msg = (
                    f"{component.place} has {len(component.tasks)} tasks now, but its state in {table.location} can't be "
                    f"dealt out to them (stormspark.state.keys: grouping): task {before} of {tasks_before} has the key "
                    f"{decoded!r}, but a fields grouping sends that key to task {was}. So it is not the value by which its "
                    f"groupings group, or not quite: like Storm's, a fields grouping distinguishes 0.0 and -0.0, but a state "
                    f"does not. Give it as many tasks as before"
                )
                raise NotDealtOutError(msg)
            if index in dealt:
                dealt[index].append(Moved(before, key, value))
    for moved in dealt.values():
        moved.sort(key=lambda one: one.key)
    return dealt


def as_batch(moved: Iterable[Moved]) -> pa.RecordBatch:
    """Return the keys and values as a record batch, for a store to load."""
    pairs = list(moved)
    return pa.record_batch(
        {
            "key": pa.array([one.key for one in pairs], pa.binary()),
            "value": pa.array([one.value for one in pairs], pa.binary()),
        }
    )


def moves(
    dealt: Mapping[int, Iterable[Moved]], changed: Mapping[int, Iterable[tuple[bytes, bytes | None]]]
) -> Iterator[tuple[int, dict[bytes, bytes | None]]]:
    """Yield the changes to write with the batch: for each task index, keys and values, with None for a deleted key.

    ``changed`` has each task's own changes, which override the keys that moved to the task. Some of the yielded indices may
    belong to tasks that no longer exist.

    >>> dict(moves({1: [Moved(0, b"k", b"1"), Moved(1, b"s", b"2")]}, {1: [(b"k", b"3")]}))
    {1: {b'k': b'3'}, 0: {b'k': None}}
    """
    written: defaultdict[int, dict[bytes, bytes | None]] = defaultdict(dict)
    for index, moved in dealt.items():
        written[index] |= {one.key: one.value for one in moved if one.before != index}
        written[index].update(changed.get(index, ()))
    for index, moved in dealt.items():
        for one in moved:
            if one.before != index:
                written[one.before].setdefault(one.key, None)
    yield from written.items()
