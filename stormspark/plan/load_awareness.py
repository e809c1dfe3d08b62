"""Storm's load-aware shuffle, for configurations with ``topology.disable.loadaware.messaging: false`` (D6)."""

from __future__ import annotations

from dataclasses import replace

from stormspark.grouping import Grouping, LoadAwareShuffleGrouping, LocalOrShuffleGrouping, ShuffleGrouping
from stormspark.plan.context import PlanningContext
from stormspark.plan.physical import PhysicalPlan

__all__ = ["follow_load"]


def _load_aware(grouping: Grouping) -> Grouping:
    if isinstance(grouping, ShuffleGrouping):
        return LoadAwareShuffleGrouping()
    if isinstance(grouping, LocalOrShuffleGrouping):
        return LoadAwareShuffleGrouping(stay_local=True)
    return grouping


def follow_load(plan: PhysicalPlan, context: PlanningContext) -> PhysicalPlan:
    """Replace shuffles by load-aware shuffles, if ``topology.disable.loadaware.messaging`` is set to false.

    This concerns shuffle groupings and local-or-shuffle groupings. False is Storm's default, but in stormspark the configuration
    has to set it. Otherwise a shuffle is a plain round robin, which gives all tasks the same share (W17).

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordCounter, TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout())
    >>> _ = builder.set_bolt("count", TestWordCounter()).shuffle_grouping("words")
    >>> plan = plan_topology(builder.create_topology("demo"), {"topology.disable.loadaware.messaging": False})
    >>> [edge.grouping for edge in plan.edges]
    [LoadAwareShuffleGrouping(stay_local=False)]
    """
    if plan.settings.disable_load_aware is not False:
        return plan
    return replace(
        plan, edges=tuple(replace(edge, grouping=_load_aware(edge.grouping)) for edge in plan.edges)
    )
