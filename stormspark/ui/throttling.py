"""Explains which bolts slow down which spouts: for the progress line, and for the lines below the summary's table."""

from __future__ import annotations

from collections.abc import Iterator

from stormspark.backpressure import BoltPressure
from stormspark.metrics import ComponentStatistics, TopologyStatistics
from stormspark.ui.figures import level, three_digits

__all__ = [
    "calls_under_way",
    "is_full",
    "max_pending",
    "paused_share",
    "tasks_down",
    "throttled_by",
    "throttling_lines",
    "why_throttled",
]

#: Waiting work of less than this many seconds is not mentioned.
_LEAST_WORK = 0.05
#: A share of a run's time is not mentioned if it is smaller than this.
_LEAST_SHARE = 0.005
#: A bolt is full if at least this share of the calls that it may have under way at once is under way, on average.
_FULL = 0.9
#: The same for a whole run, in which a bolt may have less to do for a while.
_FULL_IN_RUN = 0.8


def throttled_by(statistics: TopologyStatistics) -> str | None:
    """Return the bolt that slows spouts down now, the worst one if there are several, or None if there is none."""
    pressure = statistics.pressure
    if pressure is None:
        return None
    bolts = {spout.throttled_by for spout in pressure.spouts.values()} & pressure.bolts.keys()
    return max(bolts, key=lambda bolt: _badness(pressure.bolts[str(bolt)]), default=None)


def _badness(bolt: BoltPressure) -> tuple[bool, float]:
    return bolt.above, max(_shares(bolt)) if bolt.above else bolt.backlog_seconds


def _shares(bolt: BoltPressure) -> tuple[float, float]:
    return bolt.queued_bytes / bolt.high_mark_bytes, bolt.queued / bolt.high_mark


def why_throttled(bolt: BoltPressure, ms_per_tuple: float | None, calls: str | None = None) -> str:
    """Return why a bolt slows spouts down: its queue, if that is above its high mark; else its time per tuple and waiting work.

    ``calls`` says that the bolt is full (`calls_under_way`), or that tasks wait for their restart (`tasks_down`); None or empty
    if neither is so.

    >>> print(why_throttled(BoltPressure(9000, 102_760_448, 1_000_000, 104_857_600, 4.0, True), 1.0))
    queue 98 MB of 100
    >>> print(why_throttled(BoltPressure(980_000, 1_000_000, 1_000_000, 104_857_600, 4.0, True), 1.0))
    queue 980,000 of 1,000,000 tuples
    >>> print(why_throttled(BoltPressure(2100, 200_000, 1_000_000, 104_857_600, 2.1, False), 1.0))
    1.00 ms per tuple, 2.1 s of work waits
    >>> print(why_throttled(BoltPressure(0, 0, 1_000_000, 104_857_600, 0.0, False), 0.012))
    0.012 ms per tuple
    >>> print(why_throttled(BoltPressure(0, 0, 1_000_000, 104_857_600, 0.0, False), 20.0, "100 of 100 calls under way"))
    20.0 ms per tuple, 100 of 100 calls under way
    >>> print(why_throttled(BoltPressure(86, 9000, 1_000_000, 104_857_600, 18.5, False, first_call_secs=4.3), None))
    no call has ended yet, the first has lasted 4.3 s so far
    """
    if bolt.above:
        of_bytes, of_tuples = _shares(bolt)
        if of_bytes >= of_tuples:
            return f"queue {level(bolt.queued_bytes, bolt.high_mark_bytes)}"
        return f"queue {bolt.queued:,} of {bolt.high_mark:,.0f} tuples"
    cost = [] if ms_per_tuple is None else [f"{three_digits(ms_per_tuple)} ms per tuple"]
    cost += [calls] if calls else []
    if ms_per_tuple is None and bolt.first_call_secs:  # so it is not known how long the waiting work takes
        return ", ".join(
            [*cost, f"no call has ended yet, the first has lasted {bolt.first_call_secs:.1f} s so far"]
        )
    work = [f"{bolt.backlog_seconds:.1f} s of work waits"] if bolt.backlog_seconds >= _LEAST_WORK else []
    return ", ".join(cost + work) or "busy"


