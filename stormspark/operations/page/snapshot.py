"""What the page of a running topology is told each second, as JSON.

`Snapshots` remembers the last one for a moment, so that several open pages cost as much as one.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stormspark.drawing import Sized, place_graph
from stormspark.extras import version_of
from stormspark.metrics import ComponentStatistics, TopologyStatistics
from stormspark.operations.facts import Facts
from stormspark.operations.operable import Served
from stormspark.operations.page.edge_rates import edge_rates
from stormspark.operations.page.verdict import Verdict, verdict
from stormspark.operations.status import Status
from stormspark.plan.physical import ComponentPlan, PhysicalPlan
from stormspark.ui.progress import Progress, Speedometer
from stormspark.ui.throttling import throttling_lines
from stormspark.worker.busy import Busy

__all__ = ["FORMAT", "TOTALS", "Ends", "Snapshots", "graph_of"]

#: What a component has counted since its start, by the names of `ComponentStatistics`.
TOTALS = (
    "emitted",
    "transferred",
    "executed",
    "acked",
    "failed",
    "failed_by_bolt",
    "timed_out",
    "worker_lost",
    "errors",
    "restarts",
    "dead_letters",
    "shed",
    "late",
)

#: The page says so if it does not know the format of what it is told.
FORMAT = 1
_KEPT_SECS = 0.9
#: Sizes in pixels: of a letter, of a box without its title, of the label of a link.
_LETTER, _LEAST_BOX, _BOX_HEIGHT, _LABEL = 8.2, 164.0, 62.0, 84.0
_LONGEST_TITLE = 26
_CALLS_SHOWN = 20


class Snapshots:
    """Makes the snapshots of one topology. Any thread may ask."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._speedometer = Speedometer(10.0)
        self._lock = threading.Lock()
        self._last: tuple[float, dict[str, Any]] | None = None
        self._graph: Mapping[str, Any] | None = None

    def now(self) -> dict[str, Any]:
        """Return the snapshot of now, or one that is less than a second old."""
        with self._lock:
            if self._last is None or time.monotonic() - self._last[0] >= _KEPT_SECS:
                self._last = (time.monotonic(), self._made())
            return self._last[1]

    def _made(self) -> dict[str, Any]:
        served, running = self._served, self._served.running
        served.recorder.look()
        facts, statistics = served.watcher.facts(), running.statistics()
        progress = self._speedometer.read(statistics, running.waits_for())
        rates, calls = served.recorder.rates(), running.calls_under_way()
        if self._graph is None:
            plan = running.plan
            self._graph = graph_of(
                list(plan.components), [Ends(edge.source, edge.target) for edge in plan.edges]
            )
        missing = sum(1 for one in facts.workers if not one.pid)
        said = verdict(facts.status, statistics, progress, rates, facts.errors, calls, missing, facts.now)
        return {
            **_head(facts, statistics),
            "verdict": _verdict(said),
            "waits_for": progress.waits_for,
            "logs": running.log_folder,
            "progress": _progress(progress, statistics, rates),
            "phases_ms": {
                name: _round(value) for name, value in served.recorder.batch().items() if name != "batch_ms"
            },
            "taken_back": {"count": statistics.taken_back, "last": statistics.last_taken_back},
            "dead_letters_in": statistics.dead_letters_in if statistics.total("dead_letters") else None,
            "components": [
                _component(facts, statistics, one, rates.get(one.id, {}))
                for one in running.plan.components.values()
            ],
            "graph": self._graph,
            "edges": _edges(running.plan, rates, served.recorder.edge_rates()),
            "workers": [
                {
                    "worker": one.worker,
                    "host": one.host,
                    "pid": one.pid,
                    "seconds": max(0, int(facts.now - one.since)) if one.pid else 0,
                    "tasks": len(running.plan.tasks_of_worker(one.worker)),
                }
                for one in facts.workers
            ],
            "calls": [_call(one) for one in calls[:_CALLS_SHOWN]],
            "held_back": list(throttling_lines(statistics)),
            "limit_changes": []
            if statistics.pressure is None
            else [one._asdict() for one in list(statistics.pressure.history)[-50:]],
            "actions": _actions(facts.status),
        }


def _head(facts: Facts, statistics: TopologyStatistics) -> dict[str, Any]:
    plan = facts.plan
    return {
        "format": FORMAT,
        "id": facts.id,
        "name": plan.topology,
        "engine": statistics.engine,
        "version": version_of("stormspark"),
        "status": facts.status.value,
        "owner": facts.owner,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "now": round(facts.now, 2),
        "uptime": facts.uptime_secs,
        "exactly_once": plan.exactly_once,
        "message_timeout": plan.settings.message_timeout_secs,
        "tasks": len(plan.tasks),
        "executors": plan.executors,
        "workers_reason": plan.workers_reason,
    }


def _verdict(said: Verdict) -> dict[str, Any]:
    return {**said._asdict(), "reasons": [one._asdict() for one in said.reasons]}


