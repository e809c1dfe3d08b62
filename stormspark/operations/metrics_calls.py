"""``GET /metrics``: the topology's metrics for Prometheus (J18), as a route of Starlette."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormspark.operations.operable import Served
from stormspark.reporting.families import families
from stormspark.reporting.family import Family

__all__ = ["routes", "served_families"]

_BY = {None: None, "task": True, "component": False}


def routes(served: Served) -> list[Route]:
    """Return where the call is."""

    def metrics(request: Request) -> Response:
        # No coroutine, so it runs on a thread: a large topology must not hold up other calls. The import takes 50 ms.
        from stormspark.reporting.exposition import exposition

        by = request.query_params.get("by")
        if by not in _BY:
            raise HTTPException(400, f"by is {by!r}, but it must be 'task' or 'component'")
        text, content_type = exposition(
            served_families(served, by_task=_BY[by]), request.headers.get("accept", "")
        )
        return Response(text, headers={"Content-Type": content_type})

    return [Route("/metrics", metrics, methods=["GET"])]


def served_families(served: Served, *, by_task: bool | None = None) -> list[Family]:
    """Return the families of a topology whose state and windows are known."""
    facts = served.watcher.facts()
    bolts = [one for one in facts.plan.components.values() if one.kind == "bolt"]
    return families(
        served.running,
        status=facts.status.value,
        capacities={one.id: facts.capacity(one.tasks) for one in bolts},
        by_task=by_task,
    )
