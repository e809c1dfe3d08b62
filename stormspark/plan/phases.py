"""The phases of planning. `PHASES` lists them in order.

Each phase is one function ``(plan, context) -> plan``. It decides one thing and enters the decision into the plan, or raises
`InvalidTopologyError`. The plan is a `PhysicalPlan` from the beginning. Until tasks are packed, all of them are in worker 0, and
no edge crosses workers. So each phase returns a `PhysicalPlan` in which only later decisions are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stormspark.api import Topology
from stormspark.config import Settings, merged
from stormspark.plan import decisions
from stormspark.plan.batches import check_batches, schedule_ends
from stormspark.plan.components import enter_components
from stormspark.plan.context import PlanningContext
from stormspark.plan.crossing import find_crossings
from stormspark.plan.flushing import order_flushes
from stormspark.plan.load_awareness import follow_load
from stormspark.plan.local_preference import prefer_local
from stormspark.plan.packing import pack_tasks
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.state import decide_transactions
from stormspark.plan.supersteps import cut_supersteps
from stormspark.plan.tasks import create_tasks
from stormspark.plan.validation import check_rules
from stormspark.plan.windows import check_windows
from stormspark.plan.workers import choose_workers

__all__ = ["PHASES", "Phase", "plan_by_phases", "plan_topology"]


@dataclass(frozen=True)
class Phase:
    """A step of planning. ``decision`` is a function that describes the step's decision in one line, for ``stormspark explain
    --phases``.
    """

    name: str
    run: Callable[[PhysicalPlan, PlanningContext], PhysicalPlan]
    decision: Callable[[PhysicalPlan], str]


PHASES = (
    Phase("rules", check_rules, decisions.of_rules),  # J5
    Phase("components", enter_components, decisions.of_components),  # A20, A21
    Phase("transactions", decide_transactions, decisions.of_transactions),  # C35, C42, C43
    Phase("windows", check_windows, decisions.of_windows),  # C26
    Phase("batch bolts", check_batches, decisions.of_batch_bolts),  # G5-G7
    Phase("load", follow_load, decisions.of_load),  # D6
    Phase("tasks", create_tasks, decisions.of_tasks),  # A16-A18
    Phase("workers", choose_workers, decisions.of_workers),  # A16
    Phase("packing", pack_tasks, decisions.of_packing),  # J23
    Phase("locality", prefer_local, decisions.of_local_preference),  # B4
    Phase("crossing", find_crossings, decisions.of_crossing),
    Phase("supersteps", cut_supersteps, decisions.of_supersteps),
    Phase("ends of batches", schedule_ends, decisions.of_ends),  # G5-G7
    Phase("end of input", order_flushes, decisions.of_flushes),
)


def plan_topology(
    topology: Topology, conf: Mapping[str, Any] | None = None, *, cores: int | None = None
) -> PhysicalPlan:
    """Plan ``topology``. ``conf``, such as that of a command line, overrides the topology's own configuration (A20).

    ``cores`` is the number of cores that the engine offers to workers. If ``topology.workers`` is not set, this number decides
    how many workers there are (`stormspark.plan.workers`). If neither is set, there is one worker.

    Raises `InvalidTopologyError`, which names the component, the stream and the user's line (J5).

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter(), parallelism=2).fields_grouping("words", Fields("word"))
    >>> plan = plan_topology(builder.create_topology("demo"), {"topology.workers": 2})
    >>> plan.supersteps, [(task.id, task.component, task.worker) for task in plan.tasks.values()]
    (1, [(3, 'count', 0), (4, 'count', 1), (5, 'words', 0), (6, 'words', 1)])
    """
    *_, (_, plan) = plan_by_phases(topology, conf, cores=cores)
    return plan


def plan_by_phases(
    topology: Topology, conf: Mapping[str, Any] | None = None, *, cores: int | None = None
) -> Iterator[tuple[Phase, PhysicalPlan]]:
    """Plan as `plan_topology` does, and yield each phase with the plan that it returned."""
    context = PlanningContext(topology, cores)
    plan = PhysicalPlan(
        topology=topology.name,
        conf=merged(topology.conf, conf or {}),
        settings=Settings(),
        components={},
        tasks={},
        edges=(),
        workers=1,
        supersteps=0,
    )
    for phase in PHASES:
        plan = phase.run(plan, context)
        yield phase, plan
