"""Spouts whose tasks read the source themselves. Spark only hands out the ranges to read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Any

from stormspark.api.source import SourceSpout

__all__ = ["RangeSpout"]


class RangeSpout(SourceSpout):
    """A source spout whose tasks read ranges of the source, such as ranges of Kafka's offsets, in their workers.

    So the data does not pass through Spark, and a range that waits takes little memory, however many rows it has.
    """

    @abstractmethod
    def read(
        self, range: tuple[Any, ...], limit: int
    ) -> tuple[list[tuple[Hashable, tuple[Any, ...]]], tuple[Any, ...] | None]:
        """Return the first rows of a range, and the rest of the range. There are at most ``limit`` rows, each as (message id,
        columns).

        The rest is None if nothing is left. If no rows are available now, the result is no rows and the same range, and the task
        tries again later. The method returns within about 50 ms even if no data comes.
        """

    @abstractmethod
    def size(self, range: tuple[Any, ...]) -> int:
        """Return how many rows a range stands for, at most."""

    @abstractmethod
    def partition_of(self, range: tuple[Any, ...]) -> Hashable:
        """Return the partition of a range. The ranges of one partition are read one after another."""
