"""Measures how fast a topology runs right now: it turns snapshots of counters into rates.

An engine's counters change once per batch, but the display reads them several times per second. Rates from one reading to the
next would be 0, 0, 0, 400,000, 0. So each rate is taken over the last few seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from stormspark.backpressure import OPEN_TREES
from stormspark.metrics import TopologyStatistics
from stormspark.ui.throttling import (
    calls_under_way,
    is_full,
    max_pending,
    paused_share,
    tasks_down,
    throttled_by,
    why_throttled,
)

__all__ = ["Progress", "Speedometer"]

#: The progress line names a spout only if max spout pending held the spout back for at least this share of the last few seconds.
_LEAST_PAUSED = 0.05


@dataclass(frozen=True)
class Progress:
    """The state of a running topology: rates per second over the last few seconds, and counts of the whole run."""

    topology: str
    seconds: float
    batches: int
    #: The mean duration of the batches that ended in the last few seconds. If none has ended, the mean of all batches; None
    #: before the first batch ends.
    batch_ms: float | None
    #: ``execute`` calls of all bolts.
    executed_per_s: float
    #: Acked trees of all spouts.
    acked_per_s: float
    acked: int
    failed: int
    pending: int
    queued: int
    #: The bolt or the limit that slows spouts down, and why (F11); None if no spout is slowed down.
    throttled: str | None = None
    #: Tuples that did not fit into a bolt's queue, and were dropped or failed (X51).
    shed: int = 0
    #: The spout that max spout pending held back longest in the last few seconds, with the share of that time and the spout's
    #: limit; None if no spout was held back for a noticeable time.
    paused: str | None = None
    #: The fullest bolt that `throttled` does not name, and its calls. A bolt is full if it had nearly as many calls under way in
    #: the last few seconds as it may have at once. None if there is no such bolt.
    full: str | None = None
    #: The component with the largest share of tasks that wait for their restart, with their number, unless `throttled` has it.
    #: None if there is no such component.
    down: str | None = None
    #: What the first batch waits for; an empty string once a batch has ended.
    waits_for: str = ""

    def __str__(self) -> str:
        """Return the progress line.

        >>> print(Progress("words", 12.3, 14, 980.0, 412_300.4, 1000, 12_000, 1, 1000, 0))
        words 12 s  412,300 tuples/s  acked 12,000 (1,000/s)  failed 1  pending 1,000  batch 14: 980 ms
        >>> throttled = "count (queue 98 MB of 100)"
        >>> print(Progress("words", 12.3, 14, None, 1000, 0, 0, 0, 0, 0, throttled))
        words 12 s  1,000 tuples/s  throttled by count (queue 98 MB of 100)  acked 0 (0/s)  failed 0  pending 0  batch 14
        >>> print(Progress("words", 12.3, 14, None, 1000, 0, 0, 0, 0, 0, full="ask: 100 of 100 calls under way"))
        words 12 s  1,000 tuples/s  ask: 100 of 100 calls under way  acked 0 (0/s)  failed 0  pending 0  batch 14
        >>> print(Progress("words", 3.2, 0, None, 0, 0, 0, 0, 0, 0, waits_for="Spark starts the query"))
        words 3 s  starts: Spark starts the query
        """
        if self.waits_for:
            return f"{self.topology} {self.seconds:.0f} s  starts: {self.waits_for}"
        batch = f"{self.batches}" if self.batch_ms is None else f"{self.batches}: {self.batch_ms:,.0f} ms"
        queued = f"  queued {self.queued:,}" if self.queued else ""
        # The reason for a low rate stands beside the rate. A narrow terminal cuts off the end of the line.
        throttled = f"  throttled by {self.throttled}" if self.throttled else ""
        paused = f"  paused {self.paused}" if self.paused else ""
        full = f"  {self.full}" if self.full else ""
        down = f"  {self.down}" if self.down else ""
        shed = f"  shed {self.shed:,}" if self.shed else ""
        return (
            f"{self.topology} {self.seconds:.0f} s  {self.executed_per_s:,.0f} tuples/s{throttled}{paused}{full}{down}  "
            f"acked {self.acked:,} ({self.acked_per_s:,.0f}/s)  failed {self.failed:,}{shed}  "
            f"pending {self.pending:,}{queued}  batch {batch}"
        )


class _Sample(NamedTuple):
    at: float
    executed: int
    acked: int
    batches: int
    batch_ms_sum: float
    #: For each bolt: how many calls have ended, and how many seconds they took.
    work: Mapping[str, tuple[int, float]]
    #: For each spout: the milliseconds for which max spout pending has held the spout's tasks back.
    held_ms: Mapping[str, float]
    #: For each bolt that may have several calls under way at once: how many were under way, on average.
    calls: Mapping[str, float]


class Speedometer:
    """Turns snapshots into `Progress`. It has no clock: each snapshot says for how long the topology has run.

    >>> from stormspark.metrics import LatencySummary, TaskCounters, TopologyStatistics, summarise
    >>> def snapshot(seconds, executed):
    ...     bolt = summarise("bolt", 1, [TaskCounters(executed=executed)], None)
    ...     return TopologyStatistics("words", "local", seconds, 1, LatencySummary(), {"count": bolt})
    >>> speedometer = Speedometer()
    >>> _ = speedometer.read(snapshot(1.0, 0))
    >>> speedometer.read(snapshot(3.0, 5000)).executed_per_s
    2500.0
    """

    def __init__(self, window: float = 5.0) -> None:
        self._window = window
        self._samples: deque[_Sample] = deque()

    def read(self, statistics: TopologyStatistics, waits_for: str = "") -> Progress:
        """Note one more snapshot, and return the progress over the last ``window`` seconds.

        ``waits_for`` says what the first batch waits for, if it has not ended.
        """
        new = _Sample(
            at=statistics.seconds,
            executed=statistics.total("executed", "bolt"),
            acked=statistics.total("acked", "spout"),
            batches=statistics.batches,
            batch_ms_sum=(statistics.batch_ms.mean or 0.0) * statistics.batches,
            work={
                name: (component.histogram.count, component.histogram.seconds)
                for name, component in statistics.components.items()
                if component.kind == "bolt"
            },
            held_ms={
                name: component.skipped_max_spout_ms
                for name, component in statistics.components.items()
                if component.kind == "spout"
            },
            calls={
                name: component.calls_under_way
                for name, component in statistics.components.items()
                if component.calls_at_once
            },
        )
        self._samples.append(new)
        # Keep the last sample from before the window, so that the rates span the whole window.
        while len(self._samples) > 1 and self._samples[1].at <= new.at - self._window:
            self._samples.popleft()
        old = self._samples[0]
        full, down = self._full(statistics), _down(statistics)
        bolt, throttled = _throttled(statistics, old, new, full, down)
        if statistics.before_stop is not None:
            # The topology stops, so no spout is asked for tuples, and nothing slows it down.
            bolt = throttled = None
        elapsed = new.at - old.at
        ended = new.batches - old.batches
        return Progress(
            topology=statistics.topology,
            seconds=statistics.seconds,
            batches=statistics.batches,
            batch_ms=(new.batch_ms_sum - old.batch_ms_sum) / ended if ended else statistics.batch_ms.mean,
            executed_per_s=(new.executed - old.executed) / elapsed if elapsed else 0.0,
            acked_per_s=(new.acked - old.acked) / elapsed if elapsed else 0.0,
            acked=new.acked,
            failed=statistics.total("failed", "spout"),
            pending=statistics.total("pending"),
            queued=statistics.total("queued"),
            throttled=throttled,
            shed=statistics.total("shed"),
            paused=_paused(statistics, old, new),
            full=next((f"{name}: {calls}" for name, calls in full.items() if name != bolt), None),
            down=next(
                (f"{name}: {tasks}" for name, tasks in down.items() if tasks not in (throttled or "")), None
            ),
            waits_for=waits_for,
        )

    def _full(self, statistics: TopologyStatistics) -> Mapping[str, str]:
        """Return the bolts that have been full for the last few seconds, the fullest first, each with its calls as text."""
        shares: dict[str, tuple[float, str]] = {}
        for name, component in statistics.components.items():
            if at_once := component.calls_at_once:
                calls = fmean(sample.calls.get(name, 0.0) for sample in self._samples)
                if is_full(calls, at_once):
                    shares[name] = calls / at_once, calls_under_way(calls, at_once)
        return {name: calls for name, (_, calls) in sorted(shares.items(), key=lambda one: -one[1][0])}


def _down(statistics: TopologyStatistics) -> Mapping[str, str]:
    """Return the components with tasks that wait for their restart, each with their number as text. The component with the
    largest share of such tasks comes first.
    """
    down = [(name, one) for name, one in statistics.components.items() if one.down]
    down.sort(key=lambda pair: -pair[1].down / pair[1].tasks)
    return {name: tasks_down(one) for name, one in down}


def _throttled(
    statistics: TopologyStatistics,
    old: _Sample,
    new: _Sample,
    full: Mapping[str, str],
    down: Mapping[str, str],
) -> tuple[str | None, str | None]:
    """Return the name of the bolt that slows spouts down, and a text for people.

    The name is None if a limit slows them down, or nothing does. The text names the bolt or the limit, with the reason; it is
    None if nothing slows the spouts down. The time per tuple is a mean over the last few seconds. ``full`` says how many calls of
    full bolts are under way, and ``down`` how many tasks wait for their restart. If all tasks do, no tuple takes any time.
    """
    pressure, bolt = statistics.pressure, throttled_by(statistics)
    if pressure is not None and any(spout.throttled_by == OPEN_TREES for spout in pressure.spouts.values()):
        return None, OPEN_TREES
    if bolt is None or pressure is None:
        return None, None
    (ended_before, seconds_before), (ended, seconds) = old.work.get(bolt, (0, 0.0)), new.work[bolt]
    if ended == ended_before:  # the first snapshot, or a very slow tuple: use the mean of the run
        ended_before, seconds_before = 0, 0.0
    done = ended - ended_before
    component = statistics.components[bolt]
    cost = (seconds - seconds_before) / done * 1000 if done and component.down < component.tasks else None
    calls = ", ".join(filter(None, (full.get(bolt), down.get(bolt))))
    return bolt, f"{bolt} ({why_throttled(pressure.bolts[bolt], cost, calls)})"


def _paused(statistics: TopologyStatistics, old: _Sample, new: _Sample) -> str | None:
    """Return the text for `Progress.paused`; None if no spout was held back for long enough."""
    shares = {
        name: paused_share(
            held - old.held_ms.get(name, 0.0), statistics.components[name].tasks, new.at - old.at
        )
        for name, held in new.held_ms.items()
    }
    spout = max(shares, key=lambda name: shares[name], default=None)
    if spout is None or shares[spout] < _LEAST_PAUSED:
        return None
    return f"{shares[spout]:.0%} at max pending of {spout} ({max_pending(spout, statistics) or 'no limit known'})"
