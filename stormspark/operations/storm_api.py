"""What the REST API says, in the words of Storm's UI: the same names of fields, units and errors (J8, J9).

These functions know no HTTP. What a cluster of Storm has and a driver of Spark has not, such as supervisors, is left out or has
the value that says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_plus

from stormspark.driver.error_log import TaskError
from stormspark.driver.source_lag import Lags
from stormspark.extras import version_of
from stormspark.hidden_secrets import hidden_in
from stormspark.metrics.windows import ALL_TIME, WINDOWS
from stormspark.operations.facts import Facts, WorkerPlace
from stormspark.operations.status import Action
from stormspark.plan.physical import ComponentPlan
from stormspark.ui.log_lines import TRACEBACK, one_line_of

__all__ = [
    "FIRST_PORT",
    "VERSION",
    "decimals",
    "error",
    "lag",
    "last_error",
    "operation",
    "pretty_seconds",
    "requested",
    "summaries",
    "topology_page",
    "window_hint",
    "worker_summary",
    "workers",
]

#: Where Storm names its own version.
VERSION = f"stormspark {version_of('stormspark') or ''}".rstrip()

#: Storm cuts the last error of a component there.
_ERROR_LETTERS = 200
#: A worker of Storm has a port, which shows its slot. Workers here have none, but clients tell workers apart by it.
FIRST_PORT = 6700


def pretty_seconds(seconds: int) -> str:
    """Return a number of seconds as Storm writes it: days, hours, minutes and seconds, from the first that is not zero.

    >>> pretty_seconds(59), pretty_seconds(365), pretty_seconds(86_400), pretty_seconds(0)
    ('59s', '6m 5s', '1d 0h 0m 0s', '')
    """
    parts: list[str] = []
    for unit, size in (("s", 60), ("m", 60), ("h", 24)):
        if seconds > 0:
            parts.insert(0, f"{seconds % size}{unit}")
            seconds //= size
    return " ".join([f"{seconds}d", *parts] if seconds else parts)


def summaries(facts: Iterable[Facts]) -> dict[str, Any]:
    """Return ``topology/summary`` (J9)."""
    return {"topologies": [_summary(one) for one in facts], "schedulerDisplayResource": False}


def _summary(facts: Facts) -> dict[str, Any]:
    """Return what each page says of a topology first. Memory and CPU belong to Storm's own scheduler, so all are 0."""
    plan = facts.plan
    asked = {
        f"{which}{what}": 0.0
        for which in ("requested", "assigned")
        for what in ("MemOnHeap", "MemOffHeap", "TotalMem", "Cpu")
    }
    return {
        **asked,
        "requestedGenericResources": "",
        "assignedGenericResources": "",
        "schedulerInfo": None,
        "topologyVersion": None,
        "stormVersion": VERSION,
        "id": facts.id,
        "encodedId": quote_plus(facts.id),
        "owner": facts.owner,
        "name": plan.topology,
        "status": facts.status.value,
        "uptime": pretty_seconds(facts.uptime_secs),
        "uptimeSeconds": facts.uptime_secs,
        "tasksTotal": len(plan.tasks),
        "workersTotal": plan.workers,
        "executorsTotal": plan.executors,
        # Storm's nimbuses have a copy of a topology each; here, its one driver has it.
        "replicationCount": 1,
    }


def topology_page(facts: Facts, window: str, debug: float | None = None) -> dict[str, Any]:
    """Return ``topology/:id`` for a window (J10): ``600``, ``10800``, ``86400`` or ``:all-time``.

    ``debug`` is the percentage of all tuples that the event logger gets, or None.
    """
    plan = facts.plan
    spouts = [one for one in plan.components.values() if one.kind == "spout"]
    bolts = [one for one in plan.components.values() if one.kind == "bolt"]
    regions = {
        f"{which}{what}{where}HeapMem": 0.0
        for which in ("requested", "assigned")
        for what in ("Regular", "Shared")
        for where in ("On", "Off")
    }
    return {
        **_summary(facts),
        **regions,
        "bugtracker-url": None,
        "central-log-url": None,
        "user": None,
        "window": window,
        "windowHint": window_hint(window),
        "msgTimeout": plan.settings.message_timeout_secs,
        "configuration": hidden_in(plan.conf),
        "visualizationTable": [],
        "schedulerDisplayResource": False,
        "debug": debug is not None,
        "samplingPct": 10.0 if debug is None else debug,
        "topologyStats": [_topology_stats(facts, name, spouts) for name in (*WINDOWS, ALL_TIME)],
        "workers": [worker_summary(facts, one) for one in facts.workers],
        "spouts": [_spout(facts, window, one) for one in spouts],
        "bolts": [_bolt(facts, window, one) for one in bolts],
    }


def workers(facts: Facts) -> dict[str, Any]:
    """Return ``topology-workers/:id``."""
    return {
        "hostPortList": [{"host": one.host, "port": FIRST_PORT + one.worker} for one in facts.workers],
        "logviewerPort": None,
        "logviewerScheme": "http",
    }


