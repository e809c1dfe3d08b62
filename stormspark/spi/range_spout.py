"""Spouts whose tasks read the source themselves: Spark only hands out which ranges of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Any

from stormspark.api.source import SourceSpout

__all__ = ["RangeSpout"]


class RangeSpout(SourceSpout):
    """A source spout whose rows are ranges, which its tasks read themselves, in their workers: Kafka's
    offsets.

    So what is read crosses neither Spark nor a process, and what waits to be read is two numbers.
    """

    @abstractmethod
    def read(
        self, range: tuple[Any, ...], limit: int
    ) -> tuple[list[tuple[Hashable, tuple[Any, ...]]], tuple[Any, ...] | None]:
        """The first rows of a range, each as (message id, columns), at most ``limit``, and what is left of
        it; None: nothing.

        No rows and the same range mean that nothing could be had now, and the task asks again later. Returns
        within some 50 ms where nothing comes.
        """

    @abstractmethod
    def size(self, range: tuple[Any, ...]) -> int:
        """How many rows a range stands for, at most."""

    @abstractmethod
    def partition_of(self, range: tuple[Any, ...]) -> Hashable:
        """The partition that a range is of: ranges of one partition are read one after another."""
