"""Custom grouping: the user's own rule chooses the tasks (D13)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import cloudpickle

from stormspark.coroutines import problem_with_coroutine
from stormspark.errors import ComponentError, EmitError, InvalidTopologyError, SerializationError
from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.repartitioning import ByChooser
from stormspark.grouping.streams import GlobalStreamId
from stormspark.pickling import unpickled
from stormspark.waiting_code import WaitsValueError, waiting

__all__ = ["CustomChooser", "CustomGrouping", "CustomStreamGrouping"]

#: The methods that stormspark calls.
_CALLED = ("prepare", "choose_tasks", "refresh_load")


class CustomStreamGrouping(ABC):
    """The base class of a rule of your own, for ``custom_grouping`` (D13).

    Every sender task works with its own copy of the object that ``custom_grouping`` got. If the object also has a method
    ``refresh_load(loads)``, the worker calls it at the beginning of each superstep with the loads of the target
    tasks: by task id, from 0 (nothing waits) to 1 (the queue is full). A missing task has load 0. If the executor that emits has
    a thread of its own, the thread calls it with the newest loads before the next ``choose_tasks``.

    >>> class EvenAndOdd(CustomStreamGrouping):
    ...     def prepare(self, context, stream, target_tasks):
    ...         self.tasks = target_tasks
    ...     def choose_tasks(self, task, values):
    ...         return [self.tasks[values[0] % len(self.tasks)]]
    >>> from random import Random
    >>> context = GroupingContext("numbers", "default", ("n",), 1, (4, 5), (), Random(7))
    >>> choose = CustomGrouping(EvenAndOdd()).chooser(context)
    >>> choose((6,)), choose((7,))
    ([4], [5])
    """

    def prepare(  # noqa: B027 - a grouping may need no preparation
        self, context: GroupingContext, stream: GlobalStreamId, target_tasks: list[int]
    ) -> None:
        """Called once before the first tuple. ``target_tasks`` are the consumer's task ids, ascending."""

    @abstractmethod
    def choose_tasks(self, task: int, values: Sequence[Any]) -> list[int]:
        """Return the ids of the target tasks that receive the tuple: one, many or none.

        ``task`` is the id of the sender. A task whose id occurs twice receives two copies.
        """


@dataclass(frozen=True, init=False)
class CustomGrouping(Grouping):
    """The grouping that sends each tuple to the tasks that a `CustomStreamGrouping` returns: many, one or none (D13).

    ``grouping`` is pickled at once, as components are (A3). It can be any object with ``prepare`` and ``choose_tasks``. A chooser
    raises `EmitError` if ``choose_tasks`` raises or returns anything but a list of target ids. Then no copy of the tuple is sent.

    Raises `InvalidTopologyError` for a class, or for an object without these methods or with coroutines in their place. Raises
    `SerializationError` for an object that can't be pickled. `chooser` raises `ComponentError` if ``prepare`` raises.
    """

    kind: ClassVar[str] = "custom"
    single: ClassVar[bool] = False
    name: str
    pickled: bytes = field(repr=False)
    load_aware: bool
    _waiting: tuple[str, str] = field(repr=False, compare=False)

    def __init__(self, grouping: CustomStreamGrouping) -> None:
        name = type(grouping).__qualname__
        if isinstance(grouping, type):
            name = grouping.__qualname__
            msg = f"a custom grouping takes an object, got the class {name}: did you forget the brackets, {name}()?"
            raise InvalidTopologyError(msg)
        for method in ("prepare", "choose_tasks"):
            if not callable(getattr(grouping, method, None)):
                msg = (
                    f"a custom grouping needs the methods prepare(context, stream, target_tasks) and choose_tasks(task, values), "
                    f"but {grouping!r} of type {name} has no {method}; derive it from CustomStreamGrouping"
                )
                raise InvalidTopologyError(msg)
        problem = problem_with_coroutine(grouping, _CALLED)
        if problem is not None:
            msg = f"the custom grouping {name}: {problem}"
            raise InvalidTopologyError(msg)
        try:
            pickled: bytes = cloudpickle.dumps(grouping)
        except Exception as error:
            msg = f"the custom grouping {name} can't be pickled: {error}. Create what it needs in prepare()"
            raise SerializationError(msg) from error
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "pickled", pickled)
        object.__setattr__(self, "load_aware", callable(getattr(grouping, "refresh_load", None)))
        try:
            object.__setattr__(self, "_waiting", waiting(grouping))
        except WaitsValueError as error:
            msg = f"the custom grouping {name}: {error}"
            raise InvalidTopologyError(msg) from error

    @property
    def waiting(self) -> tuple[str, str]:
        """See `Grouping.waiting`."""
        return self._waiting

    @property
    def follows_load(self) -> bool:
        """Whether the user's object has a ``refresh_load``."""
        return self.load_aware

    def chooser(self, context: GroupingContext) -> CustomChooser:
        """Return a function that calls a copy of the user's object, and checks its results."""
        choose = (_LoadAwareCustom if self.load_aware else CustomChooser)(self, context)
        choose.prepare()
        return choose

    def unprepared_chooser(self, context: GroupingContext) -> CustomChooser:
        """Return a chooser whose `CustomChooser.prepare` the caller calls, on the thread that will choose.

        All methods of the user's object are called on that thread.
        """
        return (_LoadAwareOnThread if self.load_aware else CustomChooser)(self, context)

    def repartitioning(self, targets: tuple[int, ...], ints: str = "long") -> ByChooser:
        """Return a layout for which a copy of the user's object is called for each row."""
        return ByChooser(self, targets, ints)

    def describe(self) -> str:
        """Return ``custom(EvenAndOdd)``, with the name of the user's class."""
        return f"custom({self.name})"


