"""What every chooser keeps to, whatever comes (D1, D5-D13, D17)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stormspark.grouping import (
    AllGrouping,
    CustomGrouping,
    CustomStreamGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    GroupingContext,
    LoadAwareShuffleGrouping,
    LoadFollower,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
    fields_task_index,
    two_tasks,
)
from stormspark.grouping.hashing import value_hash


class SomeInTurn(CustomStreamGrouping):
    """None, then one, then two, then all of the targets, from a place on that moves."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.tasks = target_tasks
        self.asked = 0

    def choose_tasks(self, task: int, values: Any) -> list[int]:
        self.asked += 1
        first = self.asked % len(self.tasks)
        return [*self.tasks[first:], *self.tasks[:first]][: self.asked % (len(self.tasks) + 1)]


FIELDS = ("word", "n", "tags")
NUMBER_TYPES = st.sampled_from(["long", "integer", "json"])

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)
)
#: Few distinct values, and among them those that Python confuses and Java doesn't.
look_alikes = st.sampled_from(
    [0, 1, False, True, 0.0, -0.0, 1.0, "0", "1", "", b"1", None, (1,), (1.0,), (True,)]
)
values = st.lists(scalars | look_alikes | st.lists(scalars, max_size=3), min_size=3, max_size=3)
groupings = st.sampled_from(
    [
        ShuffleGrouping(),
        FieldsGrouping("word"),
        FieldsGrouping(["tags", "n"]),
        FieldsGrouping(()),
        GlobalGrouping(),
        AllGrouping(),
        LocalOrShuffleGrouping(),
        PartialKeyGrouping("word"),
        PartialKeyGrouping(["tags", "n"]),
        NoneGrouping(),
        LoadAwareShuffleGrouping(),
        LoadAwareShuffleGrouping(stay_local=True),
        LocalFirstGrouping(),
        CustomGrouping(SomeInTurn()),
    ]
)


@st.composite
def contexts(draw: st.DrawFn) -> GroupingContext:
    """Contexts of a sender; `Random` has a state, so a context serves one chooser."""
    targets = draw(st.lists(st.integers(1, 50), unique=True, min_size=1, max_size=8).map(sorted))
    local = [task for task in targets if draw(st.booleans())]
    random = Random(draw(st.integers(0, 2**32)))
    return GroupingContext(
        "split", "default", FIELDS, 99, tuple(targets), tuple(local), random, draw(NUMBER_TYPES)
    )


def chosen(
    grouping: Grouping, context: GroupingContext, tuples: list[Any], loads: list[float] | None = None
) -> list[tuple[int, ...]]:
    """The tasks of each of ``tuples``; a chooser that follows load is told one of ``loads`` before each."""
    choose = grouping.chooser(context)
    tasks = []
    for place, one in enumerate(tuples):
        if loads and isinstance(choose, LoadFollower):
            choose.refresh_load({task: loads[(place * task) % len(loads)] for task in context.targets})
        tasks.append((choose(one),) if grouping.single else tuple(choose(one)))
    return tasks


def again(context: GroupingContext) -> GroupingContext:
    """The same context with the same randomness, from its beginning."""
    random = Random()
    random.setstate(context.random.getstate())
    return replace(context, random=random)


loads_of = st.lists(st.floats(0, 1), max_size=5)


@given(groupings, contexts(), st.lists(values, max_size=20), loads_of)
def test_only_candidates_are_chosen(
    grouping: Grouping, context: GroupingContext, tuples: list[Any], loads: list[float]
) -> None:
    """Every grouping chooses among its candidates only, and they are targets in ascending order (D1, D5-D13)."""
    candidates = grouping.candidates(context.targets, context.local_targets)
    assert set(candidates) <= set(context.targets)
    assert list(candidates) == sorted(candidates)
    for tasks in chosen(grouping, context, tuples, loads):
        assert set(tasks) <= set(candidates)


@given(groupings, contexts(), st.lists(values, max_size=20), loads_of)
def test_every_choice_can_be_repeated(
    grouping: Grouping, context: GroupingContext, tuples: list[Any], loads: list[float]
) -> None:
    """D5-D13: from the seed, the tuples and the loads alone."""
    second = again(context)
    assert chosen(grouping, context, tuples, loads) == chosen(grouping, second, tuples, loads)


@given(groupings, contexts(), st.lists(st.tuples(st.booleans(), values), max_size=30))
def test_senders_do_not_touch_each_other(
    grouping: Grouping, context: GroupingContext, tuples: list[tuple[bool, Any]]
) -> None:
    """D5, D12, D13: what one sends changes nothing for another one, but for the random numbers that a worker shares."""
    both = [grouping.chooser(again(context)), grouping.chooser(again(context))]
    together: list[list[Any]] = [[], []]
    for second, one in tuples:
        together[second].append(both[second](one))
    for second in (False, True):
        alone = grouping.chooser(again(context))
        assert together[second] == [alone(one) for which, one in tuples if which == second]


@given(contexts(), st.lists(values, max_size=30), st.sampled_from([("word",), ("tags", "n"), FIELDS]))
def test_fields_look_at_the_key_only_and_forget_nothing_of_its_types(
    context: GroupingContext, tuples: list[Any], key: tuple[str, ...]
) -> None:
    """The key's values and their types alone decide the task of a fields grouping (D1, D2, D3)."""
    # One chooser for all tuples, so a key that it remembers stands against all its look-alikes.
    for one, (task,) in zip(tuples, chosen(FieldsGrouping(key), context, tuples), strict=True):
        picked = [one[FIELDS.index(field)] for field in key]
        index = fields_task_index(picked, len(context.targets), context.ints)
        assert task == context.targets[index]


