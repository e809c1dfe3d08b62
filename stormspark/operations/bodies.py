"""The bodies that calls of the REST API bring: JSON objects of a limited size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

__all__ = ["body_of", "json_body"]

#: A body has a few hundred levels of loggers or numbers of executors at most.
_MOST_BYTES = 100_000


async def body_of(request: Request) -> bytes:
    """Return the body of a request. Raises an HTTP 413 if it is too large, without reading the rest."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _MOST_BYTES:
            raise HTTPException(413, f"the body is larger than {_MOST_BYTES} bytes")
    return data


async def json_body(request: Request) -> Mapping[str, Any]:
    """Return the JSON object that a request brings. Raises an HTTP 400 or 413 for anything else."""
    try:
        found = json.loads(await body_of(request))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise HTTPException(400, "the body is no JSON object")
    return found
