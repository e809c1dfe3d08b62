"""What the REST API says of one component: ``topology/:id/component/:component`` (J11).

Components of Storm's own, such as ``__acker``, are none here: the workers do their work. Their pages have Storm's shape, and no
tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from stormspark.driver.error_log import TaskError
from stormspark.metrics.windows import ALL_TIME, WINDOWS
from stormspark.operations.facts import Facts, Totals
from stormspark.operations.storm_api import (
    FIRST_PORT,
    decimals,
    last_error,
    pretty_seconds,
    requested,
    window_hint,
)
from stormspark.plan.physical import ComponentPlan

__all__ = ["SYSTEM_COMPONENTS", "component_page", "inputs_of"]

#: Storm's own components, which a topology of Storm may have.
SYSTEM_COMPONENTS = ("__acker", "__eventlogger", "__system")


def component_page(
    facts: Facts, component: str, window: str, *, debug: float | None = None, event_log: str = ""
) -> dict[str, Any]:
    """Return the page of a component of the topology, or of one of `SYSTEM_COMPONENTS`.

    ``debug`` is the percentage of its tuples that the event logger gets, or None, and ``event_log`` where that writes them.
    """
    plan = facts.plan.components.get(component)
    common = {
        "user": None,
        "id": component,
        "encodedId": quote_plus(component),
        "name": facts.plan.topology,
        "executors": 0 if plan is None else plan.parallelism,
        "tasks": 0 if plan is None else len(plan.tasks),
        **requested(),
        "requestedGenericResources": "",
        "schedulerDisplayResource": False,
        "topologyId": facts.id,
        "topologyStatus": facts.status.value,
        "encodedTopologyId": quote_plus(facts.id),
        "window": window,
        "windowHint": window_hint(window),
        "componentType": "bolt" if plan is None else plan.kind,
        "debug": debug is not None,
        "samplingPct": 10.0 if debug is None else debug,
        "eventLogLink": event_log,
        # The JVM's profiler and dumps have no meaning for workers in Python.
        "profilingAndDebuggingCapable": False,
        "profileActionEnabled": False,
        "profilerActive": [],
        "componentErrors": [_error(facts, one) for one in reversed(facts.errors.get(component, ()))],
    }
    if plan is None:
        return {**common, "boltStats": [], "inputStats": [], "outputStats": [], "executorStats": []}
    return {**common, **(_spout if plan.kind == "spout" else _bolt)(facts, plan, window)}


def _spout(facts: Facts, plan: ComponentPlan, window: str) -> dict[str, Any]:
    error = last_error(facts, plan.id)["lastError"]
    return {
        "spoutSummary": [
            {**_window(name), **_ended(facts.of(name, plan.tasks)), "lastError": error}
            for name in (*WINDOWS, ALL_TIME)
        ],
        "outputStats": [
            {"stream": stream, **_ended(facts.on(window, plan.tasks, stream))} for stream in plan.streams
        ],
        "executorStats": [
            {**place, **_ended(facts.of(window, tasks))} for tasks, place in _executors(facts, plan)
        ],
    }


def _bolt(facts: Facts, plan: ComponentPlan, window: str) -> dict[str, Any]:
    capacity = decimals(facts.capacity(plan.tasks))
    outputs = {stream: facts.on(window, plan.tasks, stream) for stream in plan.streams}
    return {
        "boltStats": [
            {
                **_window(name),
                **_emits(totals := facts.of(name, plan.tasks)),
                **_executed(totals),
                "capacity": capacity,
            }
            for name in (*WINDOWS, ALL_TIME)
        ],
        "inputStats": [
            {
                "component": source,
                "encodedComponentId": quote_plus(source),
                "stream": stream,
                **_executed(totals),
            }
            for (source, stream), totals in inputs_of(facts, plan, window).items()
        ],
        "outputStats": [{"stream": stream, **_emits(totals)} for stream, totals in outputs.items()],
        "executorStats": [
            {
                **place,
                **_emits(totals := facts.of(window, tasks)),
                **_executed(totals),
                "capacity": decimals(facts.capacity(tasks)),
            }
            for tasks, place in _executors(facts, plan)
        ],
    }


def inputs_of(facts: Facts, plan: ComponentPlan, window: str) -> Mapping[tuple[str, str], Totals]:
    """Return the totals of each stream that a bolt reads, by the component and the stream."""
    inputs = [(edge.source, edge.stream) for edge in facts.plan.edges if edge.target == plan.id]
    return {one: facts.on(window, plan.tasks, one) for one in inputs}


def _window(name: str) -> dict[str, Any]:
    return {"window": name, "windowPretty": window_hint(name)}


def _emits(totals: Totals) -> dict[str, Any]:
    return {"emitted": totals.emitted, "transferred": totals.transferred}


def _ended(totals: Totals) -> dict[str, Any]:
    return {
        **_emits(totals),
        "completeLatency": decimals(totals.mean_ms),
        "acked": totals.acked,
        "failed": totals.failed,
    }


def _executed(totals: Totals) -> dict[str, Any]:
    return {
        "executeLatency": decimals(totals.mean_ms),
        "executed": totals.executed,
        "processLatency": decimals(totals.process_ms),
        "acked": totals.acked,
        "failed": totals.failed,
    }


def _executors(facts: Facts, plan: ComponentPlan) -> Iterator[tuple[Sequence[int], dict[str, Any]]]:
    """Iterate over the executors of a component: their tasks, and what is to be said of each."""
    by_executor: dict[int, list[int]] = {}
    for task in plan.tasks:
        by_executor.setdefault(facts.plan.tasks[task].executor, []).append(task)
    for tasks in by_executor.values():
        place = facts.place(facts.plan.tasks[tasks[0]].worker)
        seconds = max(0, int(facts.now - place.since)) if place.pid else 0
        name = f"[{tasks[0]}-{tasks[-1]}]"
        yield (
            tasks,
            {
                "id": name,
                "encodedId": quote_plus(name),
                "uptime": pretty_seconds(seconds),
                "uptimeSeconds": seconds,
                "host": place.host,
                "port": FIRST_PORT + place.worker,
                "workerLogLink": "",
            },
        )


def _error(facts: Facts, one: TaskError) -> dict[str, Any]:
    return {
        "errorTime": int(one.at),
        "errorHost": facts.place(one.worker).host,
        "errorPort": FIRST_PORT + one.worker,
        "errorWorkerLogLink": "",
        "errorLapsedSecs": max(0, int(facts.now - one.at)),
        "error": one.text,
    }
