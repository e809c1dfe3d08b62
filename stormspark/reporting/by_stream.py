"""What a task has counted on each of its streams. The totals of a task with one stream are those of its stream."""

from __future__ import annotations

from collections.abc import Mapping

from stormspark.metrics import TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.plan.physical import ComponentPlan, PhysicalPlan

__all__ = ["inputs_of", "outputs_of"]


def outputs_of(component: ComponentPlan, counters: TaskCounters) -> Mapping[str, StreamCounts]:
    """Return the counts by the stream that a task emits on; those of a spout's trees, too."""
    if counters.outputs or len(component.streams) != 1:
        return counters.outputs
    (stream,) = component.streams
    if component.kind != "spout":
        return {stream: StreamCounts(counters.emitted, counters.transferred)}
    latency = counters.latency
    return {
        stream: StreamCounts(
            counters.emitted,
            counters.transferred,
            acked=counters.acked,
            failed=counters.failed,
            calls=latency.count,
            call_seconds=latency.seconds,
        )
    }


def inputs_of(
    plan: PhysicalPlan, component: ComponentPlan, counters: TaskCounters
) -> Mapping[tuple[str, str], StreamCounts]:
    """Return the counts by the component and the stream that a task of a bolt reads."""
    if counters.inputs:
        return counters.inputs
    sources = {(edge.source, edge.stream) for edge in plan.edges if edge.target == component.id}
    if len(sources) != 1:
        return {}
    totals = StreamCounts(
        executed=counters.executed,
        acked=counters.acked,
        failed=counters.failed,
        calls=counters.latency.count,
        call_seconds=counters.latency.seconds,
        processed=counters.processed,
        process_seconds=counters.process_seconds,
    )
    return dict.fromkeys(sources, totals)
