"""Lays a plan out anew, with other numbers of workers and executors, while the topology runs (J3, C45).

What users wrote stays as it is: components, streams, groupings, settings. Only the phases of planning that place tasks run again.
Unlike Storm's, a rebalance may ask for more executors than there are tasks (W16). Then the component gets as many tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from stormspark.api import Topology
from stormspark.errors import InvalidTopologyError
from stormspark.grouping import without_wrapping
from stormspark.likely_names import nearest
from stormspark.plan.batches import enter_stages
from stormspark.plan.context import PlanningContext
from stormspark.plan.crossing import find_crossings
from stormspark.plan.local_preference import prefer_local
from stormspark.plan.packing import pack_tasks
from stormspark.plan.physical import ComponentPlan, PhysicalPlan, TaskPlan
from stormspark.plan.supersteps import cut_supersteps
from stormspark.plan.tasks import Size, enter_tasks

__all__ = ["rebalanced", "successor"]

#: A slip of the finger must not use up the driver's memory. Each task needs some of it, and a place in each report.
_MOST_EXECUTORS = 100_000


def rebalanced(
    plan: PhysicalPlan, *, workers: int | None = None, executors: Mapping[str, int] | None = None
) -> PhysicalPlan:
    """Return a plan of the same topology with this number of workers, and these numbers of executors for some components.

    What is not named stays. A component keeps its number of tasks, and gets more only if it has fewer tasks than executors.

    Raises `InvalidTopologyError`, which lists every problem: an unknown component, a number that is not positive, more than the
    settings allow, or more tasks for a component whose state can't be dealt out to them.

    >>> from stormspark import Fields, TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter(), parallelism=2).fields_grouping("words", Fields("word"))
    >>> plan = plan_topology(builder.create_topology("demo"), {"topology.workers": 2})
    >>> again = rebalanced(plan, workers=3, executors={"count": 4})
    >>> again.workers, [(task.component, task.worker) for task in again.tasks.values()][:4]
    (3, [('count', 0), ('count', 1), ('count', 2), ('count', 0)])
    """
    executors = executors or {}
    if found := list(_problems(plan, workers, executors)):
        msg = f"topology {plan.topology!r} can't be rebalanced: {'; '.join(found)}"
        raise InvalidTopologyError(msg)
    workers = workers or plan.workers
    sizes = {
        one.id: Size(max(len(one.tasks), asked), asked)
        for one in plan.components.values()
        for asked in (executors.get(one.id, one.parallelism),)
    }
    ackers = plan.settings.acker_executors
    again = replace(
        plan,
        # A topology keeps its number of ackers, and so the ids of its tasks stay the same if their numbers do (A18).
        conf={**plan.conf, "topology.workers": workers, "topology.acker.executors": ackers},
        settings=replace(plan.settings, workers=workers, ackers=ackers),
        workers=workers,
        workers_reason=f"topology.workers is {workers} since the last rebalance",
        # The preference for local tasks is decided anew.
        edges=tuple(replace(edge, grouping=without_wrapping(edge.grouping)) for edge in plan.edges),
    )
    again = enter_tasks(again, sizes)
    # These phases read the plan alone.
    nothing = PlanningContext(Topology(plan.topology, {}), plan.cores)
    for phase in (pack_tasks, prefer_local, find_crossings, cut_supersteps):
        again = phase(again, nothing)
    return enter_stages(again, {bolt: number for bolt, (number, _) in plan.ends_of_batches.items()})


def successor(plan: PhysicalPlan, task: TaskPlan) -> int:
    """Return the id of the task of ``plan`` that goes on with the totals of a task of another plan of the same topology.

    It has the same index in its component. If the component has fewer tasks now, because a rebalance is taken back, the last one
    stands for those that are no more.
    """
    tasks = plan.components[task.component].tasks
    return tasks[min(task.index, len(tasks) - 1)]


def _problems(plan: PhysicalPlan, workers: int | None, executors: Mapping[str, int]) -> Iterator[str]:
    if workers is not None and workers < 1:
        yield f"the number of workers must be positive, got {workers}"
    for name, number in executors.items():
        component = plan.components.get(name)
        if component is None:
            listed = ", ".join(sorted(plan.components))
            yield f"there is no component {name!r}{nearest(name, plan.components) or f'; the components are {listed}'}"
        elif number < 1:
            yield f"the number of executors of {name!r} must be positive, got {number}"
        elif number > len(component.tasks) and (why := _why_not_so_many(component, number)):
            yield f"{name!r} has {len(component.tasks)} tasks and can't have {number}, because {why}"
    total = plan.executors + sum(
        number - plan.components[name].parallelism
        for name, number in executors.items()
        if name in plan.components
    )
    most = plan.settings.executors_allowed
    if total > _MOST_EXECUTORS:
        yield f"there would be {total} executors, but {_MOST_EXECUTORS:,} are the most that a rebalance makes"
    elif most is not None and total > most:
        yield f"there would be {total} executors, but only {most} are allowed (nimbus.executors.perTopology)"
    most = plan.settings.workers_allowed
    if workers is not None and most is not None and workers > most:
        yield f"{workers} workers are asked for, but only {most} are allowed (nimbus.slots.perTopology)"
    elif workers is not None and workers > max(1, total):
        yield f"{workers} workers are asked for, but there are only {total} executors to deal out to them"


def _why_not_so_many(component: ComponentPlan, number: int) -> str:
    """Return why a component can't have so many tasks, which is more than it has, as a clause; an empty string if it can."""
    cap = component.settings.max_task_parallelism
    if cap is not None and cap < number:
        return f"topology.max.task.parallelism is {cap}"
    if not component.kind_of_state or component.settings.state_keys == "grouping":
        return ""
    return (
        "each of its tasks has its own state. If the keys of that state are the values by which its fields groupings group, set "
        "stormspark.state.keys to grouping"
    )
