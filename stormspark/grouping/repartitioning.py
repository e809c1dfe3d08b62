"""Layouts of a whole DataFrame, as plain values. A layout says which rows Spark has to put into which task's partition.

Partition i has the rows of target task i, where tasks are counted from the lowest id. Only `Stay` has other partitions. This
module does not depend on Spark. `stormspark.spark.repartition` turns each layout into an operation of Spark. mypy checks that
`stormspark.spark.repartition` handles each class of `Repartitioning`.

>>> from stormspark.grouping import FieldsGrouping, ShuffleGrouping
>>> ShuffleGrouping().repartitioning((4, 5, 6))
RoundRobin(partitions=3)
>>> FieldsGrouping("word").repartitioning((4, 5, 6))
ById(fields=('word',), partitions=3, ints='long')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from stormspark.grouping.base import Grouping

__all__ = [
    "ByChooser",
    "ById",
    "ByTask",
    "CopyToEach",
    "Repartitioning",
    "RoundRobin",
    "SinglePartition",
    "Stay",
]


@dataclass(frozen=True)
class RoundRobin:
    """The layout that deals the rows out evenly (D5). ``partitions`` is the number of target tasks."""

    partitions: int

    def __post_init__(self) -> None:
        _check_partitions(self.partitions)


@dataclass(frozen=True)
class ById:
    """The layout that puts a row in the partition whose index is Storm's task index of the row's ``fields`` (D1).

    ``fields`` are column names in the grouping's order; ``ints`` is as in `fields_task_index`.
    """

    fields: tuple[str, ...]
    partitions: int
    ints: str = "long"

    def __post_init__(self) -> None:
        _check_partitions(self.partitions)


@dataclass(frozen=True)
class ByTask:
    """The layout in which each row names a task in its column ``column``, and goes to the partition of that task (D11).

    ``targets`` are the consumer's task ids, ascending. A row that names no such task is dropped, as in Storm (B9).
    """

    column: str
    targets: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_partitions(len(self.targets))


@dataclass(frozen=True)
class ByChooser:
    """The layout that puts a row in the partitions of the tasks that a chooser of ``grouping`` returns: one, several or none.

    This layout is for groupings whose choice depends on more than the row: on counts (D12), on chance (D8, D6) or on a user's
    code (D13). Each partition of the DataFrame acts as a sender task and has its own chooser, which gets the partition's rows in
    their order. ``targets`` are the consumer's task ids, ascending; ``ints`` is as in `fields_task_index`.
    """

    grouping: Grouping
    targets: tuple[int, ...]
    ints: str = "long"

    def __post_init__(self) -> None:
        _check_partitions(len(self.targets))


@dataclass(frozen=True)
class CopyToEach:
    """The layout that puts a copy of every row in each of ``partitions`` partitions (D9)."""

    partitions: int

    def __post_init__(self) -> None:
        _check_partitions(self.partitions)


@dataclass(frozen=True)
class SinglePartition:
    """The layout with every row in a single partition, that of the task with the lowest id.

    No other task has a partition (D10).
    """


@dataclass(frozen=True)
class Stay:
    """The layout that leaves every row in its partition, without an exchange (D7)."""


Repartitioning: TypeAlias = RoundRobin | ById | ByTask | ByChooser | CopyToEach | SinglePartition | Stay


def _check_partitions(partitions: int) -> None:
    if partitions < 1:
        msg = f"partitions must be at least 1, got {partitions!r}"
        raise ValueError(msg)
