"""What the REST API says, in the words of Storm's UI: the same names of fields, units and errors (J8, J9).

These functions know no HTTP. What a cluster of Storm has and a driver of Spark has not, such as supervisors, is left out or has
the value that says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote_plus

from stormspark.operations.status import Action, Status
from stormspark.plan.physical import PhysicalPlan

__all__ = ["Facts", "error", "operation", "pretty_seconds", "summaries"]


@dataclass(frozen=True)
class Facts:
    """What is to be said about a running topology. ``id`` is Storm's topology id, which names one run of it."""

    id: str
    plan: PhysicalPlan
    status: Status
    owner: str
    uptime_secs: int


def pretty_seconds(seconds: int) -> str:
    """Return a number of seconds as Storm writes it: days, hours, minutes and seconds, from the first that is not zero.

    >>> pretty_seconds(59), pretty_seconds(365), pretty_seconds(86_400), pretty_seconds(0)
    ('59s', '6m 5s', '1d 0h 0m 0s', '')
    """
    parts: list[str] = []
    for unit, size in (("s", 60), ("m", 60), ("h", 24)):
        if seconds > 0:
            parts.insert(0, f"{seconds % size}{unit}")
            seconds //= size
    return " ".join([f"{seconds}d", *parts] if seconds else parts)


def summaries(facts: Iterable[Facts]) -> dict[str, Any]:
    """Return ``topology/summary`` (J9)."""
    return {"topologies": [_summary(one) for one in facts], "schedulerDisplayResource": False}


def _summary(facts: Facts) -> dict[str, Any]:
    plan = facts.plan
    return {
        "id": facts.id,
        "encodedId": quote_plus(facts.id),
        "owner": facts.owner,
        "name": plan.topology,
        "status": facts.status.value,
        "uptime": pretty_seconds(facts.uptime_secs),
        "uptimeSeconds": facts.uptime_secs,
        "tasksTotal": len(plan.tasks),
        "workersTotal": plan.workers,
        "executorsTotal": plan.executors,
        # Storm's nimbuses have a copy of a topology each; here, its one driver has it.
        "replicationCount": 1,
    }


def operation(topology_id: str, action: Action) -> dict[str, Any]:
    """Return the answer to an action that was begun."""
    return {"topologyOperation": action.value, "topologyId": topology_id, "status": "success"}


def error(status: HTTPStatus, message: str) -> dict[str, Any]:
    """Return the answer to a call that can't be answered.

    >>> error(HTTPStatus.NOT_FOUND, "no topology 'x'")
    {'error': '404 Not Found', 'errorMessage': "no topology 'x'"}
    """
    return {"error": f"{status.value} {status.phrase}", "errorMessage": message}
