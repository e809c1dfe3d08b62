"""Plans when each batch bolt is told of the end of a batch: in which round, and in which superstep of that round (G5-G7).

A *batch bolt* is a bolt that is told when a batch ends. A batch has ended for such a bolt when two things are true: it has ended
for all components that send to the bolt, and none of their tuples is still on its way. Within a round, a bolt is told in its
**stage**: the superstep by which the bolt has received all tuples of other workers. Committers (`stormspark.spi.COMMIT`), and all
batch bolts after them, are told one round after all other batch bolts.

In a loop there is no superstep by which all tuples have arrived. So no batch bolt may be inside a loop, or come after a loop that
another batch bolt feeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stormspark.api import ComponentDeclaration, Topology
from stormspark.errors import InvalidTopologyError
from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import EdgePlan, PhysicalPlan
from stormspark.plan.reachability import reachable, strong_components
from stormspark.plan.supersteps import stages
from stormspark.spi import COMMIT

__all__ = ["check_batches", "enter_stages", "knows_batches", "schedule_ends"]


def knows_batches(topology: Topology) -> bool:
    """Return whether any component is told of batches. If so, the batches of the topology are transactions."""
    return any(component.kind_of_batch for component in topology.components.values())


def check_batches(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Raise `InvalidTopologyError` for a batch bolt whose batch would have no end.

    Such a bolt is in a loop, or comes after a loop that a batch bolt feeds.
    """
    topology = context.topology
    if not any(_ends(component) for component in topology.components.values()):
        return plan
    successors: dict[str, list[str]] = {component: [] for component in topology.components}
    for component in topology.components.values():
        for stream in component.inputs:
            successors.setdefault(stream.component, []).append(component.id)
    group_of = strong_components(successors)
    after = {node: reachable(node, successors) for node in successors}
    looped = {node for node in successors if node in after[node]}
    for bolt in (component for component in topology.components.values() if _ends(component)):
        loop = sorted(one for one in looped if group_of[one] == group_of[bolt.id])
        if loop:
            msg = (
                f"{_place(bolt)} is a batch bolt in a loop of {', '.join(map(repr, loop))}, and a batch in a loop has no end"
                f": take the bolt out of the loop, or make it an ordinary bolt"
            )
            raise InvalidTopologyError(msg)
        for later in after[bolt.id]:
            component = topology.components[later]
            if not _ends(component):
                continue
            between = sorted(one for one in looped & after[bolt.id] if later in after[one])
            if between:
                msg = (
                    f"{_place(component)} is a batch bolt after a loop of {', '.join(map(repr, between))} that the batch bolt "
                    f"{bolt.id!r} feeds, and a batch in a loop has no end: make one of the two an ordinary bolt"
                )
                raise InvalidTopologyError(msg)
    return plan


def schedule_ends(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Decide in which superstep of which round each batch bolt is told of the end of a batch."""
    return enter_stages(plan, _ending_rounds(context.topology, plan.edges))


def enter_stages(plan: PhysicalPlan, rounds: Mapping[str, int]) -> PhysicalPlan:
    """Enter in which superstep each batch bolt is told of the end. ``rounds`` says in which round, by bolt."""
    stage_of = stages(plan.components, plan.edges)
    return replace(plan, ends_of_batches={bolt: (number, stage_of[bolt]) for bolt, number in rounds.items()})


def _ending_rounds(topology: Topology, edges: Iterable[EdgePlan]) -> Mapping[str, int]:
    """Return the round in which each batch bolt is told of the end. Only rounds that end a batch are counted, from 1.

    Committers, and all batch bolts after them, are told in round 2, and all other batch bolts in round 1. If there are no others,
    all are told in round 1, because nothing has to end before the committers.
    """
    successors: dict[str, list[str]] = {component: [] for component in topology.components}
    for edge in edges:
        successors[edge.source].append(edge.target)
    committers = {one.id for one in topology.components.values() if one.kind_of_batch == COMMIT}
    late = committers.union(*(reachable(one, successors) for one in committers))
    bolts = [one.id for one in topology.components.values() if _ends(one)]
    early = any(bolt not in late for bolt in bolts)
    return {bolt: 2 if early and bolt in late else 1 for bolt in bolts}


def _ends(component: ComponentDeclaration) -> bool:
    return component.kind_of_batch not in ("", "part")


def _place(component: ComponentDeclaration) -> str:
    return f"{component.declared_at}: {component.kind} {component.id!r}"
