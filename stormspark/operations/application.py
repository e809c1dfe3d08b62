"""The ASGI application of a driver: the calls of all modules, and how errors are answered."""

from __future__ import annotations

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from stormspark.errors import InvalidTopologyError, StatusError
from stormspark.operations import (
    command_calls,
    debug_calls,
    health,
    heron_calls,
    metrics_calls,
    page_calls,
    storm_calls,
)
from stormspark.operations.answers import Answer
from stormspark.operations.operable import Served
from stormspark.operations.page import calls as web_calls
from stormspark.operations.storm_api import error

__all__ = ["app"]

_CALLS = (
    metrics_calls, storm_calls, page_calls, debug_calls, command_calls, health, heron_calls, web_calls,
)  # fmt: skip


async def _refused(request: Request, raised: Exception) -> Response:
    status, message = HTTPStatus.INTERNAL_SERVER_ERROR, str(raised)
    if isinstance(raised, HTTPException):
        status, message = HTTPStatus(raised.status_code), raised.detail
    return Answer(error(status, message), status_code=status.value)


def app(served: Served) -> Starlette:
    """Return the ASGI application for a topology.

    Storm answers an action that is not allowed or not possible with the status 500, and an unknown topology with 404; so does
    this.
    """
    handlers = {
        HTTPException: _refused,
        StatusError: _refused,
        InvalidTopologyError: _refused,
        Exception: _refused,
    }
    routes = [route for calls in _CALLS for route in calls.routes(served)]
    return Starlette(routes=routes, exception_handlers=handlers)