class CustomChooser:
    """The chooser of one sender: a copy of the user's object, whose results are checked."""

    def __init__(self, grouping: CustomGrouping, context: GroupingContext) -> None:
        self._place = (
            f"custom grouping {grouping.name} from component {context.source!r}, task {context.sender}, stream "
            f"{context.stream!r} to {context.consumer!r}"
        )
        self._targets = context.targets
        self._allowed = frozenset(context.targets)
        self._sender = context.sender
        self._pickled, self._context = grouping.pickled, context
        #: The prepared copy of the user's object.
        self._user: Any = None

    def prepare(self) -> None:
        """Make the copy of the user's object and prepare it; raises `ComponentError` if that fails."""
        context = self._context
        try:
            user = unpickled(self._pickled)
            user.prepare(context, GlobalStreamId(context.source, context.stream), list(context.targets))
            self._user = user
        except Exception as error:
            msg = f"{self._place}: prepare raised {type(error).__name__}: {error}"
            raise ComponentError(msg) from error

    def __call__(self, values: Sequence[Any]) -> Sequence[int]:
        """Return the tasks that the user's object chooses; raise `EmitError` if it raises or chooses no targets."""
        try:
            tasks = self._user.choose_tasks(self._sender, values)
        except Exception as error:
            msg = f"{self._place}: choose_tasks raised {type(error).__name__}: {error}; nothing was sent of {values!r}"
            raise EmitError(msg) from error
        if isinstance(tasks, list | tuple):
            for task in tasks:
                if type(task) is not int or task not in self._allowed:
                    break
            else:
                return tasks
        raise EmitError(self._refused(tasks, values))

    def _refused(self, tasks: Any, values: Sequence[Any]) -> str:
        if isinstance(tasks, list | tuple):
            wrong = [task for task in tasks if type(task) is not int or task not in self._allowed]
            got = f"{tasks!r}; not one of them: " + ", ".join(
                f"{one!r} of type {type(one).__name__}" for one in wrong
            )
        else:
            got = f"{tasks!r} of type {type(tasks).__name__}"
        return (
            f"{self._place}: choose_tasks must return a list of ids of its target tasks {list(self._targets)}, [] for none, "
            f"got {got}; nothing was sent of {values!r}"
        )


class _LoadAwareCustom(CustomChooser):
    """The chooser of one sender, for a user's object that receives the loads."""

    def refresh_load(self, loads: Mapping[int, float]) -> None:
        """Pass the loads to the user's object; raise `ComponentError` if the object raises."""
        try:
            self._user.refresh_load(loads)
        except Exception as error:
            msg = f"{self._place}: refresh_load raised {type(error).__name__}: {error}"
            raise ComponentError(msg) from error


class _LoadAwareOnThread(CustomChooser):
    """The chooser of a sender that has a thread of its own. The worker's thread only leaves the loads here, because the user's
    object may wait, and may be choosing now.
    """

    def __init__(self, grouping: CustomGrouping, context: GroupingContext) -> None:
        super().__init__(grouping, context)
        #: `_newest`: the loads that the worker's thread left last. `_told`: the loads that the user's object got last.
        self._newest: Mapping[int, float] | None = None
        self._told: Mapping[int, float] | None = None

    def refresh_load(self, loads: Mapping[int, float]) -> None:
        """Leave the loads for the next call."""
        self._newest = loads

    def __call__(self, values: Sequence[Any]) -> Sequence[int]:
        """See `CustomChooser.__call__`. First pass on the newest loads; raise `EmitError` if the object raises."""
        loads = self._newest
        if loads is not self._told:
            self._told = loads
            try:
                self._user.refresh_load(loads)
            except Exception as error:
                msg = f"{self._place}: refresh_load raised {type(error).__name__}: {error}; nothing was sent of {values!r}"
                raise EmitError(msg) from error
        return super().__call__(values)