def lag(lags: Lags) -> dict[str, Any]:
    """Return ``topology/:id/lag``. What Storm's consumers have committed is here what batches have read (K9).

    >>> from stormspark.driver.source_lag import PartitionLag
    >>> lag({"orders": {"words": {"0": PartitionLag(3, 10)}}})["orders"]["spoutLagResult"]
    {'words': {'0': {'consumerCommittedOffset': 3, 'logHeadOffset': 10, 'lag': 7}}}
    """
    return {
        spout: {
            "spoutId": spout,
            "spoutType": "KAFKA",
            "spoutLagResult": {
                topic: {
                    partition: {
                        "consumerCommittedOffset": one.read,
                        "logHeadOffset": one.end,
                        "lag": one.lag,
                    }
                    for partition, one in partitions.items()
                }
                for topic, partitions in topics.items()
            },
        }
        for spout, topics in lags.items()
    }


def window_hint(window: str) -> str:
    """Return a window as Storm shows it.

    >>> window_hint("600"), window_hint(":all-time")
    ('10m 0s', 'All time')
    """
    return "All time" if window == ALL_TIME else pretty_seconds(int(window))


def _topology_stats(facts: Facts, window: str, spouts: Iterable[ComponentPlan]) -> dict[str, Any]:
    """Return the row of one window: what all components emitted, and what the spouts got acked and failed (J15)."""
    every = facts.of(window, facts.tasks)
    ended = facts.of(window, [task for one in spouts for task in one.tasks])
    return {
        "windowPretty": window_hint(window),
        "window": window,
        "emitted": every.emitted,
        "transferred": every.transferred,
        "completeLatency": decimals(ended.mean_ms),
        "acked": ended.acked,
        "failed": ended.failed,
    }


def _component(facts: Facts, window: str, one: ComponentPlan) -> dict[str, Any]:
    totals = facts.of(window, one.tasks)
    return {
        "executors": one.parallelism,
        "tasks": len(one.tasks),
        "emitted": totals.emitted,
        "transferred": totals.transferred,
        "acked": totals.acked,
        "failed": totals.failed,
        **requested(),
        "requestedGenericResourcesComp": "",
        **last_error(facts, one.id),
    }


def _spout(facts: Facts, window: str, one: ComponentPlan) -> dict[str, Any]:
    return {
        **_component(facts, window, one),
        "spoutId": one.id,
        "encodedSpoutId": quote_plus(one.id),
        "completeLatency": decimals(facts.of(window, one.tasks).mean_ms),
    }


def _bolt(facts: Facts, window: str, one: ComponentPlan) -> dict[str, Any]:
    totals = facts.of(window, one.tasks)
    return {
        **_component(facts, window, one),
        "boltId": one.id,
        "encodedBoltId": quote_plus(one.id),
        "capacity": decimals(facts.capacity(one.tasks)),
        "executeLatency": decimals(totals.mean_ms),
        "executed": totals.executed,
        "processLatency": decimals(totals.process_ms),
    }


def last_error(facts: Facts, component: str) -> dict[str, Any]:
    """Return the last error of a component, cut as Storm cuts it, with when and where it came."""
    errors = facts.errors.get(component, ())
    if not errors:
        nothing = dict.fromkeys(("errorPort", "errorTime", "errorLapsedSecs"))
        return {"lastError": "", "errorHost": "", "errorWorkerLogLink": "", **nothing}
    last: TaskError = errors[0]
    return {
        # The exception is in the last line of a traceback, which would be cut off.
        "lastError": (one_line_of(last.text) if TRACEBACK in last.text else last.text)[:_ERROR_LETTERS],
        "errorHost": facts.place(last.worker).host,
        "errorPort": FIRST_PORT + last.worker,
        "errorWorkerLogLink": "",
        "errorTime": int(last.at),
        "errorLapsedSecs": max(0, int(facts.now - last.at)),
    }


def worker_summary(facts: Facts, place: WorkerPlace) -> dict[str, Any]:
    """Return what pages say of a worker."""
    tasks = facts.plan.tasks_of_worker(place.worker)
    by_component: dict[str, int] = {}
    for task in tasks:
        by_component[task.component] = by_component.get(task.component, 0) + 1
    seconds = max(0, int(facts.now - place.since)) if place.pid else 0
    return {
        # The hosts of Spark's executors stand where supervisors were.
        "supervisorId": place.host,
        "host": place.host,
        "port": FIRST_PORT + place.worker,
        "topologyId": facts.id,
        "topologyName": facts.plan.topology,
        "executorsTotal": len({task.executor for task in tasks}),
        "assignedMemOnHeap": 0.0,
        "assignedMemOffHeap": 0.0,
        "assignedCpu": 0.0,
        "componentNumTasks": by_component,
        "uptime": pretty_seconds(seconds),
        "uptimeSeconds": seconds,
        "workerLogLink": "",
        "owner": facts.owner,
    }


def requested() -> dict[str, Any]:
    """Return what a component asks of Storm's scheduler: nothing."""
    return {"requestedMemOnHeap": 0.0, "requestedMemOffHeap": 0.0, "requestedCpu": 0.0}


def decimals(number: float) -> str:
    """Return a latency or a capacity as Storm writes it: with three decimals, as a string (J11)."""
    return f"{number:.3f}"


def operation(topology_id: str, action: Action) -> dict[str, Any]:
    """Return the answer to an action that was begun."""
    return {"topologyOperation": action.value, "topologyId": topology_id, "status": "success"}


def error(status: HTTPStatus, message: str) -> dict[str, Any]:
    """Return the answer to a call that can't be answered.

    >>> error(HTTPStatus.NOT_FOUND, "no topology 'x'")
    {'error': '404 Not Found', 'errorMessage': "no topology 'x'"}
    """
    return {"error": f"{status.value} {status.phrase}", "errorMessage": message}