def _progress(
    progress: Progress, statistics: TopologyStatistics, rates: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    def per_s(name: str, kind: str) -> float | None:
        return _round(sum(rates[one][name] for one in rates if statistics.components[one].kind == kind))

    return {
        "executed_per_s": per_s("executed", "bolt"),
        "acked_per_s": per_s("acked", "spout"),
        "acked": progress.acked,
        "failed": progress.failed,
        "pending": progress.pending,
        "queued": progress.queued,
        "shed": progress.shed,
        "batches": statistics.batches_ended,
        "rounds": statistics.batches,
        "batch_ms": _round(progress.batch_ms),
    }


def _component(
    facts: Facts, statistics: TopologyStatistics, plan: ComponentPlan, rates: Mapping[str, float]
) -> dict[str, Any]:
    one: ComponentStatistics = statistics.components[plan.id]
    latency, pressure = one.latency, statistics.pressure
    calls = rates.get("calls", 0.0)
    found: dict[str, Any] = {
        "id": plan.id,
        "kind": plan.kind,
        "tasks": len(plan.tasks),
        "executors": plan.parallelism,
        "declared_at": plan.declared_at,
        "source": plan.kind_of_source,
        "state": plan.kind_of_state,
        "totals": {name: getattr(one, name) for name in TOTALS},
        "rates": {
            name: _round(rates[name]) for name in ("emitted", "executed", "acked", "failed") if name in rates
        },
        "latency_ms": _round(rates["call_seconds"] / calls * 1000) if calls else None,
        "all_time_ms": {"mean": latency.mean, "p50": latency.p50, "p99": latency.p99},
        "pending": one.pending,
        "queued": one.queued,
        "queued_bytes": one.queued_bytes,
        "down": one.down,
        "calls_under_way": _round(one.calls_under_way),
        "calls_at_once": one.calls_at_once,
        "last_failure": one.last_failure,
        "capacity": None if plan.kind == "spout" else _round(_capacity(facts, plan, rates)),
    }
    if pressure is not None and plan.id in pressure.spouts:
        spout = pressure.spouts[plan.id]
        found |= {
            "limit": spout.limit,
            "throttled_by": spout.throttled_by,
            "throttled_ms": {name: round(ms) for name, ms in spout.throttled_ms.items()},
            "max_pending": spout.max_pending,
        }
    if pressure is not None and plan.id in pressure.bolts:
        bolt = pressure.bolts[plan.id]
        _, low_bytes = plan.settings.byte_marks
        _, low = plan.settings.tuple_marks
        found |= {
            "high_mark": _finite(bolt.high_mark),
            "high_mark_bytes": _finite(bolt.high_mark_bytes),
            "low_mark": _finite(low),
            "low_mark_bytes": _finite(low_bytes),
            "backlog_seconds": _round(bolt.backlog_seconds),
            "above": bolt.above,
        }
    return found


def _capacity(facts: Facts, plan: ComponentPlan, rates: Mapping[str, float]) -> float:
    """Return the share of the last seconds that the bolt's executors were in execute, on average.

    Storm's capacity is that of the busiest executor in the last ten minutes. It is taken while there are no rates.
    """
    if "call_seconds" in rates:
        return rates["call_seconds"] / max(1, plan.calls_at_once or plan.parallelism)
    return facts.capacity(plan.tasks)


class Ends(NamedTuple):
    """The components that a subscription connects."""

    source: str
    target: str


def graph_of(components: Sequence[str], edges: Sequence[Ends]) -> dict[str, Any] | None:
    """Return where the boxes of components and the arrows of subscriptions are; None if there are too many to draw."""
    placed = place_graph(
        [
            Sized(name, max(_LEAST_BOX, min(len(name), _LONGEST_TITLE) * _LETTER + 24), _BOX_HEIGHT)
            for name in components
        ],
        edges,
        _LABEL,
    )
    if placed is None:
        return None
    return {
        "width": _round(placed.width),
        "height": _round(placed.height),
        "boxes": [
            {"id": one.id, "x": _round(one.x), "y": _round(one.y), "w": one.width, "h": one.height}
            for one in placed.boxes
        ],
        "links": [
            {"edge": one.number, "line": one.line, "head": one.head, "x": _round(one.x), "y": _round(one.y)}
            for one in placed.links
        ],
    }


def _edges(
    plan: PhysicalPlan, rates: Mapping[str, Mapping[str, float]], counted: Sequence[float | None]
) -> list[dict[str, Any]]:
    found = edge_rates(
        [(edge.source, edge.target) for edge in plan.edges],
        {name: one["transferred"] for name, one in rates.items()},
        {name: one["executed"] for name, one in rates.items()},
        counted,
    )
    return [
        {
            "source": edge.source,
            "stream": edge.stream,
            "target": edge.target,
            "grouping": edge.grouping.describe(),
            "crosses": edge.crosses,
            "per_s": _round(rate),
        }
        for edge, rate in zip(plan.edges, found, strict=True)
    ]


def _call(busy: Busy) -> dict[str, Any]:
    return {
        "task": busy.task,
        "code": busy.code,
        "seconds": round(busy.seconds, 1),
        "others": busy.others,
        "tuples": busy.tuples,
    }


def _actions(status: Status) -> list[str]:
    """Return what somebody may ask the topology to do in its state."""
    if status is Status.KILLED or status is Status.REBALANCING:
        return ["kill"]
    return ["deactivate" if status is Status.ACTIVE else "activate", "rebalance", "kill"]


def _round(value: float | None) -> float | None:
    """Return a figure with six digits, which are enough for people; None in place of what JSON can't say."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.6g}")


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
