"""The keys of Heron's settings, and heronpy's default values (A43, A45)."""

from __future__ import annotations

__all__ = ["DEFAULTS", "TopologyReliabilityMode"]


class TopologyReliabilityMode:
    """The values of ``topology.reliability.mode`` (C43)."""

    ATMOST_ONCE = "ATMOST_ONCE"
    ATLEAST_ONCE = "ATLEAST_ONCE"
    EFFECTIVELY_ONCE = "EFFECTIVELY_ONCE"


TOPOLOGY_ADDITIONAL_CLASSPATH = "topology.additional.classpath"
TOPOLOGY_AUTO_TASK_HOOKS = "topology.auto.task.hooks"
TOPOLOGY_CAP_TICKET = "topology.cap.ticket"
TOPOLOGY_COMPONENT_CPUMAP = "topology.component.cpumap"
TOPOLOGY_COMPONENT_DISKMAP = "topology.component.diskmap"
TOPOLOGY_COMPONENT_JVMOPTS = "topology.component.jvmopts"
TOPOLOGY_COMPONENT_OUTPUT_BPS = "topology.component.output.bps"
TOPOLOGY_COMPONENT_PARALLELISM = "topology.component.parallelism"
TOPOLOGY_COMPONENT_RAMMAP = "topology.component.rammap"
TOPOLOGY_CONTAINER_CPU_REQUESTED = "topology.container.cpu"
TOPOLOGY_CONTAINER_DISK_REQUESTED = "topology.container.disk"
TOPOLOGY_CONTAINER_MAX_CPU_HINT = "topology.container.max.cpu.hint"
TOPOLOGY_CONTAINER_MAX_DISK_HINT = "topology.container.max.disk.hint"
TOPOLOGY_CONTAINER_MAX_RAM_HINT = "topology.container.max.ram.hint"
TOPOLOGY_CONTAINER_PADDING_PERCENTAGE = "topology.container.padding.percentage"
TOPOLOGY_CONTAINER_RAM_PADDING = "topology.container.ram.padding"
TOPOLOGY_CONTAINER_RAM_REQUESTED = "topology.container.ram"
TOPOLOGY_DEBUG = "topology.debug"
#: Releases of Heron that had no reliability modes turned tracking on with this key.
TOPOLOGY_ENABLE_ACKING = "topology.acking"
TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS = "topology.enable.message.timeouts"
TOPOLOGY_MAX_SPOUT_PENDING = "topology.max.spout.pending"
TOPOLOGY_MESSAGE_TIMEOUT_SECS = "topology.message.timeout.secs"
TOPOLOGY_NAME = "topology.name"
TOPOLOGY_PROJECT_NAME = "topology.project.name"
TOPOLOGY_RELIABILITY_MODE = "topology.reliability.mode"
TOPOLOGY_SERIALIZER_CLASSNAME = "topology.serializer.classname"
TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS = "topology.stateful.checkpoint.interval.seconds"
TOPOLOGY_STATEFUL_START_CLEAN = "topology.stateful.start.clean"
TOPOLOGY_STMGRS = "topology.stmgrs"
TOPOLOGY_TEAM_EMAIL = "topology.team.email"
TOPOLOGY_TEAM_NAME = "topology.team.name"
TOPOLOGY_TICK_TUPLE_FREQ_SECS = "topology.tick.tuple.freq.secs"
TOPOLOGY_WORKER_CHILDOPTS = "topology.worker.childopts"

#: The defaults of heronpy: a topology has these settings unless it sets other values (A43).
DEFAULTS = {
    TOPOLOGY_DEBUG: "false",
    TOPOLOGY_STMGRS: "1",
    TOPOLOGY_MESSAGE_TIMEOUT_SECS: "30",
    TOPOLOGY_COMPONENT_PARALLELISM: "1",
    TOPOLOGY_MAX_SPOUT_PENDING: "100",
    TOPOLOGY_RELIABILITY_MODE: TopologyReliabilityMode.ATMOST_ONCE,
    TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: "true",
}
