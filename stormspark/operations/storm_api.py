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
from stormspark.metrics.windows import ALL_TIME, WINDOWS
from stormspark.operations.facts import Facts, WorkerPlace
from stormspark.operations.status import Action
from stormspark.plan.physical import ComponentPlan

__all__ = [
    "error",
    "operation",
    "pretty_seconds",
    "summaries",
    "topology_page",
    "window_hint",
    "workers",
]

#: Storm cuts the last error of a component there.
_ERROR_LETTERS = 200
#: A worker of Storm has a port, which shows its slot. Workers here have none, but clients tell workers apart by it.
_FIRST_PORT = 6700


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
        "schedulerInfo": None,
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


def topology_page(facts: Facts, window: str) -> dict[str, Any]:
    """Return ``topology/:id`` for a window (J10): ``600``, ``10800``, ``86400`` or ``:all-time``."""
    plan = facts.plan
    spouts = [one for one in plan.components.values() if one.kind == "spout"]
    bolts = [one for one in plan.components.values() if one.kind == "bolt"]
    return {
        **_summary(facts),
        "user": None,
        "window": window,
        "windowHint": window_hint(window),
        "msgTimeout": plan.settings.message_timeout_secs,
        "configuration": dict(plan.conf),
        "visualizationTable": [],
        "schedulerDisplayResource": False,
        "debug": False,
        "samplingPct": 10.0,
        "topologyStats": [_topology_stats(facts, name, spouts) for name in (*WINDOWS, ALL_TIME)],
        "workers": [_worker(facts, one) for one in facts.workers],
        "spouts": [_spout(facts, window, one) for one in spouts],
        "bolts": [_bolt(facts, window, one) for one in bolts],
    }


def workers(facts: Facts) -> dict[str, Any]:
    """Return ``topology-workers/:id``."""
    return {"hostPortList": [{"host": one.host, "port": _FIRST_PORT + one.worker} for one in facts.workers]}


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
        "completeLatency": _decimals(ended.mean_ms),
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
        **_last_error(facts, one.id),
    }


def _spout(facts: Facts, window: str, one: ComponentPlan) -> dict[str, Any]:
    return {
        **_component(facts, window, one),
        "spoutId": one.id,
        "encodedSpoutId": quote_plus(one.id),
        "completeLatency": _decimals(facts.of(window, one.tasks).mean_ms),
    }


def _bolt(facts: Facts, window: str, one: ComponentPlan) -> dict[str, Any]:
    totals = facts.of(window, one.tasks)
    return {
        **_component(facts, window, one),
        "boltId": one.id,
        "encodedBoltId": quote_plus(one.id),
        "capacity": _decimals(facts.capacity(one.tasks)),
        "executeLatency": _decimals(totals.mean_ms),
        "executed": totals.executed,
    }


def _last_error(facts: Facts, component: str) -> dict[str, Any]:
    errors = facts.errors.get(component, ())
    if not errors:
        nothing = dict.fromkeys(("errorPort", "errorTime", "errorLapsedSecs"))
        return {"lastError": "", "errorHost": "", "errorWorkerLogLink": "", **nothing}
    last: TaskError = errors[0]
    place = next((one for one in facts.workers if one.worker == last.worker), None)
    return {
        "lastError": last.text[:_ERROR_LETTERS],
        "errorHost": "" if place is None else place.host,
        "errorPort": _FIRST_PORT + last.worker,
        "errorWorkerLogLink": "",
        "errorTime": int(last.at),
        "errorLapsedSecs": max(0, int(facts.now - last.at)),
    }


def _worker(facts: Facts, place: WorkerPlace) -> dict[str, Any]:
    tasks = facts.plan.tasks_of_worker(place.worker)
    by_component: dict[str, int] = {}
    for task in tasks:
        by_component[task.component] = by_component.get(task.component, 0) + 1
    seconds = max(0, int(facts.now - place.since)) if place.pid else 0
    return {
        # The hosts of Spark's executors stand where supervisors were.
        "supervisorId": place.host,
        "host": place.host,
        "port": _FIRST_PORT + place.worker,
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
    }


def _decimals(number: float) -> str:
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
