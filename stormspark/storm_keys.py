"""The configuration keys of Storm and Heron: their names, their types, and which of them have no effect in stormspark.

`stormspark.config.Settings` has the keys that the engine reads. This module lists the keys that a configuration written for Storm
or Heron may hold. Such a key is no mistake, but its value must have Storm's type (J5). If a key has no effect in stormspark, a
warning in the log says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["MAY_BE_SET_PER_COMPONENT", "SIZING_KEYS", "STORM_KEYS", "StormKey", "storm_key_problem"]


class StormKey(NamedTuple):
    """A key of Storm or Heron: the type of its values (a name in `_TYPES`), and why it has no effect in stormspark.

    The reason is empty if the key has an effect.
    """

    type: str
    useless_because: str = ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _are_registrations(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(one, Mapping)
        and isinstance(one.get("class"), str)
        and (
            one.get("parallelism.hint") is None
            or (_is_int(one["parallelism.hint"]) and one["parallelism.hint"] > 0)
        )
        for one in value
    )


_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "any": (lambda value: True, "anything"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "text": (lambda value: isinstance(value, str), "a string"),
    "texts": (_are_texts, "a list of strings"),
    "text(s)": (lambda value: isinstance(value, str) or _are_texts(value), "a string or a list of strings"),
    "list": (lambda value: isinstance(value, list | tuple), "a list"),
    "map": (lambda value: isinstance(value, Mapping), "a mapping"),
    "registrations": (
        _are_registrations,
        "a list of mappings with a string 'class' and optionally a 'parallelism.hint' above 0",
    ),
    "int": (_is_int, "an integer"),
    "int>=0": (lambda value: _is_int(value) and value >= 0, "an integer of at least 0"),
    "int>0": (lambda value: _is_int(value) and value > 0, "an integer above 0"),
    "number": (_is_number, "a number"),
    "number>=0": (lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    "number>0": (lambda value: _is_number(value) and value > 0, "a number above 0"),
}

_RESOURCES = "Spark's own resources decide: see spark.executor.memory, spark.executor.cores and the master"
_PICKLED = "values are pickled, so there is nothing to register"
_NO_JVM = "workers are Python processes; set spark.executorEnv.* or spark.executor.extraJavaOptions"
_NO_WAITING = "no thread waits for a queue: a worker runs when there is a batch for it"
_FRAMES = (
    "tuples travel in frames of about 500, which leave with their superstep; see stormspark.batch.target.ms"
)
_READ_ANEW = "waiting tuples are counted after every round, and limits follow; see docs/backpressure.md"
_NO_SCHEDULER = "executors are distributed evenly over the workers"
_NO_USERS = "Spark and the file system decide who may do what"
_EXACT = "every tuple is counted and timed, nothing is sampled"
_NO_SUCH_METRICS = "there are no such metrics; see docs/operations/metrics.md for those that there are"
_NO_NIMBUS = "Spark ships the code"
_STATE = "state is committed with every batch, to the table beside the checkpoint; see docs/state.md"
_SECONDS = "set topology.tick.tuple.freq.secs, which may be a fraction of a second"
_NO_TRIDENT = "there is no Trident"
_LOGGING = "logs are Python's, a file for each task; see stormspark.log.dir"
_LEASE = "a worker without its driver ends after stormspark.worker.lease.secs"
_NO_UPDATES = "a running topology can't be changed"
_NO_RECEIVERS = "no thread receives: a worker has its input when its superstep begins"
_ACKERS_NOW = "it is topology.acker.executors since Storm 0.9"
_LOAD_AWARE_NOW = "it is topology.disable.loadaware.messaging since Storm 1.0.3"
_TIMESTAMPS_NOW = "a windowed bolt sets it with with_timestamp_field, as since Storm 1.1"

#: Keys, grouped by the reason why they have no effect in stormspark, and then by the type of their values. If the reason is
#: empty, another module of stormspark reads the key, or the key needs no warning.
_TABLE: Mapping[str, Mapping[str, str]] = {
    "": {
        "bool": """topology.testing.always.try.serialize topology.debug topology.enable.message.timeouts
            topology.disable.loadaware.messaging topology.backpressure.enable""",
        "text": """topology.name topology.version topology.multilang.serializer topology.bolts.late.tuple.stream
            topology.bolts.message.id.field.name topology.transactional.id""",
        "texts": "topology.auto.task.hooks",
        "registrations": "topology.event.logger.register topology.metrics.consumer.register topology.metrics.reporters",
        "int": """topology.builtin.metrics.bucket.size.secs topology.tick.tuple.freq.secs topology.worker.shared.thread.pool.size
            topology.error.throttle.interval.secs""",
        "int>=0": """topology.tasks topology.acker.executors topology.eventlogger.executors
            topology.executor.overflow.limit""",
        "int>0": """topology.workers topology.message.timeout.secs topology.max.task.parallelism
            topology.max.spout.pending
            topology.bolts.window.length.count topology.bolts.window.length.duration.ms
            topology.bolts.window.sliding.interval.count topology.bolts.window.sliding.interval.duration.ms
            topology.bolts.tuple.timestamp.max.lag.ms topology.bolts.watermark.event.interval.ms
            topology.max.error.report.per.interval topology.shellbolt.max.pending
            topology.subprocess.timeout.secs topology.executor.receive.buffer.size
            topology.eventlogger.rotation.size.mb topology.eventlogger.max.retained.files""",
        "number>0": "topology.localityaware.higher.bound topology.localityaware.lower.bound",
        # Heron's keys, whose values are strings when they are submitted (A43-A45). Names of teams and projects are mere labels.
        "any": """topology.stmgrs topology.component.parallelism topology.reliability.mode
            topology.serializer.classname topology.team.name topology.team.email
            topology.cap.ticket topology.project.name topology.acking topology.droptuples.upon.backpressure""",
    },
    _STATE: {
        "text": "topology.state.provider topology.state.provider.config",
        "int>0": "topology.state.checkpoint.interval.ms topology.state.synchronization.timeout.secs",
        "any": """topology.stateful.checkpoint.interval.seconds topology.stateful.start.clean
            topology.stateful.spill.state""",
    },
    _SECONDS: {"any": "topology.tick.tuple.freq.ms"},
    _NO_TRIDENT: {
        "int>0": "topology.trident.batch.emit.interval.millis topology.trident.windowing.cache.tuple.limit",
    },
    _LOGGING: {"text": "topology.multilang.log.handler topology.logging.sensitivity topology.logging.config"},
    _LEASE: {"int>0": "topology.worker.timeout.secs"},
    # Keys of Storm 0.5 to 1.2, and one of 2.3. Storm 2.8 no longer lists them, but old configurations still have them.
    _ACKERS_NOW: {"any": "topology.ackers topology.acker.tasks"},
    _LOAD_AWARE_NOW: {"any": "topology.disable.loadaware"},
    _TIMESTAMPS_NOW: {"any": "topology.bolts.tuple.timestamp.field.name"},
    _NO_RECEIVERS: {"any": "topology.worker.receiver.thread.count topology.receiver.buffer.size"},
    _NO_UPDATES: {"any": "topology.update.deactivate.wait.secs topology.update.reactivate.wait.secs"},
    _RESOURCES: {
        # Storm keeps requests for shared memory outside of the configuration, without a key. stormspark has a key for them.
        "map": "topology.component.resources.map stormspark.component.shared.memory",
        "number>=0": """topology.component.resources.onheap.memory.mb topology.component.resources.offheap.memory.mb
            topology.component.cpu.pcore.percent topology.acker.resources.onheap.memory.mb
            topology.acker.resources.offheap.memory.mb topology.acker.cpu.pcore.percent
            topology.metrics.consumer.resources.onheap.memory.mb topology.metrics.consumer.resources.offheap.memory.mb
            topology.metrics.consumer.cpu.pcore.percent""",
        "number>0": "topology.worker.max.heap.size.mb",
        "any": """topology.container.cpu topology.container.ram topology.container.disk topology.container.max.cpu.hint
            topology.oci.image
            topology.container.max.ram.hint topology.container.max.disk.hint topology.container.padding.percentage
            topology.container.ram.padding topology.component.cpumap topology.component.rammap
            topology.component.diskmap""",
    },
    _PICKLED: {
        "list": "topology.kryo.register",
        "texts": "topology.kryo.decorators topology.state.kryo.register",
        "text": "topology.kryo.factory topology.tuple.serializer",
        "bool": """topology.skip.missing.kryo.registrations topology.fall.back.on.java.serialization
            topology.tuple.compression.enable""",
        "number>=0": "topology.tuple.compression.threshold",
        "number>0": "topology.tuple.compression.max.decompressed.bytes",
        "any": "topology.serializations topology.skip.missing.serializations",
    },
    _NO_JVM: {
        "text(s)": """topology.worker.childopts topology.worker.gc.childopts topology.worker.logwriter.childopts
            topology.classpath topology.classpath.beginning""",
        "map": "topology.environment",
        "any": "topology.component.jvmopts topology.additional.classpath",
    },
    _NO_WAITING: {
        "text": "topology.spout.wait.strategy topology.bolt.wait.strategy topology.backpressure.wait.strategy",
        "int>=0": """topology.spout.wait.progressive.level1.count topology.spout.wait.progressive.level2.count
            topology.bolt.wait.progressive.level1.count topology.bolt.wait.progressive.level2.count
            topology.backpressure.wait.progressive.level1.count topology.backpressure.wait.progressive.level2.count
            topology.sleep.spout.wait.strategy.time.ms topology.spout.recvq.skips""",
        "number>=0": """topology.spout.wait.park.microsec topology.spout.wait.progressive.level3.sleep.millis
            topology.bolt.wait.park.microsec topology.bolt.wait.progressive.level3.sleep.millis
            topology.backpressure.wait.park.microsec topology.backpressure.wait.progressive.level3.sleep.millis""",
        "any": "topology.disruptor.wait.strategy topology.disruptor.wait.timeout.millis topology.optimize",
    },
    _FRAMES: {
        "bool": "topology.producer.batch.dynamic",
        "int>=0": "topology.batch.flush.interval.millis",
        "int>0": "topology.transfer.buffer.size topology.transfer.batch.size topology.producer.batch.size",
        "any": """topology.disruptor.batch.size topology.disruptor.batch.timeout.millis topology.executor.send.buffer.size""",
    },
    _READ_ANEW: {
        "bool": "topology.upstream.feedback.enable",
        "int>0": "topology.backpressure.check.millis topology.upstream.feedback.freq.secs",
        # Keys of JStorm and Heron (F13, F9). They say how often, and in how many of its tasks, a bolt has to be full before
        # spouts are slowed down.
        "any": """topology.backpressure.check.interval topology.backpressure.trigger.sample.rate
            topology.backpressure.trigger.sample.number topology.backpressure.coordinator.trigger.ratio
            heron.streammgr.network.backpressure.threshold topology.component.output.bps
            topology.bolts.outgoing.overflow.buffer.enable""",
    },
    _NO_SCHEDULER: {
        "text": "topology.scheduler.strategy",
        "texts": """topology.spread.components topology.scheduler.favored.nodes topology.scheduler.unfavored.nodes""",
        "bool": """topology.ras.order.executors.by.proximity.needs topology.ras.one.executor.per.worker
            topology.ras.one.component.per.worker""",
        "int>=0": "topology.ras.acker.executors.per.worker topology.priority",
        "int>0": """topology.ras.constraint.max.state.search topology.ras.constraint.max.time.secs
            topology.isolate.machines""",
        "any": "topology.ras.constraints",
    },
    _NO_USERS: {
        "text(s)": "topology.users topology.groups topology.readonly.users topology.readonly.groups",
        "text": "topology.submitter.principal topology.submitter.user",
        "texts": "topology.auto-credentials",
        "bool": "topology.worker.nimbus.thrift.client.use.tls",
    },
    _EXACT: {
        "number>0": "topology.stats.sample.rate",
        "bool": "topology.stats.ewma.enable",
        "number": "topology.stats.ewma.smoothing.factor",
    },
    _NO_SUCH_METRICS: {
        "bool": """topology.enable.v2.metrics.tick topology.enable.send.iconnection.metrics
            topology.serialized.message.size.metrics""",
        "map": "topology.worker.metrics",
        "int>0": "topology.v2.metrics.tick.interval.seconds",
        "any": "topology.timer.events",
    },
    _NO_NIMBUS: {
        "number": "topology.min.replication.count topology.max.replication.wait.time.sec",
        "map": "topology.blobstore.map",
    },
}

STORM_KEYS: Mapping[str, StormKey] = {
    key: StormKey(kind, reason)
    for reason, kinds in _TABLE.items()
    for kind, keys in kinds.items()
    for key in keys.split()
}

#: Storm's keys that a component's own configuration may set (A21). They include two keys that Storm does not pass on to
#: components. One is the watermark interval: if it were not passed on, ``with_watermark_interval`` would have no effect (A22).
#: The other one is ``topology.auto.task.hooks``, so that a component can have task hooks of its own.
MAY_BE_SET_PER_COMPONENT: frozenset[str] = frozenset(
    """topology.debug topology.max.spout.pending topology.max.task.parallelism topology.transactional.id
    topology.tick.tuple.freq.secs topology.sleep.spout.wait.strategy.time.ms topology.spout.wait.strategy
    topology.bolts.window.length.count topology.bolts.window.length.duration.ms
    topology.bolts.window.sliding.interval.count topology.bolts.window.sliding.interval.duration.ms
    topology.bolts.tuple.timestamp.max.lag.ms topology.bolts.message.id.field.name topology.state.provider
    topology.state.provider.config topology.bolts.late.tuple.stream topology.bolts.watermark.event.interval.ms
    topology.auto.task.hooks""".split()
)

#: The keys of a component's configuration that Storm reads only to plan and schedule the topology. Like every key that is not in
#: `MAY_BE_SET_PER_COMPONENT`, they are not passed on to the component's tasks (A16, A21).
SIZING_KEYS: frozenset[str] = frozenset(
    """topology.tasks topology.component.resources.map stormspark.component.shared.memory
    topology.component.resources.onheap.memory.mb
    topology.component.resources.offheap.memory.mb topology.component.cpu.pcore.percent""".split()
)


def storm_key_problem(key: str, value: Any) -> str | None:
    """Return a sentence that says what is wrong with the value of one of Storm's keys, or None (J5).

    >>> storm_key_problem("topology.kryo.factory", 3)
    'topology.kryo.factory must be a string, got 3 of type int'
    >>> storm_key_problem("topology.kryo.factory", "mine"), storm_key_problem("my.own", 3)
    (None, None)
    """
    known = STORM_KEYS.get(key)
    if known is None or value is None:
        return None
    fits, wanted = _TYPES[known.type]
    return None if fits(value) else f"{key} must be {wanted}, got {value!r} of type {type(value).__name__}"
