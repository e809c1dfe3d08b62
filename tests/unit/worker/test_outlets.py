"""An emit goes to all that it is for, or to nobody (D11, D13, D15, B9)."""

from __future__ import annotations

from itertools import cycle
from random import Random
from typing import Any

import pytest

from stormspark.acker import SpoutAccount, Tree
from stormspark.api import Fields, TupleSource
from stormspark.errors import EmitError, ValueNotHashableError
from stormspark.grouping import FieldsGrouping, GroupingContext
from stormspark.worker.tuples.outlets import Delivery, Outlet, Subscription, make_outlet

SOURCE = TupleSource("split", 2, "default", Fields("word"))


class Consumers:
    """Subscribers with an inbox a task; all that arrives is in ``got``, task by task."""

    def __init__(self) -> None:
        self.inboxes: dict[int, list[Delivery]] = {}
        self.subscriptions: list[Subscription] = []
        self.warnings: list[str] = []

    def add(
        self,
        consumer: str,
        tasks: list[int],
        choose: Any,
        *,
        single: bool = False,
        direct: bool = False,
        only: int | None = None,
    ) -> None:
        inboxes: dict[int, list[Delivery]] = {task: [] for task in tasks}
        self.inboxes.update(inboxes)
        self.subscriptions.append(Subscription(consumer, choose, single, direct, inboxes, only))

    @property
    def got(self) -> list[tuple[int, Any]]:
        return [(task, values) for task, inbox in sorted(self.inboxes.items()) for values, _, _ in inbox]

    def outlet(self) -> Outlet:
        return make_outlet(SOURCE, self.subscriptions, self.warnings.append)


def tree() -> Tree:
    return Tree(SpoutAccount(1), "message", 0.0)


def chose(tasks: Any) -> Any:
    return lambda _values: tasks


def test_each_subscriber_applies_its_own_grouping_and_each_copy_is_an_edge() -> None:
    """D15: the result is their concatenation, in the order of the subscribers."""
    consumers = Consumers()
    consumers.add("count", [4, 5], chose(5), single=True)
    consumers.add("rules", [6, 7], chose((6, 7)))
    consumers.add("drop", [8], chose([]))
    consumers.add("twice", [9], chose([9, 9]))
    outlet, root = consumers.outlet(), tree()
    assert outlet.send(("storm",), root) == [5, 6, 7, 9, 9]
    assert consumers.got == [(task, ("storm",)) for task in (5, 6, 7, 9, 9)]
    assert root.count == 5
    assert outlet.counts() == (1, 5)


@pytest.mark.parametrize("bad", [[7], [6, 99], ["6"]])
def test_nothing_is_sent_of_an_emit_with_an_unknown_task(bad: Any) -> None:
    """D13: not even to those before it."""
    consumers = Consumers()
    consumers.add("count", [4, 5], chose(5), single=True)
    consumers.add("rules", [6], chose([6, *bad]))
    outlet, root = consumers.outlet(), tree()
    with pytest.raises(
        EmitError,
        match=r"component 'split', task 2, stream 'default': the grouping chose task .* one of \[6\]",
    ):
        outlet.send(("storm",), root)
    assert (consumers.got, root.count, outlet.counts()) == ([], 0, (0, 0))


def test_nothing_is_sent_of_an_emit_whose_grouping_raises() -> None:
    """When one grouping of an emit raises, no consumer receives the tuple (D13, B9)."""

    def fails(_values: Any) -> Any:
        raise EmitError("no")

    consumers = Consumers()
    consumers.add("count", [4, 5], chose(5), single=True)
    consumers.add("broken", [6], fails)
    outlet, root = consumers.outlet(), tree()
    with pytest.raises(EmitError):
        outlet.send(("storm",), root)
    assert (consumers.got, root.count, outlet.counts()) == ([], 0, (0, 0))


def test_a_direct_emit_goes_to_the_named_task_alone() -> None:
    """A direct emit goes to the named task alone, and counts once (D11)."""
    consumers = Consumers()
    consumers.add("count", [4, 5], None, direct=True)
    consumers.add("log", [6], None, direct=True)
    outlet, root = consumers.outlet(), tree()
    assert outlet.send_direct(5, ("storm",), root) == 1
    assert consumers.got == [(5, ("storm",))]
    assert (root.count, outlet.counts()) == (1, (1, 1))


def test_a_direct_emit_to_a_task_that_does_not_subscribe_is_nothing() -> None:
    """B9: without complaint, as in Storm."""
    consumers = Consumers()
    consumers.add("count", [4, 5], None, direct=True)
    outlet, root = consumers.outlet(), tree()
    assert outlet.send_direct(99, ("storm",), root) == 0
    assert (consumers.got, root.count, outlet.counts()) == ([], 0, (1, 0))


