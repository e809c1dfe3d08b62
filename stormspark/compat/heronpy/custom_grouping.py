"""heronpy's custom groupings (D13)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

__all__ = ["ICustomGrouping"]


class ICustomGrouping:
    """The base class of custom groupings. Pass one to ``Grouping.custom``, as an object or as ``"module.Class"``.

    >>> class First(ICustomGrouping):
    ...     def prepare(self, context, component, stream, target_tasks):
    ...         self.first = target_tasks[0]
    ...     def choose_tasks(self, values):
    ...         return [self.first]
    """

    @abstractmethod
    def prepare(self, context: Any, component: str, stream: str, target_tasks: list[int]) -> None:
        """Prepare for the tuples of this ``component`` and ``stream``. Called before the first tuple."""

    @abstractmethod
    def choose_tasks(self, values: Sequence[Any]) -> list[int]:
        """Return the ids of those target tasks that get the tuple."""
        raise NotImplementedError
