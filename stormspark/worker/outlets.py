"""Where an emitted tuple goes: one outlet a stream of a task, made of its subscribers' choosers and inboxes.

This is the hottest code there is: once an emit. So an outlet is a closure over what never changes, made for
the common shapes of a stream (nobody listens; one subscriber that gets one copy) and for the rest. What is
sent is a plain `Delivery`; the object that users see is made when it is executed. An inbox is a plain list,
of a task here or of a lane to another worker: the sender does not know the difference, and the ledger counts
the edge here until the lane's frame leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from stormspark.acker import Roots
from stormspark.api import TupleSource
from stormspark.errors import EmitError

__all__ = ["Delivery", "Outlet", "Send", "Subscription", "add_edge", "make_outlet"]

#: A tuple on its way: values, source, and the trees it belongs to. A plain tuple, because that is what Python
#: makes fastest.
Delivery: TypeAlias = tuple[tuple[Any, ...], TupleSource, Roots]
#: Takes the values and the trees they belong to; returns the task ids.
Send = Callable[[tuple[Any, ...], Roots], list[int]]
#: Appends to the inbox of a task.
Push = Callable[[Delivery], None]


@dataclass(frozen=True)
class Subscription:
    """One consumer of the stream: its chooser, prepared for the sending task, and its tasks' inboxes."""

    consumer: str
    choose: Callable[[Sequence[Any]], Any]
    single: bool
    direct: bool
    inboxes: Mapping[int, Push]


@dataclass(frozen=True)
class Outlet:
    """A stream of one task: its width, how to send on it, and how to send to a named task."""

    source: TupleSource
    width: int
    send: Send
    send_direct: Callable[[int, tuple[Any, ...], Roots], int]
    #: Emits and copies so far.
    counts: Callable[[], tuple[int, int]]

    def checked(self, values: Any) -> tuple[Any, ...]:
        """Make ``values`` the tuple that is sent; raises `EmitError` when their number or type is wrong
        (A12).
        """
        source = self.source
        place = f"component {source.component!r}, task {source.task}, stream {source.stream!r}"
        if not isinstance(values, tuple | list):
            msg = f"{place}: emit takes a tuple or list of values, got {values!r} of type {type(values).__name__}"
            if self.width == 1:
                msg += f"; did you mean emit(({values!r},))?"
            raise EmitError(msg)
        if len(values) != self.width:
            msg = (
                f"{place}: Tuple created with wrong number of fields (A12): expected {self.width} "
                f"({', '.join(source.fields)}), got {len(values)}: {values!r}"
            )
            raise EmitError(msg)
        return tuple(values)


def add_edge(roots: Roots) -> None:
    """Count one more open edge for every tree in ``roots``."""
    if isinstance(roots, tuple):
        for branch in roots:
            branch.count += 1
    elif roots is not None:
        roots.count += 1


def make_outlet(source: TupleSource, subscriptions: Sequence[Subscription]) -> Outlet:
    """Build the outlet of one stream of one task."""
    if len(subscriptions) == 1 and subscriptions[0].single and not subscriptions[0].direct:
        send, counts = _send_one(source, subscriptions[0])
    else:
        send, counts = _send_all(source, subscriptions)
    send_direct, direct_counts = _send_direct(source, subscriptions)

    def all_counts() -> tuple[int, int]:
        (emitted, copies), (directly, direct_copies) = counts(), direct_counts()
        return emitted + directly, copies + direct_copies

    return Outlet(source, len(source.fields), send, send_direct, all_counts)


_Counts = Callable[[], tuple[int, int]]


def _send_one(source: TupleSource, subscription: Subscription) -> tuple[Send, _Counts]:
    choose, inboxes = subscription.choose, subscription.inboxes
    emitted = 0  # a closure's own variable is the cheapest counter there is

    def send(values: tuple[Any, ...], roots: Roots) -> list[int]:
        nonlocal emitted
        task = choose(values)
        inboxes[task]((values, source, roots))
        emitted += 1
        if roots is not None:
            if isinstance(roots, tuple):
                add_edge(roots)
            else:
                roots.count += 1
        return [task]

    return send, lambda: (emitted, emitted)


def _send_all(source: TupleSource, subscriptions: Sequence[Subscription]) -> tuple[Send, _Counts]:
    """Each subscriber's grouping is applied on its own; the result is their concatenation (D15)."""
    parts = [(one.choose, one.single, one.inboxes) for one in subscriptions]
    emitted = copies = 0

    def send(values: tuple[Any, ...], roots: Roots) -> list[int]:
        nonlocal emitted, copies
        # All is chosen and found before the first copy leaves: what raises must not leave half an emit behind.
        tasks: list[int] = []
        pushes: list[Push] = []
        for choose, single, inboxes in parts:
            chosen = (choose(values),) if single else choose(values)
            try:
                pushes += [inboxes[task] for task in chosen]
            except KeyError as error:
                msg = (
                    f"component {source.component!r}, task {source.task}, stream {source.stream!r}: the grouping chose task "
                    f"{error}; it must be one of {sorted(inboxes)} (D13)"
                )
                raise EmitError(msg) from None
            tasks += chosen
        delivery = (values, source, roots)
        for push in pushes:
            push(delivery)
            add_edge(roots)
        emitted += 1
        copies += len(tasks)
        return tasks

    return send, lambda: (emitted, copies)


def _send_direct(
    source: TupleSource, subscriptions: Sequence[Subscription]
) -> tuple[Callable[[int, tuple[Any, ...], Roots], int], _Counts]:
    # A task belongs to one consumer, which subscribes to the stream once.
    by_task = {task: (one, push) for one in subscriptions for task, push in one.inboxes.items()}
    place = f"component {source.component!r}, task {source.task}, stream {source.stream!r}"
    emitted = copies = 0

    def send(task: int, values: tuple[Any, ...], roots: Roots) -> int:
        nonlocal emitted, copies
        if type(task) is not int:
            msg = f"{place}: emit_direct takes a task id, got {task!r} of type {type(task).__name__} (D11)"
            raise EmitError(msg)
        subscription, push = by_task.get(task, (None, None))
        if subscription is None or push is None:
            emitted += 1
            return 0  # a task that does not subscribe gets nothing, without complaint (B9)
        if not subscription.direct:
            msg = (
                f"{place}: emit_direct to task {task} of {subscription.consumer!r}, which does not subscribe by a direct "
                f"grouping (B9); let it subscribe by direct_grouping({source.component!r}), or use emit(values)"
            )
            raise EmitError(msg)
        push((values, source, roots))
        add_edge(roots)
        emitted += 1
        copies += 1
        return 1

    return send, lambda: (emitted, copies)