def test_a_direct_emit_to_a_task_with_a_regular_grouping_is_a_mistake() -> None:
    """A direct emit to a task with a regular grouping is an error that says what to change (B9)."""
    consumers = Consumers()
    consumers.add("count", [4, 5], chose(5), single=True)
    consumers.add("log", [6], None, direct=True)
    outlet = consumers.outlet()
    with pytest.raises(
        EmitError,
        match=r"component 'split', task 2, stream 'default': emit_direct to task 4 of 'count', which does not subscribe by a "
        r"direct grouping; let it subscribe by direct_grouping\('split'\), or use emit",
    ):
        outlet.send_direct(4, ("storm",), None)
    assert consumers.got == []


@pytest.mark.parametrize("task", ["4", 4.0, None, True])
def test_a_direct_emit_takes_a_task_id(task: Any) -> None:
    """D11: a wrong type would be a task that does not subscribe, and nobody would be told."""
    consumers = Consumers()
    consumers.add("count", [1, 4], None, direct=True)
    with pytest.raises(
        EmitError, match=f"emit_direct takes a task id, got {task!r} of type {type(task).__name__}"
    ):
        consumers.outlet().send_direct(task, ("storm",), None)


def test_the_list_of_tasks_belongs_to_the_emitting_component() -> None:
    """C2: it may be kept and changed; the next emit's is another one, or the same if nobody has it."""
    consumers = Consumers()
    consumers.add("count", [4, 5], _in_turn(4, 5), single=True)
    outlet = consumers.outlet()
    kept = outlet.send(("a",), None)
    changed = outlet.send(("b",), None)
    changed.append(99)
    changed[0] = 77
    del changed
    again = outlet.send(("c",), None)
    assert (kept, again) == ([4], [4])
    again.clear()
    del again
    assert [outlet.send((n,), None)[0] for n in range(4)] == [5, 4, 5, 4] and kept == [4]


def _in_turn(*tasks: int) -> Any:
    turn = cycle(tasks).__next__
    return lambda _values: turn()


def test_a_grouping_that_has_no_choice_is_not_asked() -> None:
    """D5, D7: what it would say is known."""

    def never(_values: Any) -> int:
        raise AssertionError

    consumers = Consumers()
    consumers.add("count", [4, 5], never, single=True, only=5)
    outlet, root = consumers.outlet(), tree()
    assert outlet.send(("storm",), root) == [5] and outlet.send(("spark",), root) == [5]
    assert consumers.got == [(5, ("storm",)), (5, ("spark",))] and root.count == 2


@pytest.mark.parametrize("tasks", [(4,), (4, 5)])
def test_a_key_without_a_stable_hash_is_refused_by_one_task_as_by_two(tasks: tuple[int, ...]) -> None:
    """A key without a stable hash is rejected even when there is only one task (D2)."""
    context = GroupingContext("split", "default", ("word",), 2, tasks, tasks, Random(1))
    consumers = Consumers()
    consumers.add("count", list(tasks), FieldsGrouping("word").chooser(context), single=True)
    outlet = consumers.outlet()
    assert len(outlet.send(("storm",), None)) == 1
    with pytest.raises(ValueNotHashableError):
        outlet.send((object(),), None)
    assert [values for _, values in consumers.got] == [("storm",)]


@pytest.mark.parametrize("values", [(), ("storm", 1), ["storm", 1]])
def test_a_wrong_number_of_values_is_an_error_if_somebody_subscribes(values: Any) -> None:
    """A12: also where no task is chosen for it."""
    consumers = Consumers()
    consumers.add("drop", [8], chose([]))
    with pytest.raises(
        EmitError,
        match=r"component 'split', task 2, stream 'default': Tuple created with wrong number of fields: expected 1 "
        rf"\(word\), got {len(values)}: ",
    ):
        consumers.outlet().checked(values)
    assert consumers.warnings == []


def test_a_wrong_number_of_values_is_a_warning_if_nobody_subscribes() -> None:
    """A12: Storm builds no tuple then, and so counts no values. The warning has the user's line, and comes once."""
    consumers = Consumers()
    outlet, root = consumers.outlet(), tree()
    for _ in range(3):
        assert outlet.send(outlet.checked(["storm", 1]), root) == []
    assert outlet.checked(("storm",)) == ("storm",)
    assert (root.count, outlet.counts()) == (0, (3, 0))
    (warning,) = consumers.warnings
    assert warning.startswith(f"{__file__}:")
    assert (
        "stream 'default': Tuple created with wrong number of fields: expected 1 (word), got 2: " in warning
    )
    with pytest.raises(EmitError, match="emit takes a tuple or list"):
        outlet.checked("storm")
