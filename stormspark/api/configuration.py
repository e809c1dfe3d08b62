"""A topology's configuration with Storm's setters (A23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from stormspark.config import conf_problems
from stormspark.errors import InvalidTopologyError

__all__ = ["Config"]


class Config(dict[str, Any]):
    """A dict with a method for each of Storm's usual settings; goes wherever a mapping does.

    Methods return the configuration itself. They check the type and raise `InvalidTopologyError` naming the
    key. What can mean nothing here (JVM options, serialisers, resources) is set all the same, and advice says
    so when the topology is planned.

    >>> Config({"my.file": "words.txt"}).set_num_workers(2).set_max_spout_pending(5000)
    {'my.file': 'words.txt', 'topology.workers': 2, 'topology.max.spout.pending': 5000}
    """

    def _set(self, key: str, value: Any) -> Self:
        if problems := conf_problems({key: value}):
            raise InvalidTopologyError(problems[0])
        self[key] = value
        return self

    def _append(self, key: str, value: Any) -> Self:
        return self._set(key, [*(self.get(key) or []), value])

    # -- how the topology runs --------------------------------------------------------------------------------

    def set_debug(self, on: bool) -> Self:
        """Log every emit and ack."""
        return self._set("topology.debug", on)

    def set_num_workers(self, workers: int) -> Self:
        """How many worker processes there are (A16)."""
        return self._set("topology.workers", workers)

    def set_num_ackers(self, executors: int | None) -> Self:
        """0 turns acking off; any other number shifts task ids only, because workers track their own trees (E12)."""
        return self._set("topology.acker.executors", executors)

    def set_num_event_loggers(self, executors: int) -> Self:
        """There are no event loggers here; the number shifts task ids as in Storm (A18)."""
        return self._set("topology.eventlogger.executors", executors)

    def set_message_timeout_secs(self, seconds: float) -> Self:
        """After so long a tree that is still open fails (E10)."""
        return self._set("topology.message.timeout.secs", seconds)

    def set_max_spout_pending(self, limit: int | None) -> Self:
        """Cap the open trees of each spout task (B4)."""
        return self._set("topology.max.spout.pending", limit)

    def set_max_task_parallelism(self, limit: int | None) -> Self:
        """Cap the tasks of each component (A16)."""
        return self._set("topology.max.task.parallelism", limit)

    def set_topology_version(self, version: str) -> Self:
        """A name for this version of the topology."""
        return self._set("topology.version", version)

    def set_topology_priority(self, priority: int) -> Self:
        """Storm's resource-aware scheduler reads it."""
        return self._set("topology.priority", priority)

    def set_topology_strategy(self, strategy: str) -> Self:
        """The strategy of Storm's resource-aware scheduler."""
        return self._set("topology.scheduler.strategy", strategy)

    # -- metrics and events -----------------------------------------------------------------------------------

    def set_stats_sample_rate(self, rate: float) -> Self:
        """Counts are exact here, whatever the rate (W21)."""
        return self._set("topology.stats.sample.rate", rate)

    def register_metrics_consumer(
        self, consumer: type | str, argument: Any = None, parallelism: int = 1
    ) -> Self:
        """Add a metrics consumer, a class or ``module:Class``, to those that there are (J17)."""
        entry = {"class": _class_name(consumer), "parallelism.hint": parallelism, "argument": argument}
        return self._append("topology.metrics.consumer.register", entry)

    def register_event_logger(self, logger: type | str, arguments: Mapping[str, Any] | None = None) -> Self:
        """Add an event logger, a class or ``module:Class``, to those that there are."""
        entry = {"class": _class_name(logger), "arguments": arguments}
        return self._append("topology.event.logger.register", entry)

    # -- serialisation: values are pickled here ---------------------------------------------------------------

    def register_serialization(self, cls: type | str, serializer: type | str | None = None) -> Self:
        """Kryo's registration of a class; values are pickled here and need none."""
        name = _class_name(cls)
        return self._append(
            "topology.kryo.register", name if serializer is None else {name: _class_name(serializer)}
        )

    def register_decorator(self, decorator: type | str) -> Self:
        """A decorator of Kryo."""
        return self._append("topology.kryo.decorators", _class_name(decorator))

    def set_kryo_factory(self, factory: type | str) -> Self:
        """The factory of Kryo."""
        return self._set("topology.kryo.factory", _class_name(factory))

    def set_skip_missing_kryo_registrations(self, skip: bool) -> Self:
        """Whether Storm minds classes that it can't load."""
        return self._set("topology.skip.missing.kryo.registrations", skip)

    def set_fall_back_on_java_serialization(self, fall_back: bool) -> Self:
        """Whether Storm takes Java's serialisation where Kryo has no registration."""
        return self._set("topology.fall.back.on.java.serialization", fall_back)

    # -- processes and resources: Spark's settings decide here -------------------------------------------------

    def set_environment(self, environment: Mapping[str, str]) -> Self:
        """Environment variables of Storm's workers."""
        return self._set("topology.environment", dict(environment))

    def set_classpath(self, classpath: str | list[str]) -> Self:
        """Class path of Storm's workers."""
        return self._set("topology.classpath", classpath)

    def set_topology_worker_max_heap_size(self, megabytes: float) -> Self:
        """Heap of a worker of Storm."""
        return self._set("topology.worker.max.heap.size.mb", megabytes)

    def set_topology_component_memory(self, on_heap_mb: float, off_heap_mb: float | None = None) -> Self:
        """Memory of each instance, for components that say nothing."""
        self._set("topology.component.resources.onheap.memory.mb", on_heap_mb)
        if off_heap_mb is not None:
            self._set("topology.component.resources.offheap.memory.mb", off_heap_mb)
        return self

    def set_topology_component_cpu(self, points: float) -> Self:
        """Percent of a core of each instance, for components that say nothing."""
        return self._set("topology.component.cpu.pcore.percent", points)


def _class_name(cls: type | str) -> str:
    """``module:Class`` of a class; a text stays as it is."""
    return cls if isinstance(cls, str) else f"{cls.__module__}:{cls.__qualname__}"
