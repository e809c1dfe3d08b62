"""What is legal in a plan but most likely not meant, or slower than it need be: said once, when a topology
starts.
"""

from __future__ import annotations

from stormspark.config import Settings, merged, unknown_keys
from stormspark.plan.physical import PhysicalPlan

__all__ = ["advice"]


def advice(plan: PhysicalPlan) -> list[str]:
    """One sentence for each thing that the user should hear about, with what to do.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout())
    >>> advice(plan_topology(builder.create_topology("demo", {"topology.wrokers": 2})))
    ['unknown setting topology.wrokers: did you mean topology.workers?']
    """
    said = [
        f"unknown setting {key}" + (f": did you mean {nearest}?" if nearest else "")
        for key, nearest in unknown_keys(merged(plan.conf, *(c.conf for c in plan.components.values())))
    ]
    settings = plan.settings
    for component in plan.components.values():
        limit = Settings.read(merged(plan.conf, component.conf)).max_spout_pending
        if component.kind != "spout" or not limit:
            continue
        place = f"spout {component.id!r}: topology.max.spout.pending is {limit}"
        if not settings.enable_message_timeouts:
            said.append(
                f"{place} and message timeouts are off: one tuple that is never acked or failed stalls the spout for ever "
                f"(W15); set topology.enable.message.timeouts to true"
            )
        if not settings.acking:
            said.append(
                f"{place}, but acking is off (topology.acker.executors is 0), so it limits nothing (B4)"
            )
        elif plan.supersteps:
            batch = settings.batch_target_ms / 1000
            rate = limit * len(component.tasks) / batch
            said.append(
                f"{place}, and trees that cross workers end with their batch: that bounds the rate to some {rate:,.0f} tuples/s "
                f"at batches of {batch:g} s; {50_000 * batch:,.0f} or more would not be felt"
            )
    return said
