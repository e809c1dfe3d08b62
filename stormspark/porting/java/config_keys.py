"""Finds the configuration keys that the constants and the setters of Java's ``Config`` stand for (A23, A45)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stormspark.api import Config
from stormspark.errors import StormsparkError
from stormspark.porting.findings import Place
from stormspark.porting.java.values import Const, Items, Name, Pair, Unknown, Value, plain

__all__ = ["by_setter", "storm_key"]

#: The keys of those constants of Config whose key is not just the constant's name in lower case with dots.
_ODD_KEYS: Final = {
    "TOPOLOGY_STATE_CHECKPOINT_INTERVAL": "topology.state.checkpoint.interval.ms",
    "TOPOLOGY_BOLTS_SLIDING_INTERVAL_COUNT": "topology.bolts.window.sliding.interval.count",
    "TOPOLOGY_BOLTS_SLIDING_INTERVAL_DURATION_MS": "topology.bolts.window.sliding.interval.duration.ms",
    "TOPOLOGY_TRIDENT_WINDOWING_INMEMORY_CACHE_LIMIT": "topology.trident.windowing.cache.tuple.limit",
    "TOPOLOGY_AUTO_CREDENTIALS": "topology.auto-credentials",
    "TOPOLOGY_LOGGING_CONFIG_FILE": "topology.logging.config",
    "TOPOLOGY_ISOLATED_MACHINES": "topology.isolate.machines",
    # Constants of Heron's Config:
    "TOPOLOGY_ENABLE_ACKING": "topology.acking",
    "TOPOLOGY_CONTAINER_CPU_REQUESTED": "topology.container.cpu",
    "TOPOLOGY_CONTAINER_RAM_REQUESTED": "topology.container.ram",
    "TOPOLOGY_CONTAINER_DISK_REQUESTED": "topology.container.disk",
}


#: Setters of Java's Config that set one key to their last argument. `stormspark.Config` lacks most of these setters.
_SETTERS: Final = {
    "setTopologyReliabilityMode": "topology.reliability.mode",
    "setNumStmgrs": "topology.stmgrs",
    "setContainerCpuRequested": "topology.container.cpu",
    "setContainerRamRequested": "topology.container.ram",
    "setContainerDiskRequested": "topology.container.disk",
    "setComponentRam": "topology.component.rammap",
    "setTopologyStatefulCheckpointIntervalSecs": "topology.stateful.checkpoint.interval.seconds",
    "setEnableAcking": "topology.acking",
    "setSerializationClassName": "topology.serializer.classname",
    "setComponentCpu": "topology.component.cpumap",
    "setComponentDisk": "topology.component.diskmap",
    "setComponentJvmOptions": "topology.component.jvmopts",
    "setWorkerChildopts": "topology.worker.childopts",
    "setContainerRamPadding": "topology.container.ram.padding",
    "setContainerPaddingPercentage": "topology.container.padding.percentage",
    "setContainerMaxCpuHint": "topology.container.max.cpu.hint",
    "setContainerMaxRamHint": "topology.container.max.ram.hint",
    "setContainerMaxDiskHint": "topology.container.max.disk.hint",
    "setTeamName": "topology.team.name",
    "setTeamEmail": "topology.team.email",
    "setTopologyProjectName": "topology.project.name",
    "setTopologyWorkerMaxHeapSize": "topology.worker.max.heap.size.mb",
    "setTopologyPriority": "topology.priority",
    "setTopologyStrategy": "topology.scheduler.strategy",
}


def storm_key(constant: str) -> str:
    """Return the key that a constant of Storm's ``Config`` stands for.

    >>> storm_key("TOPOLOGY_MESSAGE_TIMEOUT_SECS"), storm_key("TOPOLOGY_AUTO_CREDENTIALS")
    ('topology.message.timeout.secs', 'topology.auto-credentials')
    """
    return _ODD_KEYS.get(constant, constant.lower().replace("_", "."))


def by_setter(name: str, arguments: list[Value], place: Place) -> Iterator[Pair]:
    """Yield the keys and values that a setter of Java's Config sets. For a setter that nobody knows, the key is `Unknown`."""
    if key := _SETTERS.get(name):
        yield Pair(Const(key), arguments[-1] if arguments else Unknown(""), place)
        return
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    setter = getattr(Config, snake, None)
    if setter is None:
        yield Pair(Unknown(name), Unknown(""), place)
        return
    first = arguments[0] if arguments else Unknown("")
    # If the value is not known, or the setter rejects it, call the setter with examples. One of them has the right type, so the
    # setter shows its key.
    examples: list[Any] = [plain(first), 1, True, "x", {}]
    for example in examples:
        conf = Config()
        try:
            setter(conf, example)
        except (StormsparkError, TypeError, AttributeError):
            continue
        for key in conf:
            value = first
            if isinstance(conf[key], list) and isinstance(first, Name):
                value = Items([Const(plain(first))])
            yield Pair(Const(key), value, place)
        return
