"""Outlets, the objects that emit. A task has one outlet per stream. Each outlet has its subscribers' choosers and inboxes.

This is the hottest code of the worker, because it runs once per emit. So there are several classes: `_OneCopy` for a stream
with one subscriber that gets one copy, `_NoCopies` for a stream that nobody subscribes to, and `_AllCopies` for all others.
None of them looks up anything that does not change.
An outlet sends a plain `Delivery`. The object that users see is made when the tuple is executed. An inbox is a plain list, and so
is a lane to another worker. The sender need not distinguish the two, because the ledger counts the edge in this worker until the
lane's frame leaves. So in this module a lane is also called an inbox.
"""

# outlets.pxd beside this module gives C types for the attributes and methods of the outlets, and for some variables. Cython
# compiles this module with these types. When you add, rename or retype an attribute, a method or a variable, change both files
# and check with `make compiled`.
# `branch` is a second name for `roots`, for speed: the .pxd declares it as `Branch`, so compiled code changes its C field.
# `branch` is only assigned where the type is exactly `Tree` or `Part`, because the ``count`` of a traced tree is a property.
# `known`, `inbox` and `returned` are local variables that hold attributes, so that an emit looks up each attribute once.
# `_OneCopy` has references of its own to the tasks that its chooser remembers, so that an emit need not call the chooser.

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from stormspark.acker import Roots
from stormspark.acker.tree import Part, Tree
from stormspark.api.tuples import TupleSource
from stormspark.errors import EmitError
from stormspark.grouping.key import MemoLookup
from stormspark.grouping.text_index import COMPILED, text_index
from stormspark.spi import recycling
from stormspark.user_line import running_at

if TYPE_CHECKING:
    from stormspark.worker.task import Task

__all__ = [
    "Delivery",
    "Outlet",
    "Send",
    "Subscription",
    "WrappedOutlet",
    "add_edge",
    "make_outlet",
    "outlet_of",
]

#: A tuple on its way: its values, its source, and its trees. This is a plain tuple, because Python makes plain tuples fastest.
Delivery: TypeAlias = tuple[tuple[Any, ...], TupleSource, Roots]
#: A function that sends a tuple. It takes the values and the trees that the tuple belongs to, and returns the ids of the
#: receiving tasks.
Send = Callable[[tuple[Any, ...], Roots], list[int]]


@dataclass(frozen=True)
class Subscription:
    """One consumer of a stream, with the chooser for the sending task, and with the inboxes of the consumer's tasks."""

    consumer: str
    choose: Callable[[Sequence[Any]], Any]
    single: bool
    direct: bool
    inboxes: Mapping[int, list[Delivery]]
    #: The task that the grouping chooses for all values; None if the choice may change.
    only: int | None = None


