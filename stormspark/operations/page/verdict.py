"""Says in a few words whether a topology is well, and what holds it up: what somebody on call looks for first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from stormspark.driver.error_log import TaskError
from stormspark.metrics import TopologyStatistics
from stormspark.operations.status import Status
from stormspark.ui.progress import Progress
from stormspark.ui.throttling import tasks_down, throttled_by
from stormspark.worker.busy import Busy

__all__ = ["MANY_FAILS", "Reason", "Verdict", "verdict"]

#: Errors of so many last seconds are news.
_RECENT_SECS = 300.0
#: So many errors of a component per second are trouble.
_MANY_ERRORS = 0.2
#: A call that has lasted so many seconds is named.
_LONG_CALL_SECS = 30.0
#: A share of trees that fail of all that end; more is trouble.
MANY_FAILS = 0.01


class Reason(NamedTuple):
    """A reason: how bad it is ("bad" or "slow"), in words, and the component that it is about, if it is about one."""

    level: str
    text: str
    component: str | None = None


class Verdict(NamedTuple):
    """``level`` is "good", "slow", "bad", "starting" or "waiting", ``title`` a few words."""

    level: str
    title: str
    reasons: Sequence[Reason]


def verdict(
    status: Status,
    statistics: TopologyStatistics,
    progress: Progress,
    rates: Mapping[str, Mapping[str, float]],
    errors: Mapping[str, Sequence[TaskError]],
    calls: Sequence[Busy],
    missing_workers: int,
    now: float,
) -> Verdict:
    """Return the verdict. ``rates`` are those per second, ``now`` is in seconds since 1970."""
    reasons = sorted(
        _reasons(statistics, progress, rates, errors, calls, missing_workers, now),
        key=lambda one: one.level != "bad",
    )
    if progress.waits_for:
        return Verdict("starting", f"starts: {progress.waits_for}", reasons)
    if status is Status.KILLED or statistics.before_stop is not None:
        return Verdict("waiting", "is killed, and ends soon", reasons)
    if status is Status.REBALANCING:
        return Verdict("waiting", "is laid out anew", reasons)
    if any(one.level == "bad" for one in reasons):
        return Verdict("bad", "is in trouble", reasons)
    if status is Status.INACTIVE:
        return Verdict("waiting", "is inactive: its spouts emit nothing", reasons)
    if progress.throttled or progress.paused or progress.full:
        return Verdict("slow", "runs, and is held up", reasons)
    if reasons:
        return Verdict("slow", "runs, but look at this", reasons)
    return Verdict("good", "is well", reasons)


def _reasons(
    statistics: TopologyStatistics,
    progress: Progress,
    rates: Mapping[str, Mapping[str, float]],
    errors: Mapping[str, Sequence[TaskError]],
    calls: Sequence[Busy],
    missing_workers: int,
    now: float,
) -> Iterator[Reason]:
    if progress.throttled:
        bolt = throttled_by(statistics)
        yield Reason("slow", f"spouts are held back by {progress.throttled}", bolt)
    if progress.paused:
        yield Reason("slow", f"paused {progress.paused}")
    for text in filter(None, (progress.full,)):
        yield Reason("slow", text, text.partition(":")[0])
    if missing_workers and not progress.waits_for:
        some = "worker is" if missing_workers == 1 else "workers are"
        yield Reason("bad", f"{missing_workers} {some} not there")
    for name, one in statistics.components.items():
        if one.down:
            yield Reason("bad", f"{name}: {tasks_down(one)}", name)
        recent = [error for error in errors.get(name, ()) if now - error.at < _RECENT_SECS]
        if recent:
            many = len(recent) == len(errors[name]) and one.errors > len(recent)
            count = f"more than {len(recent)}" if many else f"{len(recent)}"
            level = "bad" if rates.get(name, {}).get("errors", 0.0) >= _MANY_ERRORS else "slow"
            yield Reason(level, f"{name}: {count} error{'s' * (count != '1')} in the last 5 minutes", name)
        if one.kind != "spout":
            continue
        rate = rates.get(name, {})
        failed, ended = rate.get("failed", 0.0), rate.get("failed", 0.0) + rate.get("acked", 0.0)
        if failed and failed / ended >= MANY_FAILS:
            why = f"; the last one: {one.last_failure}" if one.last_failure else ""
            yield Reason("bad", f"{name}: {failed / ended:.0%} of its trees fail{why}", name)
    if progress.shed:
        yield Reason("slow", f"{progress.shed:,} tuples did not fit into queues, and were dropped or failed")
    for busy in calls[:3]:
        if busy.seconds >= _LONG_CALL_SECS and not busy.of_spout:
            yield Reason("slow", f"{busy.long_call.left('has')}", busy.component)
