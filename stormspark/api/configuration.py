"""A topology's configuration with Storm's setters (A23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from stormspark.config import conf_problems
from stormspark.errors import InvalidTopologyError

__all__ = ["Config"]


class Config(dict[str, Any]):
    """A configuration: a dict with one method for each of Storm's usual settings.

    The methods return the configuration itself. If a value is not allowed, they raise an `InvalidTopologyError` that names the
    key. Settings that have no effect in stormspark (JVM options, serialisers, resources) are kept as well. When the topology is
    planned, a warning names them.

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
        """Set the number of worker processes (A16)."""
        return self._set("topology.workers", workers)

    def set_num_ackers(self, executors: int | None) -> Self:
        """Set the number of ackers; None means one per worker, and 0 turns acking off.

        Any other number only shifts task ids, because workers track trees themselves (E12).
        """
        return self._set("topology.acker.executors", executors)

    def set_num_event_loggers(self, executors: int) -> Self:
        """Set the number of event loggers. Each worker logs its own events, but the number shifts task ids as in Storm (A18)."""
        return self._set("topology.eventlogger.executors", executors)

    def set_message_timeout_secs(self, seconds: float) -> Self:
        """Set the message timeout: a tree that stays open fails after one to two timeouts (E10)."""
        return self._set("topology.message.timeout.secs", seconds)

    def set_max_spout_pending(self, limit: int | None) -> Self:
        """Cap the open trees of each spout task; None means no cap (B4)."""
        return self._set("topology.max.spout.pending", limit)

    def set_max_task_parallelism(self, limit: int | None) -> Self:
        """Cap the tasks of each component; None means no cap (A16)."""
        return self._set("topology.max.task.parallelism", limit)

    def set_topology_version(self, version: str) -> Self:
        """Name this version of the topology."""
        return self._set("topology.version", version)

    def set_topology_priority(self, priority: int) -> Self:
        """Set the priority for Storm's resource-aware scheduler."""
        return self._set("topology.priority", priority)

    def set_topology_strategy(self, strategy: str) -> Self:
        """Set the strategy of Storm's resource-aware scheduler."""
        return self._set("topology.scheduler.strategy", strategy)

    # -- metrics and events -----------------------------------------------------------------------------------

    def set_stats_sample_rate(self, rate: float) -> Self:
        """Set Storm's sample rate of statistics. In stormspark, counts are exact at any rate (W21)."""
        return self._set("topology.stats.sample.rate", rate)

    def register_metrics_consumer(
        self, consumer: type | str, argument: Any = None, parallelism: int = 1
    ) -> Self:
        """Add a metrics consumer, given as a class or as ``module:Class`` (J17)."""
        entry = {"class": _class_name(consumer), "parallelism.hint": parallelism, "argument": argument}
        return self._append("topology.metrics.consumer.register", entry)

    def register_event_logger(self, logger: type | str, arguments: Mapping[str, Any] | None = None) -> Self:
        """Add an event logger, given as a class or as ``module:Class`` (J20)."""
        entry = {"class": _class_name(logger), "arguments": arguments}
        return self._append("topology.event.logger.register", entry)

    # -- serialisation: stormspark pickles values -------------------------------------------------------------

    def register_serialization(self, cls: type | str, serializer: type | str | None = None) -> Self:
        """Register a class with Kryo. stormspark pickles values, so it needs no registration."""
        name = _class_name(cls)
        return self._append(
            "topology.kryo.register", name if serializer is None else {name: _class_name(serializer)}
        )

    def register_decorator(self, decorator: type | str) -> Self:
        """Add a Kryo decorator."""
        return self._append("topology.kryo.decorators", _class_name(decorator))

    def set_kryo_factory(self, factory: type | str) -> Self:
        """Set the Kryo factory."""
        return self._set("topology.kryo.factory", _class_name(factory))

    def set_skip_missing_kryo_registrations(self, skip: bool) -> Self:
        """Set whether Storm ignores registered classes that it can't load."""
        return self._set("topology.skip.missing.kryo.registrations", skip)

    def set_fall_back_on_java_serialization(self, fall_back: bool) -> Self:
        """Set whether Storm uses Java's serialisation for classes that Kryo does not know."""
        return self._set("topology.fall.back.on.java.serialization", fall_back)

    # -- processes and resources: Spark's settings decide -----------------------------------------------------

    def set_environment(self, environment: Mapping[str, str]) -> Self:
        """Set environment variables of Storm's workers."""
        return self._set("topology.environment", dict(environment))

    def set_classpath(self, classpath: str | list[str]) -> Self:
        """Set the class path of Storm's workers."""
        return self._set("topology.classpath", classpath)

    def set_topology_worker_max_heap_size(self, megabytes: float) -> Self:
        """Set the heap of a Storm worker, in megabytes."""
        return self._set("topology.worker.max.heap.size.mb", megabytes)

    def set_topology_component_memory(self, on_heap_mb: float, off_heap_mb: float | None = None) -> Self:
        """Set the memory of each instance, in megabytes, for components that do not set their own."""
        self._set("topology.component.resources.onheap.memory.mb", on_heap_mb)
        if off_heap_mb is not None:
            self._set("topology.component.resources.offheap.memory.mb", off_heap_mb)
        return self

    def set_topology_component_cpu(self, points: float) -> Self:
        """Set the CPU load of each instance, in percent of a core, for components that do not set their own."""
        return self._set("topology.component.cpu.pcore.percent", points)


def _class_name(cls: type | str) -> str:
    """Return ``module:Class`` for a class; a string stays as it is."""
    return cls if isinstance(cls, str) else f"{cls.__module__}:{cls.__qualname__}"
