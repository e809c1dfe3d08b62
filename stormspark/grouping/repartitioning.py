"""The Spark side of a grouping, as plain values: the layout of a whole DataFrame for the consumer's tasks.

Partition i is target task i, counted from the lowest task id. This module does not depend on Spark.
`stormspark.spark.repartition` turns each value into an operation of Spark, and mypy checks that it has a case for each class of
`Repartitioning`.

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
    """A layout in which the rows are dealt out evenly (D5). ``partitions`` is the number of target tasks."""

    partitions: int

    def __post_init__(self) -> None:
        _check_partitions(self.partitions)


@dataclass(frozen=True)
class ById:
    """A layout in which the values of a row's ``fields`` decide its partition: the task that Storm would choose (D1).

    ``fields`` are column names in the grouping's order; ``ints`` is as in `fields_task_index`.
    """

    fields: tuple[str, ...]
    partitions: int
    ints: str = "long"

    def __post_init__(self) -> None:
        _check_partitions(self.partitions)


@dataclass(frozen=True)
class ByTask:
    """A layout in which each row is in the partition of the task that its column ``column`` names (D11).

    ``targets`` are the consumer's task ids, ascending. A row that names no such task is dropped, as in Storm (B9).
    """

    column: str
    targets: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_partitions(len(self.targets))


@dataclass(frozen=True)
class ByChooser:
    """A layout in which a chooser of ``grouping`` names the tasks whose partitions get a row: one, several or none.

    Groupings use it if they depend on more than the row: on counts (D12), on chance (D8, D6) or on a user's code (D13). Each
    partition of the DataFrame acts as a sender task. It has its own chooser, which sees the partition's rows in their
    order. ``targets`` are the consumer's task ids, ascending; ``ints`` is as in `fields_task_index`.
    """

    grouping: Grouping
    targets: tuple[int, ...]
    ints: str = "long"

    def __post_init__(self) -> None:
        _check_partitions(len(self.targets))


@dataclass(frozen=True)
class CopyToEach:
    """A layout in which each of ``partitions`` partitions has a copy of every row (D9)."""

    partitions: int

    def __post_init__(self) -> None:
        _check_partitions(self.partitions)


@dataclass(frozen=True)
class SinglePartition:
    """A layout in which a single partition, that of the lowest task, has every row. The other tasks have no partition (D10)."""


@dataclass(frozen=True)
class Stay:
    """A layout in which every row stays where it is, without an exchange (D7)."""


Repartitioning: TypeAlias = RoundRobin | ById | ByTask | ByChooser | CopyToEach | SinglePartition | Stay


def _check_partitions(partitions: int) -> None:
    if partitions < 1:
        msg = f"partitions must be at least 1, got {partitions!r}"
        raise ValueError(msg)
