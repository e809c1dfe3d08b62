"""Direct grouping: the producer names the task (D11)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from stormspark.errors import EmitError
from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import ByTask

__all__ = ["DirectGrouping"]


@dataclass(frozen=True)
class DirectGrouping(Grouping):
    """The grouping that sends a tuple to the task that the producer names in ``emit_direct``, on direct streams (D11, B9).

    >>> DirectGrouping().describe()
    'direct'
    """

    kind: ClassVar[str] = "direct"
    single: ClassVar[bool] = True

    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], int]:
        """Return a function that raises `EmitError`: a plain emit is a mistake, since there is nothing to choose (B9)."""

        def refuse(values: Sequence[Any]) -> int:
            msg = (
                f"Cannot do regular emit to direct stream {context.stream!r} of {context.source!r}: "
                f"use emit_direct(task, values), with one of the tasks {list(context.targets)}"
            )
            raise EmitError(msg)

        return refuse

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByTask:
        """Return a layout that puts each row in the partition of the task that its column ``task`` names."""
        return ByTask("task", targets)
