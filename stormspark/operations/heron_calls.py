"""The calls of Heron's tracker, under ``/heron`` (J12). What they say is in `heron_api`, `heron_metrics` and `heron_query`.

A topology is named by ``topology``. There is one here, so ``cluster``, ``environ`` and ``role`` may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from stormspark.likely_names import no_component
from stormspark.metrics.windows import ALL_TIME, WINDOWS
from stormspark.operations import heron_api
from stormspark.operations.answers import Answer
from stormspark.operations.facts import Facts, History
from stormspark.operations.heron_metrics import instance_of, metrics_of
from stormspark.operations.heron_query import QueryError, Series, evaluate
from stormspark.operations.operable import Served
from stormspark.plan.physical import ComponentPlan

__all__ = ["routes"]

#: Minutes are remembered for so many seconds.
_REMEMBERED_SECS = 180 * 60
_LONGEST_QUERY = 10_000


def routes(served: Served) -> list[Route]:
    """Return where each call is."""
    return _Calls(served).routes()


class _Calls:
    """The calls. Each takes a request and returns a response."""

    def __init__(self, served: Served) -> None:
        self._watcher = served.watcher

    def routes(self) -> list[Route]:
        """Where each call is."""
        pages: dict[str, Callable[[Facts], Any]] = {
            "info": heron_api.info,
            "config": lambda facts: heron_api.physical_plan(facts)["config"],
            "physicalplan": heron_api.physical_plan,
            "packingplan": lambda facts: heron_api.packing_plan(facts.plan, facts.id),
            "logicalplan": lambda facts: heron_api.logical_plan(facts.plan),
            "executionstate": heron_api.execution_state,
            "metadata": heron_api.metadata,
            "runtimestate": heron_api.runtime_state,
            "schedulerlocation": heron_api.scheduler_location,
        }
        calls = {
            "/clusters": self.clusters,
            "/machines": self.machines,
            "/health": self.health,
            "/topologies": self.topologies,
            "/topologies/states": self.states,
            "/topologies/metrics": self.metrics,
            "/topologies/metrics/timeline": self.timeline,
            "/topologies/metricstimeline": self.timeline,
            "/topologies/metrics/query": self.query,
            "/topologies/exceptions": self._errors(heron_api.exceptions),
            "/topologies/exceptionsummary": self._errors(heron_api.exception_summary),
            **{f"/topologies/{name}": self._page(page) for name, page in pages.items()},
        }
        return [Route(f"/heron{path}", call, methods=["GET"]) for path, call in calls.items()]

    def _page(self, page: Callable[[Facts], Any]) -> Callable[[Request], Any]:
        async def call(request: Request) -> Response:
            return Answer(page(self._facts(request)))

        return call

    def _errors(self, page: Callable[[Facts, ComponentPlan, Sequence[str]], Any]) -> Callable[[Request], Any]:
        async def call(request: Request) -> Response:
            facts = self._facts(request)
            return Answer(
                page(facts, _component(facts, _required(request, "component")), _listed(request, "instance"))
            )

        return call

    async def clusters(self, request: Request) -> Response:
        """``GET /clusters``."""
        return Answer([heron_api.CLUSTER])

    async def health(self, request: Request) -> Response:
        """``GET /health``: whether the tracker answers."""
        return PlainTextResponse("ok")

    async def machines(self, request: Request) -> Response:
        """``GET /machines``."""
        return Answer(heron_api.machines(self._watcher.facts()))

    async def topologies(self, request: Request) -> Response:
        """``GET /topologies``."""
        return Answer(heron_api.topologies(self._watcher.facts()))

    async def states(self, request: Request) -> Response:
        """``GET /topologies/states``."""
        facts = self._watcher.facts()
        state = heron_api.execution_state(facts)
        return Answer({heron_api.CLUSTER: {heron_api.ENVIRON: {facts.plan.topology: state}}})

    async def metrics(self, request: Request) -> Response:
        """``GET /topologies/metrics``: of a component, within ``interval`` seconds; -1 is all time."""
        facts = self._facts(request)
        component = _component(facts, _required(request, "component"))
        interval = _integer(request, "interval", -1)
        names, instances = _listed(request, "metricname"), _listed(request, "instance")
        if interval < 0 or str(interval) in WINDOWS:
            window = ALL_TIME if interval < 0 else str(interval)
            rows = facts.rows(window)
        else:
            end = int(facts.now)
            rows = self._watcher.history(end - interval, end).sum()
        found: dict[str, dict[str, str]] = {}
        for task in component.tasks:
            instance = instance_of(facts.plan, task)
            if instances and instance not in instances:
                continue
            for name, value in metrics_of(facts.plan, component, task, rows).items():
                if not names or name in names:
                    found.setdefault(name, {})[instance] = f"{value:.15g}"
        return Answer({"interval": interval, "component": component.id, "metrics": found})

    async def timeline(self, request: Request) -> Response:
        """``GET /topologies/metrics/timeline``: by minute, from ``starttime`` to ``endtime``."""
        facts, (start, end) = self._facts(request), _times(request)
        component, names = _component(facts, _required(request, "component")), _listed(request, "metricname")
        history, instances = self._history(facts, start, end), _listed(request, "instance")
        found: dict[str, dict[str, dict[int, float]]] = {}
        for instance, metric, at, value in await run_in_threadpool(_points, history, component, None):
            if (not names or metric in names) and (not instances or instance in instances):
                found.setdefault(metric, {}).setdefault(instance, {})[at] = value
        return Answer({"component": component.id, "starttime": start, "endtime": end, "timeline": found})

    async def query(self, request: Request) -> Response:
        """``GET /topologies/metrics/query``."""
        facts, (start, end) = self._facts(request), _times(request)
        query = _required(request, "query")
        if len(query) > _LONGEST_QUERY:
            raise HTTPException(400, f"the query has {len(query):,} letters, and may have {_LONGEST_QUERY:,}")
        # No minute but these is known.
        first, last = max(start, int(facts.now) - _REMEMBERED_SECS), min(end, int(facts.now))
        history = self._history(facts, start - 120, end)

        def fetch(component: str, instance: str, metric: str, _start: int, _end: int) -> list[Series]:
            plan = facts.plan.components.get(component)
            values: dict[str, dict[int, float]] = {}
            for name, _, at, value in () if plan is None else _points(history, plan, metric):
                if instance in ("*", name):
                    values.setdefault(name, {})[at] = value
            return [Series(name, found) for name, found in values.items()]

        try:
            series = await run_in_threadpool(evaluate, query, fetch, first, last)
        except QueryError as error:
            raise HTTPException(400, str(error)) from error
        timeline = [{"instance": one.instance or None, "data": one.values} for one in series]
        return Answer({"starttime": start, "endtime": end, "timeline": timeline})

    def _history(self, facts: Facts, start: int, end: int) -> History:
        return self._watcher.history(max(start, int(facts.now) - _REMEMBERED_SECS), min(end, int(facts.now)))

    def _facts(self, request: Request) -> Facts:
        """Return what there is to say. Raises an HTTP 404 unless the request is about the topology that runs here."""
        facts, asked = self._watcher.facts(), _required(request, "topology")
        if asked != facts.plan.topology:
            raise HTTPException(404, f"no topology {asked!r} runs here, but {facts.plan.topology!r}")
        return facts


def _points(
    history: History, component: ComponentPlan, metric: str | None
) -> list[tuple[str, str, int, float]]:
    """Return the instance, the name, the minute and the value of each metric, or of one."""
    return [*_iterated(history, component, metric)]


def _iterated(
    history: History, component: ComponentPlan, metric: str | None
) -> Iterator[tuple[str, str, int, float]]:
    plan = history.plan
    tasks = plan.components[component.id].tasks if component.id in plan.components else ()
    for at, rows in history.minutes():
        for task in tasks:
            for name, value in metrics_of(plan, component, task, rows).items():
                if metric is None or name == metric:
                    yield instance_of(plan, task), name, at, value


def _component(facts: Facts, name: str) -> ComponentPlan:
    found = facts.plan.components.get(name)
    if found is None:
        raise HTTPException(404, no_component(facts.plan.topology, name, facts.plan.components))
    return found


def _required(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise HTTPException(400, f"the call lacks the parameter {name!r}")
    return value


def _listed(request: Request, name: str) -> list[str]:
    return request.query_params.getlist(name)


def _integer(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise HTTPException(400, f"{name} must be a whole number of seconds, got {text!r}") from None


def _times(request: Request) -> tuple[int, int]:
    for name in ("starttime", "endtime"):
        _required(request, name)
    start, end = _integer(request, "starttime", 0), _integer(request, "endtime", 0)
    if start > end:
        raise HTTPException(400, f"starttime {start} is after endtime {end}")
    return start, end
