"""Storm's REST calls about parts of a topology and of its cluster: components, streams, graph, lag, owners, hosts (J8, J11).

What they say is in `storm_component`, `storm_graph` and `storm_cluster`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormspark.likely_names import no_component
from stormspark.metrics.windows import ALL_TIME, WINDOWS
from stormspark.operations import storm_cluster, storm_graph
from stormspark.operations.answers import Answer
from stormspark.operations.facts import Facts
from stormspark.operations.operable import Served
from stormspark.operations.storm_api import lag
from stormspark.operations.storm_component import SYSTEM_COMPONENTS, component_page

__all__ = ["check_topology", "component_of", "routes", "window_of"]

_PROFILING = (
    "start/{worker}/{minutes}",
    "stop/{worker}",
    "dumpprofile/{worker}",
    "dumpjstack/{worker}",
    "dumpheap/{worker}",
    "restartworker/{worker}",
)


#: The end of a path about the debugging of a component.
_DEBUG = re.compile(r"/debug/[^/]*/[^/]*$")


def routes(served: Served) -> list[Route]:
    """Return where each call is."""
    return _Calls(served).routes()


class _Calls:
    """The calls. Each takes a request and returns a response."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def routes(self) -> list[Route]:
        """Where each call is."""
        of_topology = {
            "component/{component:path}": self.component,
            "metrics": self._page(storm_graph.metrics),
            "lag": self.lag,
            "visualization": self._page(storm_graph.visualization),
            "visualization-init": self.stream_table,
        }
        return [
            Route("/api/v1/cluster/configuration", self.configuration, methods=["GET"]),
            Route("/api/v1/supervisor", self.supervisor, methods=["GET"]),
            Route("/api/v1/owner-resources", self.owners, methods=["GET"]),
            Route("/api/v1/owner-resources/{owner:path}", self.owner, methods=["GET"]),
            *(
                Route(f"/api/v1/topology/{{id}}/{path}", call, methods=["GET"])
                for path, call in of_topology.items()
            ),
            *(
                # Storm 1 has GET here, and Storm 2 has POST.
                Route(f"/api/v1/topology/{{id}}/profiling/{path}", self.profiling, methods=["GET", "POST"])
                for path in _PROFILING
            ),
        ]

    def _page(self, page: Callable[[Facts, str], dict[str, Any]]) -> Callable[[Request], Any]:
        """Return the call of a page of the topology that depends on a window."""

        async def call(request: Request) -> Response:
            check_topology(self._served, request)
            return Answer(page(self._served.watcher.facts(), window_of(request)))

        return call

    async def component(self, request: Request) -> Response:
        """``GET topology/:id/component/:component``."""
        check_topology(self._served, request)
        facts, running = self._served.watcher.facts(), self._served.running
        component = component_of(facts, request)
        folder = running.log_folder
        page = component_page(
            facts,
            component,
            window_of(request),
            debug=running.sampling.of(component),
            event_log="" if folder is None else f"file://{folder}/worker-0/events.log",
        )
        return Answer(page)

    async def stream_table(self, request: Request) -> Response:
        """``GET topology/:id/visualization-init``."""
        check_topology(self._served, request)
        return Answer(storm_graph.stream_table(self._served.watcher.facts()))

    async def lag(self, request: Request) -> Response:
        """``GET topology/:id/lag`` (K9)."""
        check_topology(self._served, request)
        return Answer(lag(await run_in_threadpool(self._served.running.lags)))

    async def configuration(self, request: Request) -> Response:
        """``GET cluster/configuration``."""
        return Answer(storm_cluster.configuration())

    async def supervisor(self, request: Request) -> Response:
        """``GET supervisor``, with ``id`` or ``host``, which are the same here."""
        host = request.query_params.get("id") or request.query_params.get("host") or ""
        return Answer(storm_cluster.supervisor(self._served.watcher.facts(), host))

    async def owners(self, request: Request) -> Response:
        """``GET owner-resources``."""
        return Answer(storm_cluster.owners(self._served.watcher.facts()))

    async def owner(self, request: Request) -> Response:
        """``GET owner-resources/:owner``."""
        return Answer(storm_cluster.owner(self._served.watcher.facts(), request.path_params["owner"]))

    async def profiling(self, request: Request) -> Response:
        """``topology/:id/profiling/...``: there is no such thing."""
        check_topology(self._served, request)
        return Answer(storm_cluster.profiling(), status_code=501)


def check_topology(served: Served, request: Request) -> None:
    """Raise an HTTP 404 unless the request is about the topology that runs here."""
    asked = request.path_params["id"]
    if asked != served.id:
        raise HTTPException(404, f"no topology {asked!r} runs here, but {served.id!r}")


def window_of(request: Request) -> str:
    """Return the window that a request is about. One that nobody keeps is all time, as in Storm."""
    window: str = request.query_params.get("window", ALL_TIME)
    return window if window in WINDOWS else ALL_TIME


def component_of(facts: Facts, request: Request) -> str:
    """Return the component that a request is about. Raises an HTTP 404 if the topology has no such component.

    The name in the path may be encoded as Storm's ``encodedId``, in which a blank is a plus.
    """
    asked: str = request.path_params["component"]
    components = facts.plan.components
    encoded = request.scope.get("raw_path", b"").decode("latin-1").partition("/component/")[2]
    for name in (asked, unquote_plus(_DEBUG.sub("", encoded))):
        if name in components or name in SYSTEM_COMPONENTS:
            return name
    raise HTTPException(404, no_component(facts.plan.topology, asked, components))