class Outlet:
    """The sending end of one stream of one task. It checks values, and sends to all subscribers or to a named task."""

    __slots__ = ("_by_task", "copies", "emitted", "source", "width")

    def __init__(self, source: TupleSource, subscriptions: Sequence[Subscription]) -> None:
        self.source = source
        self.width = len(source.fields)
        self.emitted = self.copies = 0
        # A task belongs to one consumer, which subscribes to the stream once.
        self._by_task = {task: (one, inbox) for one in subscriptions for task, inbox in one.inboxes.items()}

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        """Send to all tasks that the subscribers' groupings choose, and return the ids of these tasks.

        ``roots`` are the trees that the tuple belongs to.
        """
        raise NotImplementedError

    # The next methods are `send` in two steps, for executors with threads of their own: the thread that emits chooses the
    # tasks, and the worker's thread delivers the tuple.

    def as_sent(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values that receivers get."""
        return values

    def choose(self, values: tuple[Any, ...]) -> list[int]:
        """Return the tasks that the subscribers' groupings choose. Raises any error of a grouping."""
        raise NotImplementedError

    def deliver(self, values: tuple[Any, ...], roots: Roots, tasks: Sequence[int]) -> None:
        """Send to ``tasks``, which `choose` has returned."""
        delivery = (values, self.source, roots)
        for task in tasks:
            self._by_task[task][1].append(delivery)
            add_edge(roots)
        self.emitted += 1
        self.copies += len(tasks)

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        """Send to one task (D11). Return how many copies were sent, 1 or 0. Raises `EmitError` as `check_direct` does."""
        self.check_direct(task)
        subscription, inbox = self._by_task.get(task, (None, None))
        if subscription is None or inbox is None:
            self.emitted += 1
            return 0  # a task that does not subscribe gets nothing, which is no error (B9)
        inbox.append((values, self.source, roots))
        add_edge(roots)
        self.emitted += 1
        self.copies += 1
        return 1

    def check_direct(self, task: int) -> bool:
        """Return whether ``task`` gets a copy of a tuple that is sent to it, which means that its component subscribes.

        Raises `EmitError` if ``task`` is no task id, or if its component subscribes by a grouping that is not direct.
        """
        if type(task) is not int:
            msg = f"{self._place()}: emit_direct takes a task id, got {task!r} of type {type(task).__name__}"
            raise EmitError(msg)
        subscription, _ = self._by_task.get(task, (None, None))
        if subscription is not None and not subscription.direct:
            component = self.source.component
            msg = (
                f"{self._place()}: emit_direct to task {task} of {subscription.consumer!r}, which does not subscribe by a direct "
                f"grouping; let it subscribe by direct_grouping({component!r}), or use emit(values)"
            )
            raise EmitError(msg)
        return subscription is not None

    def checked(self, values: Any) -> tuple[Any, ...]:
        """Return ``values`` as a tuple to send. Raises `EmitError` if their number or type is wrong (A12)."""
        if not isinstance(values, tuple | list):
            msg = f"{self._place()}: emit takes a tuple or list of values, got {values!r:.200} of type {type(values).__name__}"
            if self.width == 1:
                msg += f"; did you mean emit(({values!r:.200},))?"
            raise EmitError(msg)
        if len(values) != self.width:
            self.does_not_fit(values)
        return tuple(values)

    def does_not_fit(self, values: Sequence[Any]) -> None:
        """Raise an `EmitError` about values whose number is wrong (A12)."""
        msg = f"{self._place()}: {self._wrong_number(values)}"
        raise EmitError(msg)

    def _wrong_number(self, values: Sequence[Any]) -> str:
        return (
            f"Tuple created with wrong number of fields: expected {self.width} ({', '.join(self.source.fields)}), "
            f"got {len(values)}: {values!r:.1000}"
        )

    def counts(self) -> tuple[int, int]:
        """Return how many emits there were so far, and how many copies they sent."""
        return self.emitted, self.copies

    def _place(self) -> str:
        source = self.source
        return f"component {source.component!r}, task {source.task}, stream {source.stream!r}"


class _OneCopy(Outlet):
    """The outlet of a stream with one subscriber, whose grouping chooses one task."""

    __slots__ = (
        "_by_text",
        "_choose",
        "_inboxes",
        "_inboxes_by_index",
        "_known",
        "_only",
        "_only_inbox",
        "_position",
        "_returned",
        "_tasks",
    )

    def __init__(self, source: TupleSource, subscription: Subscription) -> None:
        super().__init__(source, [subscription])
        choose = self._choose = subscription.choose
        self._inboxes = dict(subscription.inboxes)
        self._only = subscription.only
        self._only_inbox = None if self._only is None else self._inboxes[self._only]
        self._known: dict[Any, int] | None = None
        self._position = -1
        self._tasks: tuple[int, ...] = ()
        if isinstance(choose, MemoLookup) and choose.position >= 0:
            self._known, self._position = choose.known, choose.position
            self._tasks = choose.tasks_of_texts
        self._by_text = COMPILED and bool(self._tasks)
        self._inboxes_by_index = [self._inboxes[task] for task in self._tasks]
        #: The list that was returned last. It is reused if the user did not keep it. The attribute is None in plain Python,
        #: where a new list is faster.
        self._returned: list[int] | None = [0] if COMPILED else None

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        """See `Outlet.send`."""
        known = self._known
        inbox = self._only_inbox
        task: Any
        if inbox is not None:
            task = self._only
        elif known is None:
            task = self._choose(values)
            inbox = self._inboxes[task]
        else:
            key = values[self._position]
            if self._by_text and type(key) is str:
                tasks = self._tasks
                index = text_index(key, len(tasks)) if len(tasks) != 1 else 0
                task, inbox = tasks[index], self._inboxes_by_index[index]
            else:
                try:
                    task = known.get(key)
                except TypeError:  # a dict can't take this key
                    task = None
                if task is None:
                    task = self._choose(values)
                inbox = self._inboxes[task]
        inbox.append((values, self.source, roots))
        self.emitted += 1
        self.copies += 1
        if roots is not None:
            kind = type(roots)
            if kind is Tree or kind is Part:
                branch: Any = roots
                branch.count += 1
            else:
                add_edge(roots)
        returned = self._returned
        if returned is None:
            return [task]
        if (
            recycling.refcount(returned) == 2 and len(returned) == 1
        ):  # one reference is the attribute, and one is this variable
            returned[0] = task
        else:
            returned = self._returned = [task]
        return returned

    def choose(self, values: tuple[Any, ...]) -> list[int]:
        """See `Outlet.choose`."""
        only = self._only
        if only is not None:
            return [only]
        task = self._choose(values)
        self._inboxes[task]
        return [task]


class _AllCopies(Outlet):
    """The outlet of all other streams. Each subscriber's grouping chooses by itself, and all chosen tasks get a copy (D15)."""

    __slots__ = ("_parts",)

    def __init__(self, source: TupleSource, subscriptions: Sequence[Subscription]) -> None:
        super().__init__(source, subscriptions)
        self._parts = [(one.choose, one.single, one.inboxes) for one in subscriptions]

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        """See `Outlet.send`."""
        # All tasks are chosen and found before the first copy leaves, so that an error can't leave half an emit behind.
        tasks: list[int] = []
        found: list[list[Delivery]] = []
        for choose, single, inboxes in self._parts:
            chosen = (choose(values),) if single else choose(values)
            for task in chosen:
                inbox = inboxes.get(task)
                if inbox is None:
                    raise self._wrong_choice(task, inboxes)
                found.append(inbox)
            tasks += chosen
        delivery = (values, self.source, roots)
        for inbox in found:
            inbox.append(delivery)
            add_edge(roots)
        self.emitted += 1
        self.copies += len(tasks)
        return tasks

    def choose(self, values: tuple[Any, ...]) -> list[int]:
        """See `Outlet.choose`."""
        tasks: list[int] = []
        for choose, single, inboxes in self._parts:
            chosen = (choose(values),) if single else choose(values)
            for task in chosen:
                if task not in inboxes:
                    raise self._wrong_choice(task, inboxes)
            tasks += chosen
        return tasks

    def _wrong_choice(self, task: Any, inboxes: Mapping[int, Any]) -> EmitError:
        return EmitError(
            f"{self._place()}: the grouping chose task {task!r}; it must be one of {sorted(inboxes)}"  # D13
        )


class _NoCopies(_AllCopies):
    """The outlet of a stream that nobody subscribes to. A wrong number of values is a warning there, because Storm does not build
    the tuple, and so does not count its values (A12).
    """

    __slots__ = ("_warn", "_warned")

    def __init__(self, source: TupleSource, warn: Callable[[str], object]) -> None:
        super().__init__(source, ())
        self._warn, self._warned = warn, False

    def does_not_fit(self, values: Sequence[Any]) -> None:
        """Warn about values whose number is wrong, the first time."""
        if not self._warned:
            self._warned = True
            place = running_at(sys._getframe(), "stormspark.worker.core")
            line = "" if place is None else f"{place.line}: "
            self._warn(
                f"{line}{self._place()}: {self._wrong_number(values)}. This warning comes once. Nobody subscribes to the stream; "
                f"as soon as a bolt does, this is an error"
            )


class WrappedOutlet(Outlet):
    """An outlet around another outlet. It sends through the inner outlet, and returns the counts of the inner outlet."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet
        self.source, self.width = outlet.source, outlet.width

    def counts(self) -> tuple[int, int]:
        """See `Outlet.counts`."""
        return self._outlet.counts()

    def does_not_fit(self, values: Sequence[Any]) -> None:
        """See `Outlet.does_not_fit`."""
        self._outlet.does_not_fit(values)

    def send(self, values: tuple[Any, ...], roots: Roots) -> list[int]:
        """See `Outlet.send`."""
        return self._outlet.send(values, roots)

    def check_direct(self, task: int) -> bool:
        """See `Outlet.check_direct`."""
        return self._outlet.check_direct(task)

    def as_sent(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """See `Outlet.as_sent`."""
        return self._outlet.as_sent(values)

    def choose(self, values: tuple[Any, ...]) -> list[int]:
        """See `Outlet.choose`."""
        return self._outlet.choose(values)

    def deliver(self, values: tuple[Any, ...], roots: Roots, tasks: Sequence[int]) -> None:
        """See `Outlet.deliver`."""
        self._outlet.deliver(values, roots, tasks)

    def send_direct(self, task: int, values: tuple[Any, ...], roots: Roots) -> int:
        """See `Outlet.send_direct`."""
        return self._outlet.send_direct(task, values, roots)


def add_edge(roots: Roots) -> None:
    """Count one more open edge for every tree in ``roots``."""
    if isinstance(roots, tuple):
        for branch in roots:
            branch.count += 1
    elif roots is not None:
        roots.count += 1


def make_outlet(
    source: TupleSource, subscriptions: Sequence[Subscription], warn: Callable[[str], object]
) -> Outlet:
    """Build the outlet of one stream of one task, whose warnings go to ``warn``."""
    if not subscriptions:
        return _NoCopies(source, warn)
    if len(subscriptions) == 1 and subscriptions[0].single and not subscriptions[0].direct:
        return _OneCopy(source, subscriptions[0])
    return _AllCopies(source, subscriptions)


def outlet_of(task: Task, stream: str) -> Outlet:
    """Return the outlet of a stream. Raises `EmitError` if the component does not declare the stream (B9)."""
    try:
        return task.outlets[stream]
    except KeyError:
        msg = (
            f"component {task.component.id!r}, task {task.id}: Unknown stream ID {stream!r}; it declares "
            f"{', '.join(map(repr, task.outlets)) or 'no streams'} in declare_output_fields, or as the `outputs` of its class"
        )
        raise EmitError(msg) from None
