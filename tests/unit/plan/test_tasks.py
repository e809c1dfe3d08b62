"""How many tasks there are, and which ids they have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import Topology, TopologyBuilder
from stormspark.plan import plan_topology
from stormspark.plan.tasks import Size, executor_runs, number_tasks
from stormspark.testing import TestWordCounter, TestWordSpout


def topology(*ids: str, parallelism: int = 1, **own: Any) -> Topology:
    """A spout and bolts that listen to it; the first bolt has a configuration of its own."""
    builder = TopologyBuilder()
    spout, *bolts = ids
    builder.set_spout(spout, TestWordSpout())
    for bolt in bolts:
        builder.set_bolt(bolt, TestWordCounter(), parallelism).shuffle_grouping(spout)
    if own:
        builder._declarers[bolts[0]].add_configurations(
            {key.replace("_", "."): value for key, value in own.items()}
        )
    return builder.create_topology("t")


def ids(plan_of: Topology, **conf: Any) -> dict[str, tuple[int, ...]]:
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return {c.id: c.tasks for c in plan_topology(plan_of, settings).components.values()}


def test_storms_own_components_have_ids_among_the_users() -> None:
    """A18, A13: upper case, __acker, __eventlogger, __metrics_..., lower case."""
    plan_of = topology("Words", "Zoo", "bolt", parallelism=2)
    assert ids(plan_of) == {"Words": (1,), "Zoo": (2, 3), "bolt": (5, 6)}
    assert ids(plan_of, topology_acker_executors=0) == {"Words": (1,), "Zoo": (2, 3), "bolt": (4, 5)}
    assert ids(plan_of, topology_workers=3)["bolt"] == (7, 8)  # as many ackers as workers
    assert ids(plan_of, topology_eventlogger_executors=2)["bolt"] == (7, 8)
    consumers = [{"class": "a.Log", "parallelism.hint": 3}, {"class": "a.Log"}, {"class": "b.Log"}]
    assert ids(plan_of, topology_metrics_consumer_register=consumers)["bolt"] == (10, 11)


def test_a_checkpoint_spout_comes_before_all() -> None:
    """A18: $ sorts before letters and underscores."""
    assert ids(topology("$checkpointspout", "Zoo"))["$checkpointspout"] == (1,)


def test_the_number_of_tasks_and_who_has_the_last_word() -> None:
    """A16, A20: set_num_tasks is topology.tasks of the component; the component's own cap wins over the topology's."""
    assert len(ids(topology("s", "b", parallelism=2))["b"]) == 2
    assert len(ids(topology("s", "b", parallelism=2), topology_tasks=4)["b"]) == 4
    assert len(ids(topology("s", "b", parallelism=2, topology_tasks=5), topology_tasks=4)["b"]) == 5
    capped = topology("s", "b", parallelism=6, topology_max_task_parallelism=3)
    assert len(ids(capped, topology_max_task_parallelism=2)["b"]) == 3
    assert len(ids(capped)["b"]) == 3


def test_the_last_number_of_tasks_counts() -> None:
    """A9, A16: set_num_tasks and add_configuration write the same key."""
    builder = TopologyBuilder()
    builder.set_spout("s", TestWordSpout()).set_num_tasks(3).add_configuration("topology.tasks", 4)
    assert builder.create_topology("t").components["s"].num_tasks == 4


def test_there_are_never_more_executors_than_tasks() -> None:
    """A16, A17: executors that would have no task are not there."""
    plan = plan_topology(topology("s", "b", parallelism=6, topology_tasks=4))
    assert (plan.components["b"].parallelism, len(plan.components["b"].tasks)) == (4, 4)


def test_six_tasks_a_worker() -> None:
    """X62: a parallelism of 300 in all over 50 workers."""
    builder = TopologyBuilder()
    builder.set_spout("a", TestWordSpout(), 100)
    builder.set_bolt("b", TestWordCounter(), 150).shuffle_grouping("a")
    builder.set_bolt("c", TestWordCounter(), 50).shuffle_grouping("b")
    plan = plan_topology(builder.create_topology("t"), {"topology.workers": 50})
    assert {len(plan.tasks_of_worker(worker)) for worker in range(50)} == {6}


@given(tasks=st.integers(1, 200), executors=st.integers(1, 200))
def test_runs_share_tasks_evenly_larger_ones_first(tasks: int, executors: int) -> None:
    """A17: contiguous runs that differ by one at most."""
    executors = min(tasks, executors)
    runs = executor_runs(tasks, executors)
    assert (sum(runs), len(runs)) == (tasks, executors)
    assert runs == sorted(runs, reverse=True) and runs[0] - runs[-1] <= 1


@given(
    sizes=st.dictionaries(st.text(min_size=1, max_size=4), st.integers(1, 5), min_size=1, max_size=6),
    ackers=st.integers(0, 3),
)
def test_ids_run_from_one_without_gaps_but_for_storms_own(sizes: dict[str, int], ackers: int) -> None:
    """A18: ids ascend with the component's name in bytes, then with the index in the component."""
    numbered = number_tasks({id: Size(n, n) for id, n in sizes.items()}, {"__acker": ackers})
    order = [(task.component.encode(), task.index) for task in numbered]
    assert order == sorted(order)
    assert len(numbered) == sum(sizes.values())
    missing = sorted(set(range(1, sum(sizes.values()) + ackers + 1)) - {task.id for task in numbered})
    assert missing == list(range(missing[0], missing[0] + ackers)) if ackers else missing == []


@pytest.mark.parametrize("parallelism", [1, 3])
def test_one_executor_has_neighbouring_tasks(parallelism: int) -> None:
    """A17: 10 tasks over 3 executors are 4, 3 and 3."""
    plan = plan_topology(topology("s", "b", parallelism=parallelism, topology_tasks=10))
    runs: dict[int, list[int]] = {}
    for task in plan.tasks.values():
        if task.component == "b":
            runs.setdefault(task.executor, []).append(task.index)
    assert list(runs.values()) == (
        [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]] if parallelism == 3 else [[*range(10)]]
    )