@given(contexts(), values, st.lists(st.booleans(), min_size=8, max_size=8))
def test_a_key_stays_with_its_task_wherever_the_tasks_are_moved(
    context: GroupingContext, one: Any, moved: list[bool]
) -> None:
    """D17: only another number of tasks gives a key another task."""
    local = tuple(task for task, here in zip(context.targets, moved, strict=False) if here)
    elsewhere = replace(again(context), sender=98, local_targets=local)
    for grouping in (FieldsGrouping("word"), PartialKeyGrouping("word")):
        assert chosen(grouping, again(context), [one]) == chosen(grouping, elsewhere, [one])


@given(contexts(), st.lists(values, max_size=60), st.sampled_from([("word",), ("tags", "n")]))
def test_a_partial_key_has_two_tasks_and_the_one_that_got_less_gets_the_next(
    context: GroupingContext, tuples: list[Any], key: tuple[str, ...]
) -> None:
    """A partial key has two tasks, and the one with fewer tuples so far gets the next one (D12)."""
    sent: Counter[int] = Counter()
    for one, (task,) in zip(tuples, chosen(PartialKeyGrouping(key), context, tuples), strict=True):
        hashes = [value_hash(one[FIELDS.index(field)], context.ints) & 0xFFFF_FFFF for field in key]
        first, second = two_tasks(context.targets, b"".join(one.to_bytes(4, "big") for one in hashes))
        assert task == (second if sent[second] < sent[first] else first)
        assert (first != second) == (len(context.targets) > 1)
        sent[task] += 1


@given(contexts(), st.lists(values, max_size=60))
def test_two_tasks_share_partial_keys_within_one_tuple(context: GroupingContext, tuples: list[Any]) -> None:
    """D12: any two keys have the same two tasks then."""
    two = replace(context, targets=(3, 8), local_targets=())
    sent = Counter(task for (task,) in chosen(PartialKeyGrouping("word"), two, tuples))
    assert abs(sent[3] - sent[8]) <= 1


@given(contexts(), st.integers(1, 4), st.integers(0, 30))
def test_a_load_aware_ring_is_even_while_nothing_is_loaded(
    context: GroupingContext, turns: int, refreshes: int
) -> None:
    """D6: but for the slots that do not divide; among the local targets, where there are any."""
    in_use = context.local_targets or context.targets
    choose = LoadAwareShuffleGrouping().chooser(context)
    for _ in range(refreshes):
        choose.refresh_load({})
    slots = 1000 if len(context.targets) > 1 else 1
    sent = Counter(choose(()) for _ in range(turns * slots))
    assert set(sent) == set(in_use)
    assert max(sent.values()) - min(sent.values()) <= turns * (slots % len(in_use))


@given(contexts(), loads_of, st.integers(1, 40))
def test_local_first_is_even_among_the_tasks_in_use(
    context: GroupingContext, loads: list[float], count: int
) -> None:
    """Local-first spreads evenly over the local tasks, or over all when the local ones are loaded (D7)."""
    known = dict(zip(context.targets, loads, strict=False))
    local = context.local_targets
    stays = local and sum(known.get(task, 0.0) for task in local) / len(local) < context.higher_bound
    choose = LocalFirstGrouping().chooser(context)
    choose.refresh_load(known)
    sent = Counter(choose(()) for _ in range(count))
    shares = [sent[task] for task in (local if stays else context.targets)]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1


@given(contexts(), st.integers(0, 100))
def test_shuffle_is_even_within_one_tuple_for_each_sender(context: GroupingContext, count: int) -> None:
    """Shuffle counts of one sender differ by one tuple at most (D5, W17)."""
    sent = Counter(task for (task,) in chosen(ShuffleGrouping(), context, [[]] * count))
    shares = [sent[task] for task in context.targets]
    assert max(shares) - min(shares) <= 1
    assert sum(shares) == count


@given(contexts(), st.lists(values, max_size=5))
def test_all_takes_each_target_once(context: GroupingContext, tuples: list[Any]) -> None:
    """The all grouping chooses every target once per tuple (D9)."""
    for tasks in chosen(AllGrouping(), context, tuples):
        assert sorted(tasks) == list(context.targets)


@given(contexts(), st.lists(values, max_size=5))
def test_global_takes_the_lowest(context: GroupingContext, tuples: list[Any]) -> None:
    """The global grouping always chooses the target with the lowest id (D10)."""
    assert chosen(GlobalGrouping(), context, tuples) == [(min(context.targets),)] * len(tuples)


@given(contexts(), st.integers(1, 40))
def test_local_or_shuffle_stays_local_if_it_can_and_is_even(context: GroupingContext, count: int) -> None:
    """Local-or-shuffle spreads evenly over the local targets, or over all when none is local (D7)."""
    sent = Counter(task for (task,) in chosen(LocalOrShuffleGrouping(), context, [[]] * count))
    open_to_it = context.local_targets or context.targets
    shares = [sent[task] for task in open_to_it]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1
