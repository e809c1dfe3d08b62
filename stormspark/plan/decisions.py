"""One readable line per phase that says what the phase decided (``stormspark explain --phases``)."""

from __future__ import annotations

from collections.abc import Iterable

from stormspark.grouping import LoadAwareShuffleGrouping, LocalWhileHeldGrouping
from stormspark.plan.explain import counted, id_ranges
from stormspark.plan.physical import EdgePlan, PhysicalPlan

__all__ = [
    "of_batch_bolts",
    "of_components",
    "of_crossing",
    "of_ends",
    "of_flushes",
    "of_load",
    "of_local_preference",
    "of_packing",
    "of_rules",
    "of_supersteps",
    "of_tasks",
    "of_transactions",
    "of_windows",
    "of_workers",
]


def of_rules(plan: PhysicalPlan) -> str:
    """Describe the decision of `check_rules`."""
    return f"topology {plan.topology!r} follows all of Storm's rules"


def of_components(plan: PhysicalPlan) -> str:
    """Describe the decision of `enter_components`."""
    kinds = [component.kind for component in plan.components.values()]
    own = [component.id for component in plan.components.values() if component.conf]
    return (
        f"{counted(kinds.count('spout'), 'spout')}, {counted(kinds.count('bolt'), 'bolt')}, "
        f"{counted(len(plan.edges), 'subscription')}; settings of their own: {_listed(own)}"
    )


def of_transactions(plan: PhysicalPlan) -> str:
    """Describe the decision of `decide_transactions`."""
    batches = "a batch is one transaction" if plan.exactly_once else "batches are not transactions"
    with_state = [f"{one.id} ({one.kind_of_state})" for one in plan.components.values() if one.kind_of_state]
    return f"{batches}; components with state: {_listed(with_state)}"


def of_windows(plan: PhysicalPlan) -> str:
    """Describe the decision of `check_windows`."""
    kept = [component.id for component in plan.components.values() if component.windowed]
    return f"every window is valid; bolts whose windows are state: {_listed(kept)}"


def of_batch_bolts(plan: PhysicalPlan) -> str:
    """Describe the decision of `check_batches`."""
    informed = [one.id for one in plan.components.values() if one.kind_of_batch not in ("", "part")]
    return f"every batch has an end; batch bolts: {_listed(informed)}"


def of_load(plan: PhysicalPlan) -> str:
    """Describe the decision of `follow_load`."""
    following = [edge for edge in plan.edges if isinstance(edge.grouping, LoadAwareShuffleGrouping)]
    return f"subscriptions whose shuffle follows load: {_edges(following)}"


def of_tasks(plan: PhysicalPlan) -> str:
    """Describe the decision of `create_tasks`."""
    executors = counted(plan.executors, "executor")
    return f"{counted(len(plan.tasks), 'task')} in {executors}, ids {id_ranges(plan.tasks)}"


def of_workers(plan: PhysicalPlan) -> str:
    """Describe the decision of `choose_workers`."""
    return f"{counted(plan.workers, 'worker')}, because {plan.workers_reason}"


def of_packing(plan: PhysicalPlan) -> str:
    """Describe the decision of `pack_tasks`."""
    hosted = [len(plan.tasks_of_worker(worker)) for worker in range(plan.workers)]
    least, most = min(hosted), max(hosted)
    each = counted(most, "task") if least == most else f"{least} to {most} tasks"
    return f"{counted(plan.workers, 'worker')} with {each} each"


def of_local_preference(plan: PhysicalPlan) -> str:
    """Describe the decision of `prefer_local`."""
    staying = [edge for edge in plan.edges if isinstance(edge.grouping, LocalWhileHeldGrouping)]
    return (
        f"subscriptions that stay in a worker while max spout pending holds their spouts: {_edges(staying)}"
    )


def of_crossing(plan: PhysicalPlan) -> str:
    """Describe the decision of `find_crossings`."""
    return f"subscriptions that can cross workers: {_edges(edge for edge in plan.edges if edge.crosses)}"


def of_supersteps(plan: PhysicalPlan) -> str:
    """Describe the decision of `cut_supersteps`."""
    return f"a tuple tree needs {counted(plan.supersteps, 'exchange')} to reach its leaves"


def of_ends(plan: PhysicalPlan) -> str:
    """Describe the decision of `schedule_ends`."""
    ends = [
        f"{bolt} in superstep {superstep} of round {number}"
        for bolt, (number, superstep) in plan.ends_of_batches.items()
    ]
    return f"batch bolts are informed of the end of a batch: {_listed(ends)}"


def of_flushes(plan: PhysicalPlan) -> str:
    """Describe the decision of `order_flushes`."""
    turns = [f"{bolt} in turn {turn}" for bolt, turn in plan.flush_turns.items()]
    return f"bolts flush what they hold at the end of the input: {_listed(turns)}"


def _edges(edges: Iterable[EdgePlan]) -> str:
    return _listed(
        f"{edge.source}{'' if edge.stream == 'default' else ':' + edge.stream} -> {edge.target}"
        for edge in edges
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
