"""Sums of a topology's counters by component, which are cheap enough to be made every second.

`stormspark.metrics.TopologyStatistics` has percentiles too, and costs ten times as much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from stormspark.metrics.statistics import TaskCounters

__all__ = ["GAUGES", "SUMMED", "Sums", "sums_of"]

#: What is summed, by the names of `TaskCounters`. ``calls`` and ``call_seconds`` are those of latencies.
SUMMED = (
    "emitted",
    "transferred",
    "executed",
    "acked",
    "failed",
    "calls",
    "call_seconds",
    "errors",
    "pending",
    "queued",
    "queued_bytes",
)
#: Those that do not grow for ever, but say how much there is now.
GAUGES = ("pending", "queued", "queued_bytes")
_read = attrgetter(
    *({"calls": "latency.count", "call_seconds": "latency.seconds"}.get(name, name) for name in SUMMED)
)


class Sums(NamedTuple):
    """``components`` has a row for each component in the order of ``names``, and a column for each of `SUMMED`.

    ``edges`` has for each subscription of the plan how many of its tuples were executed; NaN where nobody counts by subscription,
    because the bolt has only one, or has two to the same stream.

    ``phases`` has the seconds of each part of all batches, and how many batches had it.
    """

    names: Sequence[str]
    components: np.ndarray
    edges: np.ndarray
    batches: int
    batch_seconds: float
    phases: Mapping[str, tuple[float, int]]


def sums_of(
    names: Sequence[str],
    edges: Sequence[tuple[str, str, str]],
    counters: Iterable[tuple[str, TaskCounters]],
) -> tuple[np.ndarray, np.ndarray]:
    """Return `Sums.components` and `Sums.edges`. Each of the counters comes with its component.

    The ``edges`` are target, source and stream of each subscription.

    >>> sums, _ = sums_of(["a", "b"], [], [("b", TaskCounters(emitted=1)), ("b", TaskCounters(emitted=2))])
    >>> sums[:, 0].tolist()
    [0.0, 3.0]
    """
    row = {name: number for number, name in enumerate(names)}
    found = np.zeros((len(names), len(SUMMED)))
    rows, values = [], []
    executed: dict[tuple[str, str, str], int] = {}
    for component, one in counters:
        for (source, stream), counts in one.inputs.items():
            key = (component, source, stream)
            executed[key] = executed.get(key, 0) + counts.executed
        rows.append(row[component])
        values.append(_read(one))
    if values:
        np.add.at(found, rows, np.array(values, dtype=np.float64))
    twice = {key for key, times in Counter(edges).items() if times > 1}
    by_edge = [float(executed[key]) if key in executed and key not in twice else np.nan for key in edges]
    return found, np.array(by_edge)
