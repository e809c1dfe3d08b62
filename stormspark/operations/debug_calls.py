"""Storm's REST calls that turn the event log on and off: ``debug`` of a topology or a component (J20)."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormspark.operations.answers import Answer
from stormspark.operations.operable import Served
from stormspark.operations.page_calls import check_topology, component_of

__all__ = ["routes"]

_PATH = "/api/v1/topology/{id}"


def routes(served: Served) -> list[Route]:
    """Return where each call is."""

    async def debug(request: Request) -> Response:
        """``POST topology/:id/debug/:action/:percentage``, and the same of a component."""
        check_topology(served, request)
        component = None
        if "component" in request.path_params:
            component = component_of(served.watcher.facts(), request)
        action, percentage = request.path_params["action"], _percentage(request.path_params["percentage"])
        if action not in ("enable", "disable"):
            raise HTTPException(404, f"debug can be 'enable' or 'disable', got {action!r}")
        served.running.sampling.set(component, percentage if action == "enable" else None)
        answer = {"topologyOperation": f"debug/{action}", "topologyId": served.id, "status": "success"}
        return Answer(answer if component is None else {**answer, "componentId": component})

    return [
        Route(f"{_PATH}/debug/{{action}}/{{percentage}}", debug, methods=["POST"]),
        Route(
            f"{_PATH}/component/{{component:path}}/debug/{{action}}/{{percentage}}", debug, methods=["POST"]
        ),
    ]


def _percentage(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise HTTPException(400, f"the percentage is {text!r}, but it must be a number from 0 to 100")
    return number
