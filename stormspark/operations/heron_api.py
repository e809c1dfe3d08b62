"""What the calls of Heron's tracker say of a topology (J12): its plans and its state, in the shapes of Heron 0.20.5.

A worker is a container with a stream manager, and a task is an instance. What Heron asks of its scheduler is 0 or empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stormspark.driver.error_log import TaskError
from stormspark.grouping.all import AllGrouping
from stormspark.grouping.base import Grouping
from stormspark.grouping.direct import DirectGrouping
from stormspark.grouping.fields import FieldsGrouping
from stormspark.grouping.global_ import GlobalGrouping
from stormspark.grouping.load_aware import LoadAwareShuffleGrouping
from stormspark.grouping.local_first import LocalFirstGrouping
from stormspark.grouping.local_or_shuffle import LocalOrShuffleGrouping
from stormspark.grouping.local_while_held import LocalWhileHeldGrouping
from stormspark.grouping.none import NoneGrouping
from stormspark.grouping.shuffle import ShuffleGrouping
from stormspark.hidden_secrets import hidden_in
from stormspark.operations.facts import Facts
from stormspark.operations.heron_metrics import instance_of
from stormspark.operations.status import Status
from stormspark.operations.storm_api import VERSION
from stormspark.plan.physical import ComponentPlan, PhysicalPlan

__all__ = [
    "CLUSTER",
    "ENVIRON",
    "exception_summary",
    "exceptions",
    "execution_state",
    "info",
    "logical_plan",
    "machines",
    "packing_plan",
    "physical_plan",
    "runtime_state",
    "scheduler_location",
    "topologies",
]

#: Heron names a topology by these, too. Here there is one of each.
CLUSTER, ENVIRON = "stormspark", "default"
_STATES = {Status.ACTIVE: "Running", Status.INACTIVE: "Paused", Status.KILLED: "Killed"}
_SHUFFLES = (
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    LocalWhileHeldGrouping,
    ShuffleGrouping,
)
_GROUPINGS: Mapping[type[Grouping], str] = {
    AllGrouping: "ALL",
    DirectGrouping: "DIRECT",
    FieldsGrouping: "FIELDS",
    GlobalGrouping: "LOWEST",
    NoneGrouping: "NONE",
    **dict.fromkeys(_SHUFFLES, "SHUFFLE"),
}
_HAS = ("has_physical_plan", "has_packing_plan", "has_tmanager_location", "has_scheduler_location")


def topologies(facts: Facts) -> dict[str, Any]:
    """Return ``/topologies``: names by cluster, role and environ."""
    return {CLUSTER: {facts.owner: {ENVIRON: [facts.plan.topology]}}}


def execution_state(facts: Facts) -> dict[str, Any]:
    """Return ``/topologies/executionstate``."""
    return {**metadata(facts), **dict.fromkeys(_HAS, True), "status": _STATES.get(facts.status, "Unknown")}


def metadata(facts: Facts) -> dict[str, Any]:
    """Return ``/topologies/metadata``."""
    return {
        "cluster": CLUSTER,
        "environ": ENVIRON,
        "role": facts.owner,
        "jobname": facts.plan.topology,
        "submission_time": int(facts.now) - facts.uptime_secs,
        "submission_user": facts.owner,
        "release_username": "",
        "release_tag": "",
        "release_version": VERSION,
        "instances": len(facts.plan.tasks),
        "extra_links": [],
    }


def runtime_state(facts: Facts) -> dict[str, Any]:
    """Return ``/topologies/runtimestate``: which workers have started."""
    started = {f"stmgr-{one.worker + 1}": {"is_registered": bool(one.pid)} for one in facts.workers}
    return {**dict.fromkeys(_HAS, True), "release_version": VERSION, "stmgrs": started}


def scheduler_location(facts: Facts) -> dict[str, Any]:
    """Return ``/topologies/schedulerlocation``."""
    return {"name": facts.plan.topology, "http_endpoint": "", "job_page_link": ""}


def logical_plan(plan: PhysicalPlan) -> dict[str, Any]:
    """Return ``/topologies/logicalplan``."""
    spouts = {
        one.id: {
            "config": hidden_in(one.own_conf),
            "spout_type": "default",
            "spout_source": one.kind_of_source or "NA",
            "version": "NA",
            "outputs": [{"stream_name": stream} for stream in one.streams],
            "extra_links": [],
        }
        for one in plan.components.values()
        if one.kind == "spout"
    }
    bolts = {}
    for one in plan.components.values():
        edges = [edge for edge in plan.edges if edge.target == one.id]
        if one.kind == "bolt":
            bolts[one.id] = {
                "config": hidden_in(one.own_conf),
                "outputs": [{"stream_name": stream} for stream in one.streams],
                "inputs": [
                    {
                        "stream_name": edge.stream,
                        "component_name": edge.source,
                        "grouping": _GROUPINGS.get(type(edge.grouping), "CUSTOM"),
                    }
                    for edge in edges
                ],
                "inputComponents": [edge.source for edge in edges],
            }
    return {"spouts": spouts, "bolts": bolts, "stages": _stages(plan)}


def _stages(plan: PhysicalPlan) -> int:
    """Return the number of subscriptions on the longest path. One that closes a loop is left out."""
    sources: dict[str, set[str]] = {name: set() for name in plan.components}
    for edge in plan.edges:
        sources[edge.target].add(edge.source)
    depth: dict[str, int] = {}

    def of(component: str, above: frozenset[str]) -> int:
        if component not in depth:
            before = sources[component] - above - {component}
            depth[component] = max((1 + of(one, above | {component}) for one in sorted(before)), default=0)
        return depth[component]

    return max((of(one, frozenset()) for one in plan.components), default=0)


def packing_plan(plan: PhysicalPlan, topology_id: str) -> dict[str, Any]:
    """Return ``/topologies/packingplan``."""
    nothing = {"cpu": 0.0, "ram": 0, "disk": 0}
    return {
        "id": topology_id,
        "container_plans": [
            {
                "id": worker + 1,
                "instances": [
                    {
                        "component_name": task.component,
                        "task_id": task.id,
                        "component_index": task.index,
                        "instance_resources": nothing,
                    }
                    for task in plan.tasks_of_worker(worker)
                ],
                "required_resources": nothing,
                "scheduled_resources": nothing,
            }
            for worker in range(plan.workers)
        ],
    }


def physical_plan(facts: Facts) -> dict[str, Any]:
    """Return ``/topologies/physicalplan``."""
    plan = facts.plan
    names = {task: instance_of(plan, task) for task in plan.tasks}
    groups: dict[str, list[str]] = {}
    for task, placed in plan.tasks.items():
        groups.setdefault(f"container_{placed.worker + 1}", []).append(names[task])

    def of_kind(kind: str) -> dict[str, list[str]]:
        return {
            one.id: [names[task] for task in one.tasks]
            for one in plan.components.values()
            if one.kind == kind
        }

    return {
        "instances": {
            names[task]: {
                "id": names[task],
                "name": placed.component,
                "stmgr_id": f"stmgr-{placed.worker + 1}",
                "logfile": "",
            }
            for task, placed in plan.tasks.items()
        },
        "instance_groups": groups,
        "stmgrs": {f"stmgr-{worker + 1}": _manager(facts, worker, groups) for worker in range(plan.workers)},
        "spouts": of_kind("spout"),
        "bolts": of_kind("bolt"),
        "config": hidden_in(plan.conf),
        "components": {one.id: {"config": hidden_in(one.own_conf)} for one in plan.components.values()},
    }


def _manager(facts: Facts, worker: int, groups: Mapping[str, list[str]]) -> dict[str, Any]:
    place = facts.place(worker)
    return {
        "id": f"stmgr-{worker + 1}",
        "host": place.host,
        "port": 0,
        "shell_port": 0,
        "cwd": "",
        "pid": place.pid,
        "joburl": "",
        "logfiles": "",
        "instance_ids": groups.get(f"container_{worker + 1}", []),
    }


def machines(facts: Facts) -> dict[str, Any]:
    """Return ``/machines``."""
    hosts = sorted({one.host for one in facts.workers if one.pid})
    return {CLUSTER: {ENVIRON: {facts.plan.topology: hosts}}}


def info(facts: Facts) -> dict[str, Any]:
    """Return ``/topologies/info``: all that is said of a topology."""
    none = dict.fromkeys(("controller_port", "server_port", "stats_port"))
    return {
        "id": facts.id,
        "name": facts.plan.topology,
        "execution_state": execution_state(facts),
        "metadata": metadata(facts),
        "logical_plan": logical_plan(facts.plan),
        "physical_plan": physical_plan(facts),
        "packing_plan": packing_plan(facts.plan, facts.id),
        "runtime_state": runtime_state(facts),
        "scheduler_location": scheduler_location(facts),
        "tmanager_location": {"name": facts.plan.topology, "id": facts.id, "host": None, **none},
    }


def exceptions(facts: Facts, component: ComponentPlan, instances: Sequence[str]) -> list[dict[str, Any]]:
    """Return ``/topologies/exceptions``: the last errors of a component, or of some of its instances."""
    return [
        {
            "hostname": facts.place(one.worker).host,
            "instance_id": instance_of(facts.plan, one.task),
            "stacktrace": one.text,
            "lasttime": str(int(one.at)),
            "firsttime": str(int(one.at)),
            "count": "1",
            "logging": "",
        }
        for one in _errors(facts, component, instances)
    ]


def exception_summary(
    facts: Facts, component: ComponentPlan, instances: Sequence[str]
) -> list[dict[str, Any]]:
    """Return ``/topologies/exceptionsummary``: the same errors, by the last line of their text."""
    found: dict[str, list[float]] = {}
    for one in _errors(facts, component, instances):
        lines = one.text.strip().splitlines() or [""]
        found.setdefault(lines[-1].partition(":")[0], []).append(one.at)
    return [
        {
            "class_name": name,
            "lasttime": int(max(times)),
            "firsttime": int(min(times)),
            "count": str(len(times)),
        }
        for name, times in found.items()
    ]


def _errors(facts: Facts, component: ComponentPlan, instances: Sequence[str]) -> list[TaskError]:
    return [
        one
        for one in facts.errors.get(component.id, ())
        if one.task in facts.plan.tasks and (not instances or instance_of(facts.plan, one.task) in instances)
    ]
