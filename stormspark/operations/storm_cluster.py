"""What the REST API says of Storm's cluster: a driver stands in nimbus's place, and hosts with workers in those of supervisors.

A supervisor of Storm has slots that may be free. Here a host has as many as workers live there. Memory and CPU belong to Storm's
own scheduler, so they are 0 (J8).
"""

from __future__ import annotations

from typing import Any

from stormspark.extras import version_of
from stormspark.operations.facts import Facts, WorkerPlace
from stormspark.operations.storm_api import pretty_seconds

__all__ = ["cluster", "history", "nimbuses", "supervisors"]

#: Where Storm names its own version.
_VERSION = f"stormspark {version_of('stormspark') or ''}".rstrip()
_RESOURCES = ("totalMem", "totalCpu", "usedMem", "usedCpu", "availMem", "availCpu")


def cluster(facts: Facts) -> dict[str, Any]:
    """Return ``cluster/summary``."""
    up = sum(1 for one in facts.workers if one.pid)
    return {
        **dict.fromkeys(_RESOURCES, 0.0),
        "fragmentedMem": 0.0,
        "fragmentedCpu": 0.0,
        "memAssignedPercentUtil": "0.0",
        "cpuAssignedPercentUtil": "0.0",
        "schedulerDisplayResource": False,
        "user": None,
        "stormVersion": _VERSION,
        "supervisors": len(_hosts(facts)),
        "topologies": 1,
        "slotsTotal": facts.plan.workers,
        "slotsUsed": up,
        "slotsFree": facts.plan.workers - up,
        "tasksTotal": len(facts.plan.tasks),
        "executorsTotal": facts.plan.executors,
    }


def supervisors(facts: Facts) -> dict[str, Any]:
    """Return ``supervisor/summary``: each host with its workers. It is up for as long as the oldest of them."""
    found = []
    for host, places in _hosts(facts).items():
        seconds = max(0, int(facts.now - min(one.since for one in places)))
        found.append(
            {
                **dict.fromkeys(_RESOURCES, 0.0),
                "id": host,
                "host": host,
                "uptime": pretty_seconds(seconds),
                "uptimeSeconds": seconds,
                "blacklisted": False,
                "slotsTotal": len(places),
                "slotsUsed": len(places),
                "slotsFree": 0,
                "logLink": "",
                "version": _VERSION,
            }
        )
    return {"supervisors": found, "schedulerDisplayResource": False, "logviewerPort": None}


def nimbuses(facts: Facts, host: str) -> dict[str, Any]:
    """Return ``nimbus/summary``: the driver on ``host``."""
    return {
        "nimbuses": [
            {
                "host": host,
                "port": 0,
                "status": "Leader",
                "version": _VERSION,
                "nimbusUpTime": pretty_seconds(facts.uptime_secs),
                "nimbusUpTimeSeconds": facts.uptime_secs,
                "nimbusLogLink": "",
            }
        ]
    }


def history(facts: Facts) -> dict[str, Any]:
    """Return ``history/summary``: the topology of this driver."""
    return {"topo-history": [facts.id]}


def _hosts(facts: Facts) -> dict[str, list[WorkerPlace]]:
    found: dict[str, list[WorkerPlace]] = {}
    for one in facts.workers:
        if one.pid:
            found.setdefault(one.host, []).append(one)
    return found
