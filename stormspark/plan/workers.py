"""Decides how many workers a topology gets (A16).

If ``topology.workers`` is set, it decides. Otherwise there is one worker per core, because a Python process computes on one core
at a time. But there are no more workers than executors, and no more than ``nimbus.slots.perTopology``. One worker is enough if
several workers would have nothing to do in parallel, or would mostly wait for exchanges. The plan alone shows that in three
cases:

- Every component has one executor. Then a second worker would only make tuples travel between the two workers.
- Spouts may have fewer than `SMALL_LIMIT` open trees altogether (``topology.max.spout.pending``). A tree that crosses workers
  stays open until its round ends.
- The topology has a loop. A tuple that returns to its component in another worker waits for the next batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan
from stormspark.plan.reachability import strong_components

__all__ = ["SMALL_LIMIT", "choose_workers", "follows_cores", "reason_for_one_worker"]

#: A number of open trees, summed over all tasks of all spouts. With several workers, a round of 0.1 s ends no more trees than may
#: be open. If 1000 trees may be open, at most 10,000 trees end per second. One worker is as fast if a tree costs less than 0.1 ms
#: (docs/decisions.md).
SMALL_LIMIT = 1000


def choose_workers(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Enter the number of workers into the plan, with the reason. All tasks stay in worker 0 until a later phase packs them."""
    workers, reason = _workers(plan, context.cores)
    return replace(plan, workers=workers, cores=context.cores, workers_reason=reason)


def follows_cores(plan: PhysicalPlan) -> bool:
    """Return whether the number of workers depends on the number of cores.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=4)
    >>> plan = plan_topology(builder.create_topology("demo"), cores=3)
    >>> plan.workers, follows_cores(plan)
    (3, True)
    >>> follows_cores(plan_topology(builder.create_topology("demo", {"topology.workers": 3}), cores=3))
    False
    """
    return (
        plan.settings.workers is None
        and reason_for_one_worker(plan) is None
        and plan.settings.workers_allowed != 1
    )


def reason_for_one_worker(plan: PhysicalPlan) -> str | None:
    """Return why more workers would not help this topology, as one clause; None if they could help."""
    return next(_reasons_for_one_worker(plan), None)


def _workers(plan: PhysicalPlan, cores: int | None) -> tuple[int, str]:
    if plan.settings.workers is not None:
        return plan.settings.workers, f"topology.workers is {plan.settings.workers}"
    if (reason := reason_for_one_worker(plan)) is not None:
        return 1, f"topology.workers is not set, and more workers would not help: {reason}"
    bounds = [
        (plan.executors, f"one per executor, and there are {plan.executors}"),
        (plan.settings.workers_allowed or math.inf, "as many as nimbus.slots.perTopology allows"),
        (
            cores or 1,
            "one per core, and how many cores there are is not known yet"
            if cores is None
            else f"one per core, and the engine offers {cores}",
        ),
    ]
    # If bounds are equal, the last one in the list gives the reason. So a plan with one worker per core names the cores.
    workers, reason = min(reversed(bounds), key=lambda bound: bound[0])
    return int(workers), f"topology.workers is not set: {reason}"


def _reasons_for_one_worker(plan: PhysicalPlan) -> Iterator[str]:
    if all(component.parallelism == 1 for component in plan.components.values()):
        yield "every component has one executor"
    limit = _open_trees(plan)
    if limit < SMALL_LIMIT:
        yield (
            f"topology.max.spout.pending allows {limit:g} open trees altogether, which is less than {SMALL_LIMIT:,}, and a tree "
            f"that crosses workers ends with its round"
        )
    if loop := _looping(plan):
        yield f"{', '.join(map(repr, loop))} form a loop, in which tuples that cross workers wait for the next batch"


def _open_trees(plan: PhysicalPlan) -> float:
    """Return how many trees the tasks of all spouts may have open altogether; infinite if any spout has no limit.

    Without acking there are no trees, and so no limit on them. Heron acks only in its mode ATLEAST_ONCE (A43).
    """
    if not plan.settings.acking or plan.settings.reliability_mode not in (None, "ATLEAST_ONCE"):
        return math.inf
    total: float = 0
    for component in plan.components.values():
        if component.kind != "spout":
            continue
        limit = component.settings.max_spout_pending
        # A spout of a transactional topology emits one batch at a time, whatever the limit says (G5).
        total += limit * len(component.tasks) if limit and not component.kind_of_batch else math.inf
    return total


def _looping(plan: PhysicalPlan) -> list[str]:
    """Return the components of the first loop, in their order of declaration; none if there is no loop.

    A bolt that subscribes to itself is a loop, too.
    """
    successors: dict[str, list[str]] = {component: [] for component in plan.components}
    for edge in plan.edges:
        successors[edge.source].append(edge.target)
    group_of = strong_components(successors)
    loops = (group_of[edge.source] for edge in plan.edges if group_of[edge.source] == group_of[edge.target])
    first = next(loops, None)
    return [component for component in plan.components if group_of[component] == first]
