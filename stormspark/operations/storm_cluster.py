"""What the REST API says of Storm's cluster: a driver stands in nimbus's place, and hosts with workers in those of supervisors.

A supervisor of Storm has slots that may be free. Here a host has as many as workers live there. Memory and CPU belong to Storm's
own scheduler, so they are 0 (J8).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from stormspark.config import Settings
from stormspark.hidden_secrets import hidden_in
from stormspark.operations.facts import Facts, WorkerPlace
from stormspark.operations.storm_api import VERSION, pretty_seconds, summaries, worker_summary

__all__ = [
    "cluster",
    "configuration",
    "history",
    "nimbuses",
    "owner",
    "owners",
    "profiling",
    "supervisor",
    "supervisors",
]

#: What Storm says on pages with links to its logviewer.
_PAGE = {"schedulerDisplayResource": False, "logviewerPort": None, "logviewerScheme": "http"}
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
        "bugtracker-url": None,
        "central-log-url": None,
        "availGenerics": "",
        "totalGenerics": "",
        "stormVersion": VERSION,
        "stormVersionInfo": {
            **dict.fromkeys(("revision", "branch", "date", "srcChecksum"), "Unknown"),
            "version": VERSION,
        },
        "supervisors": len(_hosts(facts)),
        "topologies": 1,
        "slotsTotal": facts.plan.workers,
        "slotsUsed": up,
        "slotsFree": facts.plan.workers - up,
        "tasksTotal": len(facts.plan.tasks),
        "executorsTotal": facts.plan.executors,
    }


def configuration() -> dict[str, Any]:
    """Return ``cluster/configuration``: the settings that a topology has unless it sets others."""
    found = {field.metadata["key"]: field.default for field in fields(Settings) if "key" in field.metadata}
    return hidden_in(dict(sorted(found.items())))


def supervisors(facts: Facts) -> dict[str, Any]:
    """Return ``supervisor/summary``: each host with its workers. It is up for as long as the oldest of them."""
    return {"supervisors": [_supervisor(facts, host) for host in _hosts(facts)], **_PAGE}


def supervisor(facts: Facts, host: str) -> dict[str, Any]:
    """Return ``supervisor?id=`` and ``supervisor?host=``: a host and its workers. Of an unknown one, there are none."""
    places = _hosts(facts).get(host, [])
    return {
        "supervisors": [_supervisor(facts, host)] if places else [],
        "workers": [worker_summary(facts, one) for one in places],
        **_PAGE,
    }


def _supervisor(facts: Facts, host: str) -> dict[str, Any]:
    places = _hosts(facts)[host]
    seconds = max(0, int(facts.now - min(one.since for one in places)))
    return {
        **dict.fromkeys(_RESOURCES, 0.0),
        **dict.fromkeys(("totalGenericResources", "usedGenericResources", "availGenericResources"), ""),
        "id": host,
        "host": host,
        "uptime": pretty_seconds(seconds),
        "uptimeSeconds": seconds,
        "blacklisted": False,
        "slotsTotal": len(places),
        "slotsUsed": len(places),
        "slotsFree": 0,
        "logLink": "",
        "version": VERSION,
    }


def owners(facts: Facts) -> dict[str, Any]:
    """Return ``owner-resources``."""
    return {"owners": [_owner(facts, facts.owner)], "schedulerDisplayResource": False}


def owner(facts: Facts, name: str) -> dict[str, Any]:
    """Return ``owner-resources/:id``. An unknown owner has nothing, as in Storm."""
    if name != facts.owner:
        return _owner(facts, name)
    return {
        **_owner(facts, name),
        "schedulerDisplayResource": False,
        "topologies": summaries([facts])["topologies"],
    }


def _owner(facts: Facts, name: str) -> dict[str, Any]:
    has, plan = int(name == facts.owner), facts.plan
    asked = {f"totalReq{what}": 0.0 for what in ("OnHeapMem", "OffHeapMem", "Mem", "Cpu")}
    return {
        **asked,
        "owner": name,
        "totalTopologies": has,
        "totalExecutors": has * plan.executors,
        "totalWorkers": has * plan.workers,
        "totalTasks": has * len(plan.tasks),
        "totalMemoryUsage": 0.0,
        "totalCpuUsage": 0.0,
        "totalAssignedOnHeapMem": 0.0,
        "totalAssignedOffHeapMem": 0.0,
        "memoryGuarantee": "N/A",
        "cpuGuarantee": "N/A",
        "isolatedNodes": -1,
        "memoryGuaranteeRemaining": "N/A",
        "cpuGuaranteeRemaining": "N/A",
    }


def profiling() -> dict[str, Any]:
    """Return the answer to calls of Storm's profiler, in the shape that Storm has where it is turned off."""
    return {
        "status": "disabled",
        "message": (
            "Workers are Python processes, which the JVM's profiler and dumps don't know: use py-spy with the process id of the "
            "worker, which is in its log"
        ),
    }


def nimbuses(facts: Facts, host: str) -> dict[str, Any]:
    """Return ``nimbus/summary``: the driver on ``host``."""
    return {
        "nimbuses": [
            {
                "host": host,
                "port": 0,
                "status": "Leader",
                "version": VERSION,
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
