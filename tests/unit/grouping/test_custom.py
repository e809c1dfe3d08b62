"""Custom groupings: a user's own rule, its copies, its answers and its mistakes (D13)."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from stormspark import CustomStreamGrouping, GlobalStreamId
from stormspark.errors import ComponentError, EmitError, InvalidTopologyError, SerializationError
from stormspark.grouping import CustomGrouping, GroupingContext, LoadFollower

TASKS = (4, 5, 6, 9)


class Answers(CustomStreamGrouping):
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def prepare(self, context: Any, stream: Any, target_tasks: Any) -> None:
        self.prepared = (context.consumer, stream, target_tasks)

    def choose_tasks(self, task: int, values: Any) -> Any:
        self.asked.append((task, values))
        return self.answer(self) if callable(self.answer) else self.answer


class Loaded(Answers):
    def refresh_load(self, loads: Mapping[int, float]) -> None:
        self.answer = [min(loads, key=lambda task: loads[task])]


class Asks:
    """Not derived from the base class; needs what a context says."""

    def prepare(self, context: GroupingContext, stream: Any, target_tasks: list[int]) -> None:
        mine = context.tasks[context.source].index(context.sender)
        self.partner = target_tasks[mine % len(target_tasks)] if context.conf["my.pairs"] else None

    def choose_tasks(self, task: int, values: Any) -> Any:
        return [self.partner]


def chooser(grouping: Any, sender: int = 2, **known: Any) -> Any:
    context = GroupingContext(
        "split", "words", ("word", "n"), sender, TASKS, (5,), Random(1), consumer="count", **known
    )
    return CustomGrouping(grouping).chooser(context)


@pytest.mark.parametrize("answer", [[5], [4, 9], [], [6, 6], (5, 4), list(TASKS)])
def test_many_one_or_none_of_the_targets_get_the_tuple(answer: Any) -> None:
    """D13: an id that stands twice gets two copies."""
    assert list(chooser(Answers(answer))(("storm", 1))) == list(answer)


def test_it_is_prepared_once_and_asked_with_the_sender_and_the_values() -> None:
    """A custom grouping is prepared once, and then gets the sending task and the values of each tuple (D13)."""
    choose = chooser(Answers([5]), sender=3)
    choose(("storm", 1))
    choose(("heron", 2))
    assert choose._user.prepared == ("count", GlobalStreamId("split", "words"), [4, 5, 6, 9])
    assert choose._user.asked == [(3, ("storm", 1)), (3, ("heron", 2))]


def test_every_sender_has_a_copy_of_the_object_as_it_was_when_it_was_declared() -> None:
    """Each sender has its own copy of the user's object, pickled at the declaration (D13)."""

    def in_turn(user: Any) -> list[int]:
        return [TASKS[len(user.asked) % 4]]

    mine = Answers(in_turn)
    grouping = CustomGrouping(mine)
    mine.answer = [9]
    context = GroupingContext("split", "words", ("word",), 2, TASKS, (), Random(1))
    one, other = grouping.chooser(context), grouping.chooser(context)
    assert [one(("a",)) for _ in range(3)] == [[5], [6], [9]]
    assert other(("a",)) == [5]
    assert mine.asked == []


def test_the_context_knows_the_topology_and_its_configuration() -> None:
    """D13: enough to pair the sender's tasks with the targets."""
    tasks = {"split": (1, 2, 3), "count": TASKS}
    assert chooser(Asks(), sender=3, tasks=tasks, conf={"my.pairs": True})(()) == [6]


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        ([4, 7], r"got \[4, 7\]; not one of them: 7 of type int"),
        ([4, "5"], r"not one of them: '5' of type str"),
        ([True], r"not one of them: True of type bool"),
        ([[4]], r"not one of them: \[4\] of type list"),
        (5, "got 5 of type int"),
        (None, "got None of type NoneType"),
        ({4}, r"got \{4\} of type set"),
        ("45", "got '45' of type str"),
    ],
)
def test_an_answer_that_is_no_list_of_targets_is_refused_with_all_that_one_needs_to_know(
    answer: Any, got: str
) -> None:
    """D13: the source component, the stream, the consumer, what came and what is allowed."""
    with pytest.raises(
        EmitError,
        match=r"^custom grouping Answers from component 'split', task 2, stream 'words' to 'count': choose_tasks must return a "
        rf"list of ids of its target tasks \[4, 5, 6, 9\], \[\] for none, .*{got}.*; nothing was sent of \('storm', 1\)",
    ):
        chooser(Answers(answer))(("storm", 1))


