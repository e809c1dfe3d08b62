"""Plans that are laid out anew while their topology runs (J3, C45, W16)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import Count, Fields, StatefulBolt, TopologyBuilder, Tuple, TupleWindow, WindowedBolt
from stormspark.connectors import FileBolt
from stormspark.errors import InvalidTopologyError
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.plan.rebalance import rebalanced
from stormspark.testing import TestWordCounter, TestWordSpout


class Counting(StatefulBolt[Any]):
    def init_state(self, state: Any) -> None:
        pass

    def execute(self, tup: Tuple) -> None:
        pass


class Windows(WindowedBolt):
    def execute(self, window: TupleWindow) -> None:
        pass


def _plan(conf: dict[str, object] | None = None, *, tasks: int = 4, workers: int | None = 2) -> PhysicalPlan:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), parallelism=2)
    builder.set_bolt("Split", TestWordCounter(), parallelism=2).shuffle_grouping("words")
    count = builder.set_bolt("count", TestWordCounter(), parallelism=2)
    count.set_num_tasks(tasks).fields_grouping("Split", Fields("word"))
    of_workers = {} if workers is None else {"topology.workers": workers}
    return plan_topology(builder.create_topology("demo"), {**of_workers, **(conf or {})})


@given(
    tasks=st.integers(1, 9),
    workers=st.integers(1, 6),
    executors=st.dictionaries(st.sampled_from(["words", "Split", "count"]), st.integers(1, 9)),
    pending=st.sampled_from([None, 10]),
)
def test_a_plan_that_is_laid_out_anew_is_the_plan_that_would_have_been_made(
    tasks: int, workers: int, executors: dict[str, int], pending: int | None
) -> None:
    conf: dict[str, object] = {} if pending is None else {"topology.max.spout.pending": pending}
    plan = _plan(conf, tasks=tasks)
    wanted = {name: executors.get(name, one.parallelism) for name, one in plan.components.items()}
    if workers > sum(wanted.values()):
        return
    again = rebalanced(plan, workers=workers, executors=executors)

    builder = TopologyBuilder()
    numbers = {name: max(len(one.tasks), wanted[name]) for name, one in plan.components.items()}
    builder.set_spout("words", TestWordSpout(), parallelism=wanted["words"]).set_num_tasks(numbers["words"])
    split = builder.set_bolt("Split", TestWordCounter(), parallelism=wanted["Split"])
    split.set_num_tasks(numbers["Split"]).shuffle_grouping("words")
    count = builder.set_bolt("count", TestWordCounter(), parallelism=wanted["count"])
    count.set_num_tasks(numbers["count"]).fields_grouping("Split", Fields("word"))
    made = plan_topology(
        builder.create_topology("demo"),
        {**conf, "topology.workers": workers, "topology.acker.executors": 2},
    )
    assert again.tasks == made.tasks
    assert again.edges == made.edges
    assert (again.workers, again.supersteps) == (made.workers, made.supersteps)
    assert [one.tasks for one in again.components.values()] == [one.tasks for one in made.components.values()]
    pickle.dumps(again)


def test_tasks_keep_their_ids_if_there_are_no_more_of_them() -> None:  # A18
    plan = _plan()
    again = rebalanced(plan, workers=3, executors={"count": 4, "words": 1})
    assert list(again.tasks) == list(plan.tasks)
    assert again.components["words"].parallelism == 1


def test_there_may_be_more_tasks_than_before() -> None:  # W16
    again = rebalanced(_plan(), executors={"count": 7})
    assert len(again.components["count"].tasks) == again.components["count"].parallelism == 7


@pytest.mark.parametrize(
    ("workers", "executors", "conf", "problem"),
    [
        (None, {"cont": 2}, {}, "there is no component 'cont'; did you mean 'count'?"),
        (None, {"count": 0}, {}, "the number of executors of 'count' must be positive, got 0"),
        (None, {"count": 10**9}, {}, "but 100,000 are the most that a rebalance makes"),
        (0, {}, {}, "the number of workers must be positive, got 0"),
        (9, {}, {}, "9 workers are asked for, but there are only 6 executors"),
        (3, {}, {"nimbus.slots.perTopology": 2}, "only 2 are allowed (nimbus.slots.perTopology)"),
        (
            None,
            {"count": 4, "Split": 4},
            {"nimbus.executors.perTopology": 8},
            "there would be 10 executors, but only 8 are allowed (nimbus.executors.perTopology)",
        ),
        (None, {"count": 5}, {"topology.max.task.parallelism": 4}, "topology.max.task.parallelism is 4"),
        (None, {"Split": 4}, {"topology.max.task.parallelism": 3}, "topology.max.task.parallelism is 3"),
    ],
)
def test_what_can_not_be_is_refused_in_words(  # J2
    workers: int | None, executors: dict[str, int], conf: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidTopologyError) as refused:
        rebalanced(_plan(conf), workers=workers, executors=executors)
    assert problem in str(refused.value)


def test_all_problems_are_told_together() -> None:
    with pytest.raises(InvalidTopologyError, match=r"'x'.*; .*'y'"):
        rebalanced(_plan(), executors={"x": 1, "y": 2})


def test_a_workers_count_that_followed_the_cores_is_fixed_by_a_rebalance() -> None:
    again = rebalanced(_plan(workers=None), workers=2)
    assert again.settings.workers == again.conf["topology.workers"] == 2
    assert again.workers_reason == "topology.workers is 2 since the last rebalance"


def test_keys_of_the_grouping_for_all_components_are_those_of_bolts_that_they_fit() -> None:
    """C36, J3: the topology's configuration means neither windows, nor outboxes of sinks, nor what a shuffle deals out."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("fits", Counting()).fields_grouping("words", Fields("word"))
    builder.set_bolt("shuffled", Counting()).shuffle_grouping("words")
    windows = Windows().with_tumbling_window(Count(3))
    builder.set_bolt("windows", windows).fields_grouping("words", Fields("word"))
    builder.set_bolt("sink", FileBolt("out")).fields_grouping("words", Fields("word"))
    topology = builder.create_topology("demo")
    plan = plan_topology(topology, {"stormspark.exactly.once": True, "stormspark.state.keys": "grouping"})
    again = rebalanced(plan, executors={"fits": 3})
    assert len(again.components["fits"].tasks) == 3
    for other in ("shuffled", "windows", "sink"):
        with pytest.raises(InvalidTopologyError, match=f"'{other}' has 1 tasks and can't have 3, because"):
            rebalanced(plan, executors={other: 3})
    with pytest.raises(
        InvalidTopologyError, match=r"stormspark\.state\.keys must be grouping, got 'groupings'"
    ):
        plan_topology(topology, {"stormspark.state.keys": "groupings"})
