"""Decides which shuffles may stay in the sender's worker while max spout pending holds spouts back (B4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stormspark.grouping import LocalWhileHeldGrouping, NoneGrouping, ShuffleGrouping
from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import EdgePlan, PhysicalPlan
from stormspark.plan.reachability import spouts_of

__all__ = ["prefer_local"]


def prefer_local(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Let plain shuffles and none groupings stay in the sender's worker while max spout pending holds their spouts back.

    A tree that crosses workers ends with its round, so under a small limit only a few trees end per round. A grouping is replaced
    only if all spouts whose tuples it carries have such a limit. Groupings with a key are never replaced. A shuffle is not
    replaced in these cases:

    - if ``topology.disable.loadaware.messaging`` is set: true asks for even shares, and false for Storm's own preference (D6);
    - if batches are transactions, because then every tree ends with its batch, wherever it has been;
    - if it carries record batches, which are divided among the tasks as a whole.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout(), parallelism=2)
    >>> _ = builder.set_bolt("count", TestWordCounter(), parallelism=2).shuffle_grouping("words")
    >>> conf = {"topology.workers": 2, "topology.max.spout.pending": 200}
    >>> [edge.grouping.describe() for edge in plan_topology(builder.create_topology("demo"), conf).edges]
    ['shuffle, local while held']
    """
    settings = plan.settings
    if (
        plan.workers == 1
        or plan.exactly_once
        or not settings.acking
        or settings.disable_load_aware is not None
        or settings.backpressure_strategy != "slow"
    ):
        return plan
    spouts = spouts_of(plan.components, plan.edges)
    return replace(plan, edges=tuple(_preferring(edge, plan, spouts) for edge in plan.edges))


def _preferring(edge: EdgePlan, plan: PhysicalPlan, spouts_of: Mapping[str, frozenset[str]]) -> EdgePlan:
    spouts = sorted(spouts_of[edge.source])
    if (
        type(edge.grouping) not in (ShuffleGrouping, NoneGrouping)
        or not spouts
        or not all(plan.components[spout].settings.max_spout_pending for spout in spouts)
        or plan.components[edge.source].vectorised
        or plan.components[edge.target].vectorised
    ):
        return edge
    return replace(edge, grouping=LocalWhileHeldGrouping(edge.grouping, tuple(spouts)))
