"""What a grouping is, and what a sender task knows when it prepares one (D1-D17)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Protocol, runtime_checkable

from stormspark.grouping.repartitioning import Repartitioning

__all__ = ["Grouping", "GroupingContext", "LoadFollower"]


@dataclass(frozen=True)
class GroupingContext:
    """What one sender task knows of one subscription to its stream: Storm's arguments of ``prepare`` (D13).

    ``source`` and ``stream`` name the stream, ``fields`` are its declared field names in order, ``sender`` is
    the sending task. ``targets`` are the consumer's tasks, and ``local_targets`` those of them that live in
    the sender's worker, both ascending. ``random`` is the only source of randomness: seed it, and every
    choice can be repeated. ``ints`` says which Java types numbers have for the fields hash (D3), as in
    `fields_task_index`. ``consumer`` is the subscribing component. ``tasks`` are the task ids of every
    component, and ``conf`` is the topology's configuration; where a DataFrame is laid out there is neither.
    ``higher_bound`` and ``lower_bound`` are the mean loads of the local targets at which a grouping that
    follows load leaves them and comes back (D6).

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
    consumer: str = ""
    tasks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    conf: Mapping[str, Any] = field(default_factory=dict)
    higher_bound: float = 0.8
    lower_bound: float = 0.2

    def __post_init__(self) -> None:
        if not self.targets or list(self.targets) != sorted(set(self.targets)):
            msg = f"targets must be at least one task id, ascending, got {self.targets!r}"
            raise ValueError(msg)
        if list(self.local_targets) != sorted(set(self.local_targets) & set(self.targets)):
            msg = f"local_targets must be some of {self.targets!r}, ascending, got {self.local_targets!r}"
            raise ValueError(msg)


@runtime_checkable
class LoadFollower(Protocol):
    """A chooser that can be told how loaded the tasks are; so every chooser of a grouping that follows load (D6)."""

    def refresh_load(self, loads: Mapping[int, float]) -> None:
        """Take in the loads: by task id, from 0 (nothing waits) to 1 (its queue is full); one that is missing is 0."""


class Grouping(ABC):
    """One rule that says which tasks of a consumer get a tuple.

    Subclasses are frozen dataclasses: values that can be pickled, compared, hashed and printed. What changes
    from tuple to tuple (a position, counts, loads) lives in the chooser, which belongs to one sender task
    (D5, D12).

    One that picks many tasks or none (custom, D13) has ``single`` False. One that counts what it sent
    (partial key, D12) counts in its closure. The chooser of one that follows load (D6) is a `LoadFollower`. A
    direct grouping (D11) chooses nothing: the producer names the task, which is checked against `candidates`
    (B9).
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

    @property
    def follows_load(self) -> bool:
        """Whether its choosers are `LoadFollower`: then workers tell each other how loaded their tasks are."""
        return False

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
