"""How many workers a topology gets: what it sets, else one per core, unless more would not help (A16, A25)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import Fields, Topology, TopologyBuilder
from stormspark.plan import PhysicalPlan, advice, explain_text, plan_by_phases, plan_topology
from stormspark.plan.workers import SMALL_LIMIT, follows_cores, reason_for_one_worker
from stormspark.testing import TestWordCounter, TestWordSpout


def chain(*parallelism: int, **conf: Any) -> Topology:
    """A spout and bolts, one behind the other, with these numbers of executors."""
    builder = TopologyBuilder()
    builder.set_spout("0", TestWordSpout(), parallelism[0])
    for number, executors in enumerate(parallelism[1:], 1):
        bolt = builder.set_bolt(str(number), TestWordCounter(), executors)
        bolt.fields_grouping(str(number - 1), Fields("word"))
    return builder.create_topology("chain", {key.replace("_", "."): value for key, value in conf.items()})


def planned(*parallelism: int, cores: int | None = 4, **conf: Any) -> PhysicalPlan:
    return plan_topology(chain(*parallelism, **conf), cores=cores)


PARALLELISM = st.lists(st.integers(1, 6), min_size=1, max_size=4)
CORES = st.one_of(st.none(), st.integers(1, 40))
LIMITS = st.one_of(st.none(), st.integers(0, 1200))
ALLOWED = st.one_of(st.none(), st.integers(1, 8))


@given(PARALLELISM, CORES, LIMITS, ALLOWED)
def test_a_topology_that_sets_nothing_has_a_worker_per_core_or_one(
    parallelism: list[int], cores: int | None, limit: int | None, allowed: int | None
) -> None:
    """Never more than executors, cores, or what nimbus.slots.perTopology allows; and one if more would not help."""
    conf = {"topology_max_spout_pending": limit, "nimbus.slots.perTopology": allowed}
    plan = planned(*parallelism, cores=cores, **conf)
    alone = max(parallelism) == 1 or bool(limit and limit * parallelism[0] < SMALL_LIMIT)
    assert (reason_for_one_worker(plan) is not None) == alone
    most = min(cores or 1, sum(parallelism), allowed or math.inf)
    assert plan.workers == (1 if alone else most)
    assert {task.worker for task in plan.tasks.values()} == set(range(plan.workers)), "no worker is idle"
    assert plan.workers_reason.startswith("topology.workers is not set")
    assert follows_cores(plan) == (not alone and allowed != 1)


@given(PARALLELISM, CORES, LIMITS, st.integers(1, 50))
def test_a_number_that_is_set_is_the_number(
    parallelism: list[int], cores: int | None, limit: int | None, workers: int
) -> None:
    plan = planned(*parallelism, cores=cores, topology_workers=workers, topology_max_spout_pending=limit)
    assert (plan.workers, plan.workers_reason) == (workers, f"topology.workers is {workers}")
    assert not follows_cores(plan)


@given(PARALLELISM, CORES, CORES, LIMITS)
def test_ids_of_tasks_do_not_depend_on_cores(
    parallelism: list[int], before: int | None, after: int | None, limit: int | None
) -> None:
    """So a topology that starts again from its checkpoint on another cluster has the same tasks (A18)."""
    one, other = (
        planned(*parallelism, cores=cores, topology_max_spout_pending=limit) for cores in (before, after)
    )
    assert {id: (task.component, task.index) for id, task in one.tasks.items()} == {
        id: (task.component, task.index) for id, task in other.tasks.items()
    }
    assert one.settings == other.settings


@given(PARALLELISM, LIMITS, st.integers(1, 40))
def test_what_follows_cores_is_what_another_number_of_cores_changes(
    parallelism: list[int], limit: int | None, cores: int
) -> None:
    """An engine has to count its cores only if the plan follows them."""
    plan = planned(*parallelism, cores=cores, topology_max_spout_pending=limit)
    others = {planned(*parallelism, cores=n, topology_max_spout_pending=limit).workers for n in (1, 2)}
    assert follows_cores(plan) == (len(others) == 2)


@pytest.mark.parametrize(
    ("parallelism", "conf", "workers", "reason"),
    [
        ((2, 2), {}, 4, "topology.workers is not set: one per core, and the engine offers 4"),
        ((2, 1), {}, 3, "topology.workers is not set: one per executor, and there are 3"),
        ((8, 8), {"topology_workers": None}, 4, "topology.workers is not set: one per core, and the engine offers 4"),
        (
            (8, 8),
            {"nimbus.slots.perTopology": 2},
            2,
            "topology.workers is not set: as many as nimbus.slots.perTopology allows",
        ),
        (
            (1, 1, 1),
            {},
            1,
            "topology.workers is not set, and more workers would not help: every component has one executor",
        ),
        (
            (8, 8),
            {"topology_max_task_parallelism": 1},
            1,
            "topology.workers is not set, and more workers would not help: every component has one executor",
        ),
        (
            (2, 8),
            {"topology_max_spout_pending": 200},
            1,
            "topology.workers is not set, and more workers would not help: topology.max.spout.pending allows 400 open trees "
            "altogether, which is less than 1,000, and a tree that crosses workers ends with its round",
        ),
    ],
)  # fmt: skip
def test_the_reason_is_printed(
    parallelism: tuple[int, ...], conf: dict[str, Any], workers: int, reason: str
) -> None:
    plan = planned(*parallelism, **conf)
    assert (plan.workers, plan.workers_reason) == (workers, reason)
    assert f"\nworkers ({reason})\n  worker 0: " in explain_text(plan)
    lines = {
        phase.name: phase.decision(of) for phase, of in plan_by_phases(chain(*parallelism, **conf), cores=4)
    }
    noun = "worker" if workers == 1 else "workers"
    assert lines["workers"] == f"{workers} {noun}, because {reason}"


def test_cores_that_are_not_known_yet_are_one_and_say_so() -> None:
    plan = planned(2, 2, cores=None)
    assert plan.workers == 1 and "how many cores there are is not known yet" in plan.workers_reason


@pytest.mark.parametrize(
    ("conf", "workers"),
    [
        ({}, 1),
        ({"topology_acker_executors": 0}, 4),  # the limit has no effect (B4)
        ({"topology_reliability_mode": "ATMOST_ONCE"}, 4),  # Heron tracks no trees (A43)
        ({"topology_reliability_mode": "ATLEAST_ONCE"}, 1),
    ],
)
def test_a_small_limit_counts_where_trees_are_tracked(conf: dict[str, Any], workers: int) -> None:
    assert planned(2, 2, topology_max_spout_pending=100, **conf).workers == workers


def test_a_small_limit_of_one_spout_leaves_the_others_their_cores() -> None:
    builder = TopologyBuilder()
    builder.set_spout("limited", TestWordSpout(), 2).set_max_spout_pending(10)
    free = builder.set_spout("free", TestWordSpout(), 2)
    assert plan_topology(builder.create_topology("two"), cores=3).workers == 3
    free.set_max_spout_pending(489)
    assert plan_topology(builder.create_topology("two"), cores=3).workers == 1, "998 open trees"
    free.set_max_spout_pending(490)
    assert plan_topology(builder.create_topology("two"), cores=3).workers == 3, "1,000 open trees"


def test_a_loop_stays_in_one_worker() -> None:
    """Each of its rounds would wait for the next batch (A15)."""
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("there", TestWordCounter(), 2).shuffle_grouping("words").shuffle_grouping("back")
    builder.set_bolt("back", TestWordCounter(), 2).shuffle_grouping("there")
    plan = plan_topology(builder.create_topology("loop"), cores=4)
    assert plan.workers == 1 and "'there', 'back' form a loop" in plan.workers_reason
    assert plan_topology(builder.create_topology("loop"), {"topology.workers": 4}, cores=4).workers == 4


def test_a_bolt_that_subscribes_to_itself_is_a_loop() -> None:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout(), 2)
    builder.set_bolt("again", TestWordCounter(), 2).shuffle_grouping("words").shuffle_grouping("again")
    assert plan_topology(builder.create_topology("loop"), cores=4).workers == 1


def test_a_plan_says_how_many_executors_compute_at_the_same_time() -> None:
    """Advice names a topology with far more executors than can run, and what to do."""
    (one,) = advice(planned(1, 40, cores=2))
    assert one == (
        "the topology has 41 executors that compute in 2 workers on 2 cores, so at most 2 of them compute at the same time"
        ": more executors don't make a bolt that computes faster; give it fewer, or run the topology with more workers "
        "and cores"
    )
    (one,) = advice(planned(1, 40, cores=8, topology_workers=1))
    assert "41 executors that compute in 1 worker on 8 cores, so at most 1 of them computes" in one
    (one,) = advice(planned(1, 40, cores=None, topology_workers=2))
    assert "41 executors that compute in 2 workers, so at most 2 of them compute" in one


@given(PARALLELISM, st.integers(1, 40), st.one_of(st.none(), st.integers(1, 40)))
def test_few_executors_are_no_reason_for_advice(
    parallelism: list[int], cores: int, workers: int | None
) -> None:
    plan = planned(*parallelism, cores=cores, topology_workers=workers)
    at_once = min(plan.workers, cores)
    assert bool(advice(plan)) == (sum(parallelism) > 16 * at_once)
