"""The base class of groupings, and the context in which a sender task prepares a grouping (D1-D17)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Protocol, runtime_checkable

from stormspark.grouping.repartitioning import Repartitioning
from stormspark.waiting_code import waiting

__all__ = ["Grouping", "GroupingContext", "LoadFollower"]


@dataclass(frozen=True)
class GroupingContext:
    """Everything that a chooser knows of its sender task and of the subscription: the arguments of ``prepare`` in Storm (D13).

    ``source`` and ``stream`` name the stream, ``fields`` are its declared field names in order, and ``sender`` is the sending
    task. ``targets`` are the consumer's tasks, and ``local_targets`` are the targets in the sender's worker; both are ascending.
    ``random`` is the only source of randomness. If it is seeded, every choice can be repeated. ``ints`` says which Java types
    numbers have when a key is hashed (D3), as in `fields_task_index`. ``consumer`` is the subscribing component. ``tasks`` are
    the task ids of every component, and ``conf`` is the topology's configuration; both are empty when a grouping lays out a
    DataFrame (`Grouping.repartitioning`). ``higher_bound`` and ``lower_bound`` are mean loads of the local targets. Above the
    higher bound a grouping that follows load also uses the other targets. Below the lower bound it uses only the local ones again
    (D6).

    Raises `ValueError` if ``targets`` is empty or not ascending, or if ``local_targets`` is not an ascending part of
    ``targets``.

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
    """A chooser that receives the loads of tasks. If a grouping follows load, all its choosers are of this kind (D6)."""

    def refresh_load(self, loads: Mapping[int, float]) -> None:
        """Store the loads by task id, from 0 (nothing waits) to 1 (the queue is full); a missing task has load 0."""


class Grouping(ABC):
    """A rule that decides which tasks of a consumer receive a tuple.

    Subclasses are frozen dataclasses: values that can be pickled, compared, hashed and printed. The state that changes
    from tuple to tuple (a position, counts, loads) is in the chooser, which belongs to one sender task (D5, D12).

    A grouping that may choose many tasks or none, like a custom one (D13), has ``single`` False. A grouping *follows load* if its
    choices depend on how full the queues of the target tasks are (D6); its chooser is a `LoadFollower`. A direct grouping (D11)
    chooses nothing: the producer names the task, and the outlet checks that the task's component subscribes by a direct grouping
    (B9).
    """

    #: The name of the rule, in `describe`, in plans and in metrics.
    kind: ClassVar[str]
    #: If true, each tuple goes to exactly one task, and a chooser returns its id. Otherwise it returns a sequence of ids.
    single: ClassVar[bool]

    @property
    def key_fields(self) -> tuple[str, ...]:
        """The fields whose values alone decide the task; () if the grouping has no key."""
        return ()

    @property
    def waiting(self) -> tuple[str, str]:
        """Why the code that chooses may wait, and what it uses that is known to wait (`stormspark.waiting_code`); "" if it only
        computes.
        """
        return waiting(self)

    @property
    def follows_load(self) -> bool:
        """Whether the grouping's choosers are `LoadFollower`s. If so, workers send each other the loads of their tasks."""
        return False

    def candidates(self, targets: tuple[int, ...], local_targets: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tasks that a sender may choose, ascending.

        The plan needs an exchange only if some of these tasks are in another worker than the sender. ``targets`` and
        ``local_targets`` are as in `GroupingContext`.
        """
        return targets

    @abstractmethod
    def chooser(self, context: GroupingContext) -> Callable[[Sequence[Any]], Any]:
        """Return the function that takes a tuple's values, and returns a task id (``single``) or a sequence of task ids.

        The function belongs to one sender task, is called once per tuple, and may keep state between calls.
        """

    @abstractmethod
    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> Repartitioning:
        """Return how this grouping lays out a DataFrame: the rows for ``targets[i]`` are in partition i.

        ``targets`` are the consumer's task ids, ascending; ``ints`` is as in `fields_task_index`.
        """

    def describe(self) -> str:
        """Return the grouping as ``stormspark explain`` shows it, for example ``shuffle`` or ``fields(word)``."""
        return self.kind
