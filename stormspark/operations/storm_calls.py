"""Storm's REST calls (J8) about the topology of a driver, as routes of Starlette. What they say is in `storm_api`.

A call runs on the server's event loop, so it must not take long. What gives workers orders runs on a thread: a worker that does
not read holds that up for seconds, and meanwhile the probes of the driver have to be answered.
"""

from __future__ import annotations

import json
import socket

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormspark.operations import storm_cluster
from stormspark.operations.answers import Answer
from stormspark.operations.bodies import body_of
from stormspark.operations.operable import Served
from stormspark.operations.page_calls import check_topology, window_of
from stormspark.operations.status import Action
from stormspark.operations.storm_api import operation, summaries, topology_page, workers

__all__ = ["routes"]

_EXAMPLE_OF_OPTIONS = '{"rebalanceOptions": {"numWorkers": 2, "executors": {"count": 4}}}'


def routes(served: Served) -> list[Route]:
    """Return where each call is."""
    return _Calls(served).routes()


class _Calls:
    """The calls. Each takes a request and returns a response."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._watcher, self._controls, self._id = served.watcher, served.controls, served.id

    def routes(self) -> list[Route]:
        """Where each call is."""
        posts = {
            "activate": self.activate,
            "deactivate": self.deactivate,
            "kill/{wait}": self.kill,
            "rebalance/{wait}": self.rebalance,
        }
        return [
            Route("/api/v1/cluster/summary", self.cluster, methods=["GET"]),
            Route("/api/v1/supervisor/summary", self.supervisors, methods=["GET"]),
            Route("/api/v1/nimbus/summary", self.nimbuses, methods=["GET"]),
            Route("/api/v1/history/summary", self.history, methods=["GET"]),
            Route("/api/v1/topology/summary", self.summary, methods=["GET"]),
            Route("/api/v1/topology/{id}", self.topology, methods=["GET"]),
            Route("/api/v1/topology-workers/{id}", self.workers, methods=["GET"]),
            *(
                Route(f"/api/v1/topology/{{id}}/{path}", call, methods=["POST"])
                for path, call in posts.items()
            ),
        ]

    async def cluster(self, request: Request) -> Response:
        """``GET cluster/summary``."""
        return Answer(storm_cluster.cluster(self._watcher.facts()))

    async def supervisors(self, request: Request) -> Response:
        """``GET supervisor/summary``."""
        return Answer(storm_cluster.supervisors(self._watcher.facts()))

    async def nimbuses(self, request: Request) -> Response:
        """``GET nimbus/summary``."""
        return Answer(storm_cluster.nimbuses(self._watcher.facts(), socket.gethostname()))

    async def history(self, request: Request) -> Response:
        """``GET history/summary``."""
        return Answer(storm_cluster.history(self._watcher.facts()))

    async def summary(self, request: Request) -> Response:
        """``GET topology/summary`` (J9)."""
        return Answer(summaries([self._watcher.facts()]))

    async def topology(self, request: Request) -> Response:
        """``GET topology/:id``, with ``window`` (J10)."""
        check_topology(self._served, request)
        return Answer(
            topology_page(self._watcher.facts(), window_of(request), self._served.running.sampling.of(None))
        )

    async def workers(self, request: Request) -> Response:
        """``GET topology-workers/:id``."""
        check_topology(self._served, request)
        return Answer(workers(self._watcher.facts()))

    async def activate(self, request: Request) -> Response:
        """``POST topology/:id/activate``."""
        check_topology(self._served, request)
        await run_in_threadpool(self._controls.activate)
        return Answer(operation(self._id, Action.ACTIVATE))

    async def deactivate(self, request: Request) -> Response:
        """``POST topology/:id/deactivate``."""
        check_topology(self._served, request)
        await run_in_threadpool(self._controls.deactivate)
        return Answer(operation(self._id, Action.DEACTIVATE))

    async def kill(self, request: Request) -> Response:
        """``POST topology/:id/kill/:wait``; the wait is a number of seconds, or ``default``."""
        check_topology(self._served, request)
        await run_in_threadpool(self._controls.kill, _seconds(request.path_params["wait"]))
        return Answer(operation(self._id, Action.KILL))

    async def rebalance(self, request: Request) -> Response:
        """``POST topology/:id/rebalance/:wait``, with ``rebalanceOptions`` in the body as Storm's UI has them."""
        check_topology(self._served, request)
        wait = _seconds(request.path_params["wait"])
        workers, executors = _rebalance_options(await body_of(request))
        await run_in_threadpool(self._controls.rebalance, wait, workers=workers, executors=executors)
        return Answer(operation(self._id, Action.REBALANCE))


def _seconds(text: str) -> float | None:
    if text == "default":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise HTTPException(
            400, f"the wait is {text!r}, but it must be a number of seconds that is not negative"
        )
    return seconds


def _rebalance_options(body: bytes) -> tuple[int | None, dict[str, int]]:
    """Return the number of workers and the executors by component from the body of a call, which may be empty (J8).

    >>> _rebalance_options(b'{"rebalanceOptions": {"numWorkers": 2, "executors": {"spout": "5", "bolt": 7}}}')
    (2, {'spout': 5, 'bolt': 7})
    >>> _rebalance_options(b"")
    (None, {})
    """
    try:
        options = (json.loads(body) if body.strip() else {}).get("rebalanceOptions") or {}
        workers = options.get("numWorkers")
        executors = {str(name): int(number) for name, number in (options.get("executors") or {}).items()}
        return None if workers is None else int(workers), executors
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise HTTPException(
            400,
            f"the body must be JSON such as {_EXAMPLE_OF_OPTIONS}, got {body[:200].decode(errors='replace')!r}",
        ) from error
