"""Calls of the REST API for commands that Storm's UI has no call for, and ``logconfig`` (J22), as routes of Starlette."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormspark.driver.error_log import TaskError
from stormspark.errors import StatusError
from stormspark.likely_names import no_component
from stormspark.metrics.windows import ALL_TIME
from stormspark.operations.answers import Answer
from stormspark.operations.bodies import json_body
from stormspark.operations.facts import Facts
from stormspark.operations.operable import Served
from stormspark.operations.page_calls import check_topology
from stormspark.operations.status import Status

__all__ = ["routes"]


def routes(served: Served) -> list[Route]:
    """Return where each call is."""
    calls = _Calls(served)
    topology = "/api/v1/topology/{id}"
    return [
        Route(f"{topology}/errors", calls.errors, methods=["GET"]),
        Route(f"{topology}/emits", calls.emits, methods=["GET"]),
        Route(f"{topology}/logconfig", calls.log_levels, methods=["GET"]),
        Route(f"{topology}/logconfig", calls.set_log_levels, methods=["POST"]),
        Route(f"{topology}/restart", calls.restart, methods=["POST"]),
        Route(f"{topology}/restart/{{worker}}", calls.restart, methods=["POST"]),
    ]


class _Calls:
    """The calls. Each takes a request and returns a response."""

    def __init__(self, served: Served) -> None:
        self._served, self._levels = served, served.levels

    async def errors(self, request: Request) -> Response:
        """``GET topology/:id/errors``, with ``component``: the last errors of each component, the newest first."""
        check_topology(self._served, request)
        component = request.query_params.get("component")
        facts = self._served.watcher.facts()
        if component is not None and component not in facts.plan.components:
            raise HTTPException(404, _no_component(facts, component))
        return Answer({"id": facts.id, "name": facts.plan.topology, "errors": _errors(facts, component)})

    async def emits(self, request: Request) -> Response:
        """``GET topology/:id/emits``: of each component, its executors, and what it emitted and transferred on each stream."""
        check_topology(self._served, request)
        facts = self._served.watcher.facts()
        found = {}
        for one in facts.plan.components.values():
            found[one.id] = {
                "kind": one.kind,
                "executors": one.parallelism,
                "streams": {
                    stream: {"emitted": totals.emitted, "transferred": totals.transferred}
                    for stream in sorted(one.streams)
                    for totals in [facts.on(ALL_TIME, one.tasks, stream)]
                },
            }
        return Answer({"id": facts.id, "name": facts.plan.topology, "components": found})

    async def log_levels(self, request: Request) -> Response:
        """``GET topology/:id/logconfig``."""
        check_topology(self._served, request)
        return Answer(self._levels.as_json())

    async def set_log_levels(self, request: Request) -> Response:
        """``POST topology/:id/logconfig``, with the levels in ``namedLoggerLevels``. A ``target_level`` of null removes one."""
        check_topology(self._served, request)
        wanted = (await json_body(request)).get("namedLoggerLevels")
        if not isinstance(wanted, dict):
            msg = 'expected an object like {"namedLoggerLevels": {"my.bolt": {"target_level": "DEBUG", "timeout": 30}}}'
            raise HTTPException(400, msg)
        try:
            # The workers get orders, and one that does not read holds this up.
            await run_in_threadpool(self._levels.change, wanted)
        except StatusError as error:
            raise HTTPException(400, str(error)) from error
        return Answer(self._levels.as_json())

    async def restart(self, request: Request) -> Response:
        """``POST topology/:id/restart`` and ``restart/:worker``: all workers, or one of them, start anew (J6)."""
        check_topology(self._served, request)
        running, worker = self._served.running, request.path_params.get("worker")
        status, there = self._served.controls.status, running.plan.workers
        if status in (Status.KILLED, Status.REBALANCING):
            msg = f"topology {running.name!r} is {status.value}: restart is not possible"
            raise StatusError(msg)
        workers = list(range(there))
        if worker is not None:
            if not worker.isascii() or not worker.isdecimal() or not int(worker[:9]) < there:
                msg = f"there is no worker {worker[:40]!r}: {running.name!r} has the workers 0 to {there - 1}"
                raise HTTPException(404, msg)
            workers = [int(worker)]
        await run_in_threadpool(running.restart, workers)
        return Answer(
            {
                "topologyOperation": "restart",
                "topologyId": self._served.id,
                "status": "success",
                "workers": workers,
            }
        )


def _errors(facts: Facts, component: str | None) -> list[dict[str, Any]]:
    found = [
        {
            "component": error.component,
            "task": error.task,
            "taskName": _name_of_task(facts, error),
            "worker": error.worker,
            "host": next((place.host for place in facts.workers if place.worker == error.worker), ""),
            "errorTime": int(error.at),
            "errorLapsedSecs": max(0, int(facts.now - error.at)),
            "error": error.text,
        }
        for of, errors in facts.errors.items()
        if component in (None, of)
        for error in errors
    ]
    return sorted(found, key=lambda one: -float(str(one["errorTime"])))


def _name_of_task(facts: Facts, error: TaskError) -> str:
    """Return a task's name. A topology that was rebalanced since may have fewer tasks; then only the component is known."""
    task = facts.plan.tasks.get(error.task)
    if task is None or task.component != error.component:
        return error.component
    return f"{task.component}[{task.index}]"


def _no_component(facts: Facts, component: str) -> str:
    return no_component(facts.plan.topology, component[:80], facts.plan.components)
