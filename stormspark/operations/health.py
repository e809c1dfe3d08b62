"""Whether a driver lives and its topology is ready, for probes of Kubernetes and load balancers: calls without a token.

They say one word and no facts about the topology, because anybody who reaches the port may ask.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from stormspark.operations.answers import Answer
from stormspark.operations.operable import Served
from stormspark.operations.status import Status

__all__ = ["OPEN_PATHS", "routes"]

#: The paths that need no token.
OPEN_PATHS = frozenset({"/healthz", "/readyz"})


def routes(served: Served) -> list[Route]:
    """Return where each call is."""

    async def health(request: Request) -> Response:
        """``GET healthz``: 200 as long as the topology has not stopped with an error. Whoever gets no answer starts it again."""
        fine = served.running.error is None
        return PlainTextResponse("ok" if fine else "failed", 200 if fine else 503)

    async def readiness(request: Request) -> Response:
        """``GET readyz``: 200 once the first batch has ended, and until the topology is killed."""
        fine = not _why_not_ready(served)
        return PlainTextResponse("ready" if fine else "not ready", 200 if fine else 503)

    async def state(request: Request) -> Response:
        """``GET api/v1/readiness``: the same, and what is waited for, for whoever may know."""
        return Answer({"id": served.id, "waitsFor": _why_not_ready(served)})

    return [
        Route("/healthz", health, methods=["GET"]),
        Route("/readyz", readiness, methods=["GET"]),
        Route("/api/v1/readiness", state, methods=["GET"]),
    ]


def _why_not_ready(served: Served) -> str:
    if served.running.error is not None:
        return "it has stopped"
    if served.controls.status is Status.KILLED:
        return "it is killed"
    if served.running.durations().batches.count:
        return ""  # it may be laid out anew just now, or have lost its workers
    return served.running.waits_for()
