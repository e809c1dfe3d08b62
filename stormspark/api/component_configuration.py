"""The configuration of one component, which the declarers of spouts and bolts share (A9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from stormspark.config import conf_problems
from stormspark.errors import InvalidTopologyError
from stormspark.user_line import user_line

__all__ = ["ComponentConfiguration"]

_RESOURCES = "topology.component.resources.map"
_ON_HEAP = "topology.component.resources.onheap.memory.mb"
_OFF_HEAP = "topology.component.resources.offheap.memory.mb"
_CPU = "topology.component.cpu.pcore.percent"
_SHARED_MEMORY = "stormspark.component.shared.memory"


class ComponentConfiguration:
    """Settings of one component.

    They override the topology's settings, and the settings that the component's class returns (A20). Every method raises
    `InvalidTopologyError`, which names the user's line, if an argument is wrong.
    """

    _place: str  # "bolt 'count'"

    def __init__(self) -> None:
        self._conf: dict[str, Any] = {}

    def add_configuration(self, key: str, value: Any) -> Self:
        """Set one value for this component alone.

        Only some of Storm's own keys can be set per component (A21). For any other key of Storm, a warning is logged when
        the topology starts.
        """
        return self.add_configurations({key: value})

    def add_configurations(self, conf: Mapping[str, Any]) -> Self:
        """Set values for this component alone."""
        if not isinstance(conf, Mapping):
            self._refuse(f"a configuration must be a mapping, got {conf!r} of type {type(conf).__name__}")
        if "topology.kryo.register" in conf:
            self._refuse("topology.kryo.register can only be set for the topology")
        if problems := conf_problems(conf):
            self._refuse("; ".join(problems))
        self._conf.update(conf)
        return self

    def set_num_tasks(self, tasks: int) -> Self:
        """Set the number of instances, which does not change while the topology exists. The default is the parallelism (A16)."""
        if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1:
            self._refuse(f"number of tasks must be a positive integer, got {tasks!r}")
        return self.add_configuration("topology.tasks", tasks)

    def set_debug(self, debug: bool) -> Self:
        """Log every emit, ack and fail of this component."""
        return self.add_configuration("topology.debug", debug)

    def set_max_task_parallelism(self, limit: int | None) -> Self:
        """Cap the number of tasks; None removes the cap (A16)."""
        return self.add_configuration("topology.max.task.parallelism", limit)

    def set_max_spout_pending(self, limit: int | None) -> Self:
        """Cap the open trees of each task; None removes the cap (B4)."""
        return self.add_configuration("topology.max.spout.pending", limit)

    # -- resources: kept under Storm's keys, without effect, because Spark assigns resources -----------------

    def set_memory_load(self, on_heap_mb: float, off_heap_mb: float | None = None) -> Self:
        """Set the memory of each instance, in megabytes (A9). It counts in the memory that a plan says its workers need, which
        ``stormspark explain`` prints. It has no other effect.
        """
        for key, amount in ((_ON_HEAP, on_heap_mb), (_OFF_HEAP, off_heap_mb)):
            if amount is not None or key == _ON_HEAP:
                self.add_resource(key, amount)
                self._conf[key] = float(amount or 0)
        return self

    def set_cpu_load(self, points: float) -> Self:
        """Set the CPU load of each instance, in percent of a core. The value is kept but has no effect in stormspark (A9)."""
        self.add_resource(_CPU, points)
        return self.add_configuration(_CPU, float(points))

    def add_resource(self, name: str, amount: float | None) -> Self:
        """Set any resource of each instance. The value is kept but has no effect in stormspark (A9)."""
        return self.add_resources({name: amount})

    def add_resources(self, amounts: Mapping[str, float | None]) -> Self:
        """Set several resources of each instance. The values are kept but have no effect in stormspark (A9)."""
        for name, amount in amounts.items():
            if not isinstance(name, str) or not _is_amount(amount):
                self._refuse(
                    f"a resource must be a name and a number of at least 0, got {name!r}: {amount!r}"
                )
        old = self._conf.get(_RESOURCES, {})
        return self.add_configuration(_RESOURCES, {**old, **{k: float(v or 0) for k, v in amounts.items()}})

    def add_shared_memory(
        self, name: str, *, on_heap_mb: float = 0, off_heap_worker_mb: float = 0, off_heap_node_mb: float = 0
    ) -> Self:
        """Set how many megabytes of memory the instances in one worker, or on one host, share. This has no effect here (A9)."""
        request = {
            "on-heap": on_heap_mb,
            "off-heap-worker": off_heap_worker_mb,
            "off-heap-node": off_heap_node_mb,
        }
        if not isinstance(name, str) or not name or not all(map(_is_amount, request.values())):
            self._refuse(f"shared memory must be a name and numbers of at least 0, got {name!r}: {request!r}")
        return self.add_configuration(_SHARED_MEMORY, {**self._conf.get(_SHARED_MEMORY, {}), name: request})

    def _refuse(self, problem: str) -> None:
        msg = f"{user_line()}: {self._place}: {problem}"
        raise InvalidTopologyError(msg)


def _is_amount(amount: object) -> bool:
    return isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 0
