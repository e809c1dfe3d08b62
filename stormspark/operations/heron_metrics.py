"""The metrics of a topology by Heron's names (J19): ``__emit-count``, ``__execute-latency/lines/default`` and so on.

Each count and latency has its name alone, with the stream, and for what a bolt reads with the component and the stream. Latencies
are in nanoseconds, as in Heron.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from stormspark.metrics.windows import COUNTED, StreamKey
from stormspark.plan.physical import ComponentPlan, PhysicalPlan

__all__ = ["Values", "instance_of", "metrics_of"]

#: What was counted within some time: of a task, or of a stream of a task.
Values = Callable[[int | StreamKey], np.ndarray]

_EMITTED, _EXECUTED, _ACKED, _FAILED = (
    COUNTED.index(name) for name in ("emitted", "executed", "acked", "failed")
)
_CALLS, _SECONDS, _PROCESSED, _PROCESS_SECONDS = (
    COUNTED.index(name) for name in ("calls", "call_seconds", "processed", "process_seconds")
)


def instance_of(plan: PhysicalPlan, task: int) -> str:
    """Return the id of a task as an instance of Heron: ``container_<worker>_<component>_<task>``, with workers from 1."""
    placed = plan.tasks[task]
    return f"container_{placed.worker + 1}_{placed.component}_{task}"


def metrics_of(plan: PhysicalPlan, component: ComponentPlan, task: int, values: Values) -> dict[str, float]:
    """Return the metrics of a task, from what was counted within some time. Latencies of nothing are left out."""
    found = (
        _of_spout(component, task, values)
        if component.kind == "spout"
        else _of_bolt(plan, component, task, values)
    )
    return {name: value for name, value in found if value is not None}


def _of_spout(component: ComponentPlan, task: int, values: Values) -> Iterator[tuple[str, float | None]]:
    for suffix, row in _outputs(component, task, values).items():
        yield f"__emit-count{suffix}", float(row[_EMITTED])
        yield f"__ack-count{suffix}", float(row[_ACKED])
        yield f"__fail-count{suffix}", float(row[_FAILED])
        yield f"__complete-latency{suffix}", _mean(row[_SECONDS], row[_CALLS])


def _of_bolt(
    plan: PhysicalPlan, component: ComponentPlan, task: int, values: Values
) -> Iterator[tuple[str, float | None]]:
    for suffix, row in _outputs(component, task, values).items():
        yield f"__emit-count{suffix}", float(row[_EMITTED])
    for suffix, row in _inputs(plan, component, task, values).items():
        at_once = max(0.0, row[_ACKED] - row[_PROCESSED])
        execute = row[_SECONDS] / row[_CALLS] if row[_CALLS] else 0.0
        yield f"__execute-count{suffix}", float(row[_EXECUTED])
        yield f"__ack-count{suffix}", float(row[_ACKED])
        yield f"__fail-count{suffix}", float(row[_FAILED])
        yield f"__execute-time-ns{suffix}", float(row[_SECONDS]) * 1e9
        yield f"__execute-latency{suffix}", _mean(row[_SECONDS], row[_CALLS])
        yield (
            f"__process-latency{suffix}",
            _mean(at_once * execute + row[_PROCESS_SECONDS], at_once + row[_PROCESSED]),
        )


def _mean(seconds: float, times: float) -> float | None:
    return float(seconds / times * 1e9) if times > 0 else None


def _outputs(component: ComponentPlan, task: int, values: Values) -> Mapping[str, np.ndarray]:
    found = {"": values(task)}
    several = len(component.streams) > 1
    for stream in component.streams:
        found[f"/{stream}"] = values((task, stream) if several else task)
    return found


def _inputs(
    plan: PhysicalPlan, component: ComponentPlan, task: int, values: Values
) -> Mapping[str, np.ndarray]:
    inputs = [(edge.source, edge.stream) for edge in plan.edges if edge.target == component.id]
    found = {"": values(task)}
    for source, stream in inputs:
        row = values((task, (source, stream)) if len(inputs) > 1 else task)
        found[f"/{source}/{stream}"] = row
        of_stream = f"/{stream}"
        found[of_stream] = found[of_stream] + row if of_stream in found else row
    return found
