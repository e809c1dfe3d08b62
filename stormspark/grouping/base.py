"""What a grouping is, and what a sender task knows when it prepares one (D1-D15)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from stormspark.grouping.repartitioning import Repartitioning

__all__ = ["Grouping", "GroupingContext"]


@dataclass(frozen=True)
class GroupingContext:
    """What one sender task knows of one subscription to its stream: Storm's arguments of ``prepare`` (D13).

    ``source`` and ``stream`` name the stream, ``fields`` are its declared field names in order, ``sender`` is
    the sending task. ``targets`` are the consumer's tasks, and ``local_targets`` those of them that live in
    the sender's worker, both ascending. ``random`` is the only source of randomness: seed it, and every
    choice can be repeated. ``ints`` says which Java types numbers have for the fields hash (D3), as in
    `fields_task_index`.

    Raises `ValueError` where ``targets`` is empty or not ascending, or ``local_targets`` is not an ascending
    part of it.

    >>> GroupingContext("split", "default", ("word",), 3, targets=(), local_targets=(), random=Random(1))
    Traceback (most recent call last):
    ...
    ValueError: targets must be at least one task id, ascending, got ()
    """

    source: str
    stream: str
    fields: tuple[str, ...]
    sender: int
    targets: tuple[int, ...]
    local_targets: tuple[int, ...]
    random: Random
    ints: str = "long"

    def __post_init__(self) -> None:
        if not self.targets or list(self.targets) != sorted(set(self.targets)):
            msg = f"targets must be at least one task id, ascending, got {self.targets!r}"
            raise ValueError(msg)
        if list(self.local_targets) != sorted(set(self.local_targets) & set(self.targets)):
            msg = f"local_targets must be some of {self.targets!r}, ascending, got {self.local_targets!r}"
            raise ValueError(msg)


class Grouping(ABC):
    """One rule that says which tasks of a consumer get a tuple.

    Subclasses are frozen dataclasses: values that can be pickled, compared, hashed and printed. What changes
    from tuple to tuple (a position, counts, loads) lives in the chooser, which belongs to one sender task
    (D5, D12).

    The contract holds for Storm's other groupings too. One that picks many tasks or none (custom, D13) has
    ``single`` False. One that counts what it sent (partial key, D12) counts in its closure. One that follows
    load (D6) returns a callable object that can also be told the load. A direct grouping (D11) chooses
    nothing: the producer names the task, which is checked against `candidates` (B9).
    """

    #: The name of the rule, in `describe`, in plans and in metrics.
    kind: ClassVar[str]
    #: True: each tuple goes to exactly one task, and a chooser returns its id. False: it returns a sequence
    #: of ids.
    single: ClassVar[bool]

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields whose values alone decide the task; () where the grouping has no key."""
        return ()

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """The tasks that one sender may ever choose, ascending; an edge crosses workers only to reach these.

        ``targets`` and ``local_targets`` are as in `GroupingContext`.
        """
        return targets

    @abstractmethod
    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], Any]:
        """Return the function from a tuple's values to its task id (``single``) or its sequence of task ids.

        The function belongs to one sender task, is called once a tuple, and may remember what it did.
        """

    @abstractmethod
    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> Repartitioning:
        """Return what puts the rows for ``targets[i]`` in partition i, for a DataFrame that takes this edge.

        ``targets`` are the consumer's task ids, ascending; ``ints`` is as in `fields_task_index`.
        """

    def describe(self) -> str:
        """The grouping as ``stormspark explain`` shows it: ``shuffle``, ``fields(word)``."""
        return self.kind