def test_an_error_of_choose_tasks_has_its_place_and_its_cause() -> None:
    """An exception in choose_tasks becomes an EmitError with the task and the stream, and keeps its cause (D13)."""

    def fails(user: Any) -> list[int]:
        raise ZeroDivisionError("no tasks")

    with pytest.raises(
        EmitError, match=r"task 2, stream 'words' to 'count': choose_tasks raised ZeroDivisionError: no tasks"
    ) as raised:
        chooser(Answers(fails))(("storm", 1))
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_what_prepare_raises_is_reported_with_its_place() -> None:
    """D13: before the first tuple, so it stops the topology."""
    with pytest.raises(
        ComponentError, match=r"Asks from component 'split', .* prepare raised KeyError: 'split'"
    ):
        chooser(Asks())


def test_one_that_wants_the_loads_gets_them() -> None:
    """D13: LoadAwareCustomStreamGrouping."""
    choose = chooser(Loaded([4]))
    assert choose(()) == [4]
    choose.refresh_load({4: 0.5, 5: 0.5, 6: 0.1, 9: 1.0})
    assert choose(()) == [6]
    assert CustomGrouping(Loaded([4])).follows_load
    assert isinstance(choose, LoadFollower)


def test_one_that_does_not_want_the_loads_costs_nothing() -> None:
    """A custom grouping without `refresh_load` does not follow loads (D13)."""
    assert not CustomGrouping(Answers([4])).follows_load
    assert not isinstance(chooser(Answers([4])), LoadFollower)


def test_an_error_of_refresh_load_has_its_place() -> None:
    """An exception in refresh_load becomes an error that names the grouping and the sender (D13)."""
    with pytest.raises(
        ComponentError, match=r"Loaded from component 'split'.* refresh_load raised ValueError"
    ):
        chooser(Loaded([4])).refresh_load({})


def test_it_is_a_value_with_the_name_of_the_rule() -> None:
    """Custom groupings can be pickled, compared and hashed, and are described by their class's name (D13)."""
    grouping = CustomGrouping(Answers([4]))
    copy = pickle.loads(pickle.dumps(grouping))
    assert copy == grouping and hash(copy) == hash(grouping)
    assert copy != CustomGrouping(Answers([5]))
    assert repr(grouping) == "CustomGrouping(name='Answers', load_aware=False)"
    assert grouping.describe() == "custom(Answers)"


def test_a_class_is_no_object() -> None:
    """A class in place of an object is rejected, and the error shows the missing brackets (D13)."""
    with pytest.raises(
        InvalidTopologyError, match=r"got the class Asks: did you forget the brackets, Asks\(\)\?"
    ):
        CustomGrouping(Asks)  # type: ignore[arg-type]


def test_an_object_needs_the_two_methods() -> None:
    """An object without the methods of a custom grouping is rejected (D13)."""
    with pytest.raises(
        InvalidTopologyError, match=r"<object .* of type object has no prepare; .* CustomStreamGrouping"
    ):
        CustomGrouping(object())  # type: ignore[arg-type]


def test_an_object_that_cannot_be_pickled_is_refused_at_once() -> None:
    """An object that can't be pickled is rejected when the grouping is made (D13, A3)."""
    with pytest.raises(
        SerializationError, match=r"custom grouping Answers can't be pickled: .*lock.* in prepare\(\)"
    ):
        CustomGrouping(Answers(threading.Lock()))


def test_on_a_thread_the_newest_loads_come_before_the_next_choice() -> None:
    """The worker's thread leaves the loads for it, also before the object is prepared (D13)."""
    context = GroupingContext("split", "words", ("word", "n"), 2, TASKS, (5,), Random(1), consumer="count")
    choose = CustomGrouping(Loaded([4])).unprepared_chooser(context)
    assert isinstance(choose, LoadFollower)
    choose.refresh_load({4: 0.5, 5: 1.0, 6: 1.0, 9: 1.0})
    choose.prepare()
    choose.refresh_load({4: 0.5, 5: 0.5, 6: 0.1, 9: 1.0})
    assert choose._user.answer == [4], "nothing is called before the next choice"
    assert choose(()) == [6]
    choose._user.answer = [9]
    assert choose(()) == [9], "the same loads come once"
    choose.refresh_load({})
    with pytest.raises(
        EmitError, match=r"Loaded from component 'split'.* refresh_load raised ValueError.*nothing was sent"
    ):
        choose(())