def throttling_lines(statistics: TopologyStatistics) -> Iterator[str]:
    """Yield a line for each spout that was slowed down, and for each bolt that slowed spouts down or is above its high mark.

    Further lines are about pauses at max spout pending, about bolts that had as many calls under way as they may have, about
    calls that blocked an event loop, about tuples that did not fit into queues, and about how often limits have changed.
    """
    seconds, pressure = statistics.seconds, statistics.pressure
    blamed: set[str] = set()
    for name, component in statistics.components.items():
        throttled = pressure.spouts[name].throttled_ms if pressure and name in pressure.spouts else {}
        held = sum(throttled.values()) / 1000
        if pressure and seconds and held / seconds >= _LEAST_SHARE:
            worst_first = sorted(throttled, key=lambda bolt: -throttled[bolt])
            blamed.update(worst_first)
            shares = ", ".join(f"{throttled[bolt] / 1000:,.1f} s by {bolt}" for bolt in worst_first)
            limit = pressure.spouts[name].limit
            tuples = f"tuple{'s' * (limit != 1)} per round"
            now = "no limit now" if limit is None else f"limit now {limit:,} {tuples}"
            yield f"{name}: throttled {held:,.1f} of {seconds:,.1f} s ({held / seconds:.0%}): {shares}; {now}"
        yield from _other_brakes(name, component, statistics)
    if pressure is None:
        return
    for name, bolt in pressure.bolts.items():
        if name in blamed or bolt.above:
            yield f"{name}: queue {_queue(statistics.components[name], bolt)}"
    if blamed:
        yield f"limits changed {pressure.limit_changes:,} times"


def _queue(component: ComponentStatistics, bolt: BoltPressure) -> str:
    """Return what waits for a bolt, as text.

    The counters of ``component`` may be newer than ``bolt``, because the controller does not see the last reports of a run.
    """
    tuples = f"{component.queued:,} of {bolt.high_mark:,.0f} tuples"
    size = level(component.queued_bytes, bolt.high_mark_bytes)
    seconds = bolt.backlog_seconds * component.queued / bolt.queued if bolt.queued else 0.0
    is_known = component.histogram.count or not bolt.first_call_secs
    return f"{tuples}, {size}" + (f", {seconds:.1f} s of work" if is_known and seconds >= _LEAST_WORK else "")


def _other_brakes(name: str, component: ComponentStatistics, statistics: TopologyStatistics) -> Iterator[str]:
    """Yield a line if a spout was paused at max spout pending, if a bolt was full, if a component blocked the event loop, and
    if tuples did not fit into a bolt's queue.
    """
    share = paused_share(component.skipped_max_spout_ms, component.tasks, statistics.seconds)
    if share >= _LEAST_SHARE:
        limit = max_pending(name, statistics)
        more = f" ({limit})" if limit else ""
        yield f"{name}: paused for {share:.0%} of the time at topology.max.spout.pending{more}"
    calls = component.mean_calls_under_way
    if component.calls_at_once and calls >= component.calls_at_once * _FULL_IN_RUN:
        yield f"{name}: {calls_under_way(calls, component.calls_at_once)} on average"
    if (blocked := component.blocked_loop) is not None:
        yield f"{name}: {blocked.code} blocked the event loop of its worker, for up to {blocked.seconds:,.1f} s at a time"
    if component.shed:
        yield f"{name}: {component.shed:,} tuples did not fit into its queue and were dropped or failed"


def is_full(calls: float, at_once: int) -> bool:
    """Return whether a bolt that may have ``at_once`` calls under way at once has nearly as many, so that its executors or its
    capacity limit it.
    """
    return at_once > 0 and calls >= at_once * _FULL


def calls_under_way(calls: float, at_once: int) -> str:
    """Return how many calls of a bolt are under way, as text.

    >>> calls_under_way(19.7, 20)
    '20 of 20 calls under way'

    If the rounded number would be less than the share that makes a bolt full, although the bolt is full, one digit is added:

    >>> calls_under_way(7.3, 8)
    '7.3 of 8 calls under way'
    """
    whole = min(round(calls), at_once)
    number = f"{calls:,.1f}" if is_full(calls, at_once) and not is_full(whole, at_once) else f"{whole:,}"
    return f"{number} of {at_once:,} calls under way"


def tasks_down(component: ComponentStatistics) -> str:
    """Return how many tasks of a component wait for their restart, as text."""
    wait = "waits for its" if component.down == 1 else "wait for their"
    return f"{component.down} of {component.tasks} task{'s' * (component.tasks > 1)} {wait} restart"


def paused_share(skipped_ms: float, tasks: int, seconds: float) -> float:
    """Return the share of ``seconds`` for which max spout pending held back a spout's tasks, on average.

    >>> paused_share(5_000.0, tasks=2, seconds=10.0)
    0.25
    """
    return min(skipped_ms / 1000 / (seconds * tasks), 1.0) if seconds and tasks else 0.0


def max_pending(spout: str, statistics: TopologyStatistics) -> str | None:
    """Return a spout's max spout pending; None if the spout has no limit.

    If a larger value is known that would not slow the spout, the result also names the least such value.
    """
    pressure = statistics.pressure
    here = pressure.spouts.get(spout) if pressure is not None else None
    if here is None or here.max_pending is None:
        return None
    unfelt = here.unfelt_max_pending
    if unfelt is None or unfelt <= here.max_pending:
        return f"{here.max_pending:,} per task"
    return f"{here.max_pending:,} per task; {unfelt:,} would not be felt"
