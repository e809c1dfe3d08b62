"""Asks the driver of a topology, by its Unix socket."""

from __future__ import annotations

from typing import Any

import httpx

from stormspark.errors import StatusError, TopologyNotAliveError
from stormspark.operations.registry import Entry

__all__ = ["Client"]

#: A driver that is busy answers late, because its calls share the interpreter with its batches.
_TIMEOUT_SECS = 10.0


class Client:
    """The REST API of one driver.

    Each method raises `TopologyNotAliveError` if the driver does not answer, and `StatusError` if it refuses.
    """

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def summary(self) -> dict[str, Any]:
        """Return what ``topology/summary`` says of the topology."""
        found: dict[str, Any] = self._ask("GET", "topology/summary")["topologies"][0]
        return found

    def do(self, action: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask for an action, such as ``kill/30``, and return the answer. ``body`` is sent as JSON."""
        return self._ask("POST", f"topology/{self._entry.id}/{action}", body)

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        entry = self._entry
        if not entry.lives:
            msg = f"topology {entry.topology!r} does not run any more: its driver, process {entry.pid}, has ended"
            raise TopologyNotAliveError(msg)
        try:
            with httpx.Client(
                transport=httpx.HTTPTransport(uds=entry.socket), timeout=_TIMEOUT_SECS
            ) as client:
                answer = client.request(method, f"http://driver/api/v1/{path}", json=body)
        except httpx.ConnectError as error:
            msg = (
                f"the driver of topology {entry.topology!r}, process {entry.pid}, takes no commands: {error}"
            )
            raise TopologyNotAliveError(msg) from error
        except httpx.HTTPError as error:
            msg = (
                f"the driver of topology {entry.topology!r}, process {entry.pid}, has not answered within {_TIMEOUT_SECS:g} s "
                f"({error})"
            )
            raise TopologyNotAliveError(msg) from error
        said: dict[str, Any] = answer.json()
        if answer.is_error:
            raise (TopologyNotAliveError if answer.status_code == httpx.codes.NOT_FOUND else StatusError)(
                said["errorMessage"]
            )
        return said
