"""Storm's metrics of version 1, as a consumer gets them: ``__emit-count`` and the others of each task (J14), and Heron's (J19).

A count is what was added since the last reading, as in Storm, and a latency is the mean of that time, in milliseconds. The counts
are exact (W21).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from stormspark.driver.source_lag import PartitionLag
from stormspark.metrics import DataPoint, TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.plan.physical import ComponentPlan, PhysicalPlan
from stormspark.reporting.by_stream import inputs_of, outputs_of
from stormspark.reporting.measured import Measured, tasks_of

__all__ = ["Buckets"]

_SYSTEM, _SYSTEM_TASK = "__system", -1
_NONE = StreamCounts()


class _Skipped(NamedTuple):
    """For how many milliseconds a spout was not asked for tuples, for each reason, and how many trees have timed out."""

    backpressure_ms: float = 0.0
    max_spout_ms: float = 0.0
    inactive_ms: float = 0.0
    timed_out: int = 0


class _Seen(NamedTuple):
    """The totals of a task at the last reading: by stream that it emits on, and by ``component:stream`` that it reads."""

    outputs: Mapping[str, StreamCounts] = {}
    inputs: Mapping[str, StreamCounts] = {}
    skipped: _Skipped = _Skipped()

    def since(self, earlier: _Seen) -> _Seen:
        """Return what was added."""
        return _Seen(
            _since(self.outputs, earlier.outputs),
            _since(self.inputs, earlier.inputs),
            _Skipped._make(now - before for now, before in zip(self.skipped, earlier.skipped, strict=True)),
        )


class Buckets:
    """Reads the metrics of all tasks, a bucket of ``bucket_secs`` at a time."""

    def __init__(self, measured: Measured, bucket_secs: float) -> None:
        self._measured, self._secs = measured, bucket_secs
        #: By component and index, because a rebalance gives tasks other ids.
        self._seen: dict[tuple[str, int], _Seen] = {}

    def read(self, now: float) -> Iterator[list[DataPoint]]:
        """Yield the data points of each task that has reported, and of each worker. ``now`` is in seconds since 1970."""
        plan, by_task = tasks_of(self._measured)
        lags = self._measured.lags()
        for task, counters in sorted(by_task.items()):
            planned = plan.tasks[task]
            component = plan.components[planned.component]
            key, seen = (component.id, planned.index), _seen(plan, component, counters)
            added, self._seen[key] = seen.since(self._seen.get(key, _Seen())), seen
            values = (_spout if component.kind == "spout" else _bolt)(added, counters)
            if planned.index == 0 and component.id in lags:
                # The lag is the component's, but a data point is always a task's.
                values["kafkaOffset"] = _offsets(lags[component.id])
            yield self._points(component.id, task, values, now)
        for place in self._measured.worker_places():
            if place.pid:
                values = {"uptimeSecs": max(0.0, now - place.since), "startTimeSecs": place.since}
                yield self._points(_SYSTEM, _SYSTEM_TASK, {**values, "worker": place.worker}, now)

    def _points(self, component: str, task: int, values: Mapping[str, Any], now: float) -> list[DataPoint]:
        return [
            DataPoint(component, task, name, value, int(now * 1000), self._secs)
            for name, value in values.items()
        ]


def _seen(plan: PhysicalPlan, component: ComponentPlan, counters: TaskCounters) -> _Seen:
    inputs = inputs_of(plan, component, counters) if component.kind == "bolt" else {}
    return _Seen(
        outputs_of(component, counters),
        {f"{source}:{stream}": counts for (source, stream), counts in inputs.items()},
        _Skipped(
            counters.skipped_backpressure_ms,
            counters.skipped_max_spout_ms,
            counters.skipped_inactive_ms,
            counters.timed_out,
        ),
    )


def _since(now: Mapping[str, StreamCounts], before: Mapping[str, StreamCounts]) -> dict[str, StreamCounts]:
    return {
        stream: StreamCounts._make(a - b for a, b in zip(counts, before.get(stream, _NONE), strict=True))
        for stream, counts in now.items()
    }


def _spout(added: _Seen, counters: TaskCounters) -> dict[str, Any]:
    return {
        **_emitted(added),
        "__ack-count": {stream: one.acked for stream, one in added.outputs.items()},
        "__fail-count": {stream: one.failed for stream, one in added.outputs.items()},
        "__complete-latency": _mean(added.outputs),
        "__skipped-backpressure-ms": added.skipped.backpressure_ms,
        "__skipped-max-spout-ms": added.skipped.max_spout_ms,
        "__skipped-inactive-ms": added.skipped.inactive_ms,
        "__timeout-count": added.skipped.timed_out,
        "__pending-acked-count": counters.pending,
    }


def _bolt(added: _Seen, counters: TaskCounters) -> dict[str, Any]:
    inputs = added.inputs
    return {
        **_emitted(added),
        "__ack-count": {source: one.acked for source, one in inputs.items()},
        "__fail-count": {source: one.failed for source, one in inputs.items()},
        "__execute-count": {source: one.executed for source, one in inputs.items()},
        "__execute-latency": _mean(inputs),
        "__process-latency": {
            source: ms for source, one in inputs.items() if (ms := _process_ms(one)) is not None
        },
        "__execute-time-ns": {source: int(one.call_seconds * 1e9) for source, one in inputs.items()},
        "__receive": {"population": counters.queued, "bytes": counters.queued_bytes},
    }


def _emitted(added: _Seen) -> dict[str, Any]:
    return {
        "__emit-count": {stream: one.emitted for stream, one in added.outputs.items()},
        "__transfer-count": {stream: one.transferred for stream, one in added.outputs.items()},
    }


def _mean(streams: Mapping[str, StreamCounts]) -> dict[str, float]:
    return {stream: one.call_seconds / one.calls * 1000 for stream, one in streams.items() if one.calls}


def _process_ms(one: StreamCounts) -> float | None:
    """Return the mean time from the start of execute until the ack (J15). Within execute, that is taken for all of execute."""
    at_once = max(0, one.acked - one.processed) if one.calls else 0
    if not at_once + one.processed:
        return None
    seconds = at_once * one.call_seconds / one.calls if at_once else 0.0
    return (seconds + one.process_seconds) / (at_once + one.processed) * 1000


def _offsets(topics: Mapping[str, Mapping[str, PartitionLag]]) -> Mapping[str, int]:
    """Return what Storm's spout for Kafka reports: offsets of partitions, and totals of topics."""
    found: dict[str, int] = {}
    for topic, partitions in topics.items():
        found[f"{topic}/totalSpoutLag"] = sum(one.lag for one in partitions.values())
        for partition, one in partitions.items():
            found[f"{topic}/partition_{partition}/spoutLag"] = one.lag
            found[f"{topic}/partition_{partition}/latestTimeOffset"] = one.end
    return found
