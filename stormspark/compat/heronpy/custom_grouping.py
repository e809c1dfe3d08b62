"""Groupings of users' own (D13)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

__all__ = ["ICustomGrouping"]


class ICustomGrouping:
    """A rule of your own, given to ``Grouping.custom`` as an object or as ``"module.Class"``.

    >>> class First(ICustomGrouping):
    ...     def prepare(self, context, component, stream, target_tasks):
    ...         self.first = target_tasks[0]
    ...     def choose_tasks(self, values):
    ...         return [self.first]
    """

    @abstractmethod
    def prepare(self, context: Any, component: str, stream: str, target_tasks: list[int]) -> None:
        """Called before the first tuple; ``component`` and ``stream`` say whose tuples they are."""

    @abstractmethod
    def choose_tasks(self, values: Sequence[Any]) -> list[int]:
        """The ids of the tasks that get the tuple, out of the target tasks."""
        raise NotImplementedError
