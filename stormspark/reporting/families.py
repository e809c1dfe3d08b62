"""What there is to measure of a topology, as families of samples: a name, a kind, and a value for each set of labels.

The names follow Prometheus's rules (base units, ``_total``), and the words are Storm's (J15). Counts are exact, not sampled
(W21).

The number of samples is bounded. Each count has a sample for each task if there are at most `MOST_TASKS`, else one for each
component, with an empty label ``task``. Of a user's metric with many keys, the first `MOST_KEYS` of each task are shown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real

from stormspark.metrics import DataPoint, TaskCounters, TopologyStatistics
from stormspark.metrics.streams import StreamCounts, merged_streams
from stormspark.reporting.by_stream import inputs_of, outputs_of
from stormspark.reporting.family import PREFIX, Distribution, Family, Sample
from stormspark.reporting.measured import Measured, tasks_of

__all__ = ["MOST_KEYS", "MOST_TASKS", "families"]

#: Above as many tasks, the tasks of a component are added up.
MOST_TASKS = 1000
#: Of a user's metric, as many keys are shown for each task.
MOST_KEYS = 100


#: For spouts (s), bolts (b) or both: the attribute of `TaskCounters`, the name and the meaning of each count.
_COUNTS = (
    ("sb", "emitted", "emitted_total", "Calls of emit"),
    ("sb", "transferred", "transferred_total", "Copies of emitted tuples that were delivered"),
    ("b", "executed", "executed_total", "Tuples that were executed"),
    ("sb", "acked", "acked_total", "Trees that were acked, for a spout; tuples that a bolt has acked"),
    ("sb", "failed", "failed_total", "Trees that failed, for a spout; tuples that a bolt has failed"),
    ("s", "failed_by_bolt", "failed_by_bolt_total", "Trees that a bolt has failed"),
    ("s", "timed_out", "timed_out_total", "Trees that failed because of their timeout"),
    ("s", "worker_lost", "worker_lost_total", "Trees that failed because a worker was lost"),
    ("s", "dead_letters", "dead_letters_total", "Rows of a source that were given up"),
    ("b", "shed", "shed_total", "Tuples that a full queue did not take"),
    ("b", "late", "late_total", "Tuples that came after their window had fired"),
    ("sb", "restarts", "restarts_total", "Restarts of tasks after errors"),
    ("sb", "errors", "errors_total", "Errors that user code has raised or reported"),
)
_SKIPPED = (
    ("backpressure", "skipped_backpressure_ms"),
    ("max_spout_pending", "skipped_max_spout_ms"),
    ("inactive", "skipped_inactive_ms"),
)
_GAUGES = (
    ("s", "pending", "pending", "Open trees"),
    ("b", "queued", "queued", "Tuples that wait in the queue"),
    ("b", "queued_bytes", "queued_bytes", "Estimated size of the tuples that wait in the queue"),
    ("b", "calls_under_way", "calls_under_way", "Calls under way at once, for bolts whose calls may wait"),
    ("sb", "down", "down", "Tasks that wait for their restart after an error"),
)


def families(
    measured: Measured,
    *,
    status: str | None = None,
    capacities: Mapping[str, float] | None = None,
    by_task: bool | None = None,
) -> list[Family]:
    """Return all families that have a sample now.

    ``status`` is Storm's word for the state of the topology, and ``capacities`` the capacity of each bolt (J16), as far as
    they are known. ``by_task`` says whether each task has samples of its own; None: if there are not too many.
    """
    found = _Families(measured, status, capacities or {}, by_task)
    made = (
        *found.topology(),
        *found.tasks(),
        *found.streams(),
        *found.latencies(),
        *found.pressure(),
        *found.batches(),
        *found.lags(),
        *found.workers(),
        found.users(),
    )
    return [family for family in made if family.samples]


class _Families:
    def __init__(
        self, measured: Measured, status: str | None, capacities: Mapping[str, float], by_task: bool | None
    ) -> None:
        self._measured, self._status, self._capacities = measured, status, capacities
        self._plan, self._counters = tasks_of(measured)
        self._statistics: TopologyStatistics = measured.statistics()
        self._is_by_task = len(self._plan.tasks) <= MOST_TASKS if by_task is None else by_task
        self._rows = list(self._by_task() if self._is_by_task else self._by_component())

    def _by_task(self) -> Iterator[tuple[str, dict[str, str], TaskCounters]]:
        """Yield the kind, the labels and the counters of each task that has reported."""
        for task, counters in sorted(self._counters.items()):
            component = self._plan.tasks[task].component
            yield self._kind(component), self._of(component, task), counters

    def _by_component(self) -> Iterator[tuple[str, dict[str, str], TaskCounters]]:
        sums: dict[str, TaskCounters] = {}
        for task, counters in self._counters.items():
            sums.setdefault(self._plan.tasks[task].component, TaskCounters()).merge(counters)
        for component, counters in sums.items():
            yield self._kind(component), self._of(component, None), counters

    def _kind(self, component: str) -> str:
        return self._plan.components[component].kind[0]

    def _of(self, component: str, task: int | None) -> dict[str, str]:
        return self._labels(component=component, task="" if task is None else str(task))

    def _labels(self, **labels: str) -> dict[str, str]:
        return {"topology": self._plan.topology, **labels}

    def _one(self, name: str, kind: str, text: str, value: float | Distribution, **labels: str) -> Family:
        return Family(PREFIX + name, kind, text, [Sample(self._labels(**labels), value)])

    def _some(
        self,
        name: str,
        kind: str,
        text: str,
        values: Iterable[tuple[Mapping[str, str], float | Distribution]],
    ) -> Family:
        return Family(
            PREFIX + name, kind, text, [Sample(self._labels(**labels), value) for labels, value in values]
        )

    def topology(self) -> Iterator[Family]:
        statistics = self._statistics
        yield self._one(
            "topology_info", "gauge", "1 for this run of the topology", 1,
            id=self._measured.storm_id, engine=statistics.engine,
        )  # fmt: skip
        yield self._one("uptime_seconds", "gauge", "Seconds since the topology began", statistics.seconds)
        if self._status is not None:
            yield self._some(
                "status", "gauge", "1 for the state of the topology, 0 for the others",
                (
                    ({"status": one}, float(one == self._status))
                    for one in ("ACTIVE", "INACTIVE", "KILLED", "REBALANCING")
                ),
            )  # fmt: skip
        yield self._one(
            "backlog", "gauge", "Tuples, rows, calls and acks that wait anywhere", statistics.backlog
        )

    def tasks(self) -> Iterator[Family]:
        for kind, families in (("counter", _COUNTS), ("gauge", _GAUGES)):
            for kinds, attribute, name, text in families:
                samples = [
                    Sample(labels, getattr(counters, attribute))
                    for of, labels, counters in self._rows
                    if of in kinds
                ]
                yield Family(PREFIX + name, kind, text, samples)
        skipped = [
            Sample({**labels, "reason": reason}, getattr(counters, attribute) / 1000)
            for of, labels, counters in self._rows
            if of == "s"
            for reason, attribute in _SKIPPED
        ]
        text = "Seconds in which a spout was not asked for tuples"
        yield Family(f"{PREFIX}skipped_seconds_total", "counter", text, skipped)
        spent = [
            (labels, counters.latency.count, counters.latency.seconds)
            for of, labels, counters in self._rows
            if of == "b"
        ]
        text = "Seconds that a task of a bolt has spent in execute"
        yield Family(
            f"{PREFIX}task_execute_seconds_total",
            "counter",
            text,
            [Sample(one, secs) for one, _, secs in spent],
        )

    def streams(self) -> Iterator[Family]:
        """Return the counts of all tasks of a component by stream."""
        outputs: dict[tuple[str, ...], StreamCounts] = {}
        inputs: dict[tuple[str, ...], StreamCounts] = {}
        for task, counters in self._counters.items():
            component = self._plan.components[self._plan.tasks[task].component]
            written: dict[tuple[str, ...], StreamCounts] = {
                (component.id, stream): one for stream, one in outputs_of(component, counters).items()
            }
            outputs = merged_streams(outputs, written)
            if component.kind == "bolt":
                read = inputs_of(self._plan, component, counters)
                inputs = merged_streams(
                    inputs, {(component.id, *source): one for source, one in read.items()}
                )
        for name, names, streams, attribute, text in (
            ("stream_emitted_total", ("stream",), outputs, "emitted", "Calls of emit by stream"),
            (
                "stream_transferred_total",
                ("stream",),
                outputs,
                "transferred",
                "Copies that were delivered, by stream",
            ),
            (
                "input_executed_total",
                ("source", "stream"),
                inputs,
                "executed",
                "Tuples of an input that were executed",
            ),
            (
                "input_acked_total",
                ("source", "stream"),
                inputs,
                "acked",
                "Tuples of an input that a bolt has acked",
            ),
            (
                "input_failed_total",
                ("source", "stream"),
                inputs,
                "failed",
                "Tuples of an input that a bolt has failed",
            ),
        ):
            yield self._some(
                name, "counter", text,
                (
                    (dict(zip(("component", *names), key, strict=True)), getattr(one, attribute))
                    for key, one in streams.items()
                ),
            )  # fmt: skip

    def latencies(self) -> Iterator[Family]:
        for kind, name, text in (
            ("spout", "complete_latency_seconds", "Seconds from the emit of a spout to the ack of the tree"),
            ("bolt", "execute_latency_seconds", "Seconds of a tuple in execute"),
        ):
            yield self._some(
                name, "histogram", text,
                (
                    ({"component": component}, Distribution.of(one.histogram))
                    for component, one in self._statistics.components.items()
                    if one.kind == kind and one.histogram.count
                ),
            )  # fmt: skip
        yield self._some(
            "capacity", "gauge", "Share of the last ten minutes that the busiest executor was in execute",
            (({"component": component}, value) for component, value in self._capacities.items()),
        )  # fmt: skip

    def pressure(self) -> Iterator[Family]:
        pressure = self._statistics.pressure
        if pressure is None:
            return
        spouts = [({"component": name}, one) for name, one in pressure.spouts.items()]
        bolts = [({"component": name}, one) for name, one in pressure.bolts.items()]
        yield self._some(
            "spout_limit", "gauge", "Tuples that all tasks of a spout may emit in a round; no sample: no limit",
            ((labels, one.limit) for labels, one in spouts if one.limit is not None),
        )  # fmt: skip
        yield self._some(
            "throttled_seconds_total", "counter", "Seconds in which a bolt, or open trees, have limited a spout",
            (
                ({**labels, "by": by}, ms / 1000)
                for labels, one in spouts
                for by, ms in one.throttled_ms.items()
            ),
        )  # fmt: skip
        yield self._some(
            "max_spout_pending", "gauge", "Open trees that each task of a spout may have; no sample: no limit",
            ((labels, one.max_pending) for labels, one in spouts if one.max_pending is not None),
        )  # fmt: skip
        yield self._some(
            "queue_high_mark", "gauge", "Waiting tuples above which a bolt slows its spouts",
            ((labels, one.high_mark) for labels, one in bolts),
        )  # fmt: skip
        yield self._some(
            "queue_high_mark_bytes", "gauge", "Size of waiting tuples above which a bolt slows its spouts",
            ((labels, one.high_mark_bytes) for labels, one in bolts),
        )  # fmt: skip
        yield self._some(
            "above_high_mark", "gauge", "Whether a bolt is above one of its high marks",
            ((labels, float(one.above)) for labels, one in bolts),
        )  # fmt: skip
        yield self._some(
            "backlog_seconds", "gauge", "Seconds that the busiest worker of a bolt needs for what waits",
            ((labels, one.backlog_seconds) for labels, one in bolts),
        )  # fmt: skip
        yield self._one(
            "limit_changes_total", "counter", "Changes of limits of spouts", pressure.limit_changes
        )

    def batches(self) -> Iterator[Family]:
        statistics, durations = self._statistics, self._measured.durations()
        if durations.batches.count:
            text = "Seconds of a batch, or of a round of one"
            yield self._one("batch_seconds", "histogram", text, Distribution.of(durations.batches))
        yield self._some(
            "batch_part_seconds_total", "counter", "Seconds that each part of batches took",
            (({"part": part}, one.seconds) for part, one in durations.parts.items()),
        )  # fmt: skip
        yield self._one("batches_total", "counter", "Batches that have ended", statistics.batches_ended)
        text = "Attempts at transactions that were taken back"
        yield self._one("taken_back_total", "counter", text, statistics.taken_back)

    def lags(self) -> Iterator[Family]:
        lags = [
            ({"component": component, "topic": topic, "partition": partition}, one)
            for component, topics in self._measured.lags().items()
            for topic, partitions in topics.items()
            for partition, one in partitions.items()
        ]
        yield self._some(
            "kafka_lag", "gauge", "Messages of a partition that were not handed out to tasks yet",
            ((labels, one.lag) for labels, one in lags),
        )  # fmt: skip
        yield self._some(
            "kafka_end_offset", "gauge", "End of a partition, as last heard",
            ((labels, one.end) for labels, one in lags),
        )  # fmt: skip

    def workers(self) -> Iterator[Family]:
        places = self._measured.worker_places()
        yield self._some(
            "worker_up", "gauge", "1 for a worker that runs, 0 for one that starts",
            (({"worker": str(one.worker), "host": one.host}, float(bool(one.pid))) for one in places),
        )  # fmt: skip
        yield self._some(
            "worker_start_time_seconds", "gauge", "When a worker began, in seconds since 1970",
            (({"worker": str(one.worker), "host": one.host}, one.since) for one in places if one.pid),
        )  # fmt: skip

    def users(self) -> Family:
        """Return the last readings of users' own metrics (J18)."""
        return self._some(
            "user_metric",
            "gauge",
            "Last reading of a metric that a component has registered",
            self._readings(),
        )

    def _readings(self) -> Iterator[tuple[Mapping[str, str], float]]:
        for component, one in self._statistics.components.items():
            for name, points in one.metrics.items():
                if self._is_by_task:
                    for task, point in points.items():
                        yield from _reading({"component": component, "task": str(task), "name": name}, point)
                    continue
                sums: dict[str, float] = {}
                for point in points.values():
                    for labels, value in _reading({}, point):
                        sums[labels["key"]] = sums.get(labels["key"], 0.0) + value
                for key, value in list(sums.items())[:MOST_KEYS]:
                    yield {"component": component, "task": "", "name": name, "key": key}, value


def _reading(labels: Mapping[str, str], point: DataPoint) -> Iterator[tuple[Mapping[str, str], float]]:
    """Yield the numbers of a reading: the reading itself, or the values of its keys. What is no number is left out."""
    values = point.value if isinstance(point.value, Mapping) else {"": point.value}
    shown: dict[str, float] = {}
    for key, value in values.items():
        if len(shown) == MOST_KEYS:
            break
        if isinstance(value, Real):
            with contextlib.suppress(OverflowError):  # a whole number that is larger than any float
                shown[str(key)] = float(value)  # two keys may have one name, such as 1 and "1"
    for key, number in shown.items():
        yield {**labels, "key": key}, number
