"""Settings of a topology: Storm's ``topology.*`` keys and ours, typed.

A configuration is a plain mapping, as in Storm (A20-A25). `Settings` is what the engine reads out of it. Keys
that neither Storm nor stormspark knows are the user's own and pass through untouched; one that begins with
``topology.`` or ``stormspark.`` but is unknown is most likely misspelt, and `unknown_keys` finds the nearest
one that exists.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any

from stormspark.errors import InvalidTopologyError

__all__ = ["KNOWN_KEYS", "Settings", "merged", "parse_assignment", "unknown_keys"]

#: Keys of Storm and Heron that change nothing here but are no mistake in a configuration that was written for
#: them.
_ACCEPTED = """
topology.backpressure.check.millis topology.backpressure.enable topology.backpressure.wait.strategy
topology.bolt.wait.strategy topology.bolts.late.tuple.stream topology.bolts.message.id.field.name
topology.bolts.tuple.timestamp.max.lag.ms topology.bolts.watermark.event.interval.ms topology.bolts.window.length.count
topology.bolts.window.length.duration.ms topology.bolts.window.sliding.interval.count
topology.bolts.window.sliding.interval.duration.ms topology.builtin.metrics.bucket.size.secs topology.classpath
topology.component.cpu.pcore.percent topology.component.parallelism topology.component.resources.offheap.memory.mb
topology.component.resources.onheap.memory.mb topology.debug topology.environment
 topology.eventlogger.executors topology.executor.overflow.limit
topology.fall.back.on.java.serialization topology.kryo.register

topology.metrics.consumer.register topology.min.replication.count topology.multilang.serializer topology.name
topology.priority topology.producer.batch.size topology.reliability.mode topology.shellbolt.max.pending
topology.skip.missing.kryo.registrations topology.sleep.spout.wait.strategy.time.ms topology.spout.recvq.skips
topology.spout.wait.strategy topology.state.checkpoint.interval.ms topology.state.provider topology.state.provider.config
topology.stats.sample.rate topology.stmgrs topology.subprocess.timeout.secs topology.testing.always.try.serialize
 topology.transactional.id topology.transfer.batch.size topology.transfer.buffer.size
topology.trident.batch.emit.interval.millis topology.worker.childopts topology.worker.max.heap.size.mb

""".split()


def _setting(key: str, default: Any, *types: type, least: float | None = None) -> Any:
    return field(default=default, metadata={"key": key, "types": types, "least": least})


@dataclass(frozen=True)
class Settings:
    """What the engine reads from a topology's configuration; defaults are Storm's (A25).

    Units are in the names: ``_secs`` seconds, ``_ms`` milliseconds, ``_bytes`` bytes, ``_tuples`` tuples.

    >>> Settings.read({"topology.workers": 2}).acker_executors
    2
    >>> Settings.read({"topology.acker.executors": 0}).acking
    False
    """

    workers: int = _setting("topology.workers", 1, int, least=1)
    ackers: int | None = _setting("topology.acker.executors", None, int, least=0)
    message_timeout_secs: float = _setting("topology.message.timeout.secs", 30, int, float, least=0.001)
    enable_message_timeouts: bool = _setting("topology.enable.message.timeouts", True, bool)
    max_spout_pending: int | None = _setting("topology.max.spout.pending", None, int, least=0)
    max_task_parallelism: int | None = _setting("topology.max.task.parallelism", None, int, least=1)
    tasks: int | None = _setting("topology.tasks", None, int, least=1)
    debug: bool = _setting("topology.debug", False, bool)
    #: None or 0: no ticks. Of a component's own configuration, or of the topology's for all bolts (C9).
    tick_freq_secs: float | None = _setting("topology.tick.tuple.freq.secs", None, int, float, least=0)
    #: Of each task at most so many errors an interval are logged and told; all of them are counted (C4).
    errors_per_interval: int = _setting("topology.max.error.report.per.interval", 5, int, least=1)
    error_interval_secs: float = _setting("topology.error.throttle.interval.secs", 10, int, float, least=0)
    #: Classes of task hooks, as ``module:Class``, for every task (J21).
    auto_hooks: Sequence[str] | None = _setting("topology.auto.task.hooks", None, list)
    shared_threads: int = _setting("topology.worker.shared.thread.pool.size", 4, int, least=1)
    #: How long a batch should last under full load: spouts are asked for tuples for about so long.
    batch_target_ms: float = _setting("stormspark.batch.target.ms", 1000, int, float, least=1)
    #: A superstep ends after this time at the latest; what is left stays queued, in order.
    superstep_deadline_ms: float = _setting("stormspark.superstep.deadline.ms", 10_000, int, float, least=1)
    queue_high_mark_bytes: int = _setting("stormspark.queue.high.mark.bytes", 100 * 1024 * 1024, int, least=1)
    queue_low_mark_bytes: int = _setting("stormspark.queue.low.mark.bytes", 50 * 1024 * 1024, int, least=0)
    queue_high_mark_tuples: int = _setting("stormspark.queue.high.mark.tuples", 1_000_000, int, least=1)
    queue_low_mark_tuples: int = _setting("stormspark.queue.low.mark.tuples", 500_000, int, least=0)
    #: So many executions of one task may raise one after another before the topology stops with the error.
    max_restarts_in_row: int = _setting("stormspark.task.max.restarts.in.row", 10, int, least=0)
    #: Time between two batches counts for message timeouts up to this much: the running clock.
    clock_gap_ms: float = _setting("stormspark.clock.gap.ms", 1000, int, float, least=0)
    fields_ints: str = _setting("stormspark.fields.ints", "long", str)
    #: Storm's default is False; said aloud it means Storm's shuffle here too, which follows load (D6, W17).
    disable_load_aware: bool | None = _setting("topology.disable.loadaware.messaging", None, bool)
    #: Mean loads, from 0 to 1, at which a shuffle that follows load leaves its worker, and at which it comes back.
    locality_higher_bound: float = _setting("topology.localityaware.higher.bound", 0.8, int, float, least=0)
    locality_lower_bound: float = _setting("topology.localityaware.lower.bound", 0.2, int, float, least=0)
    #: So many tuples in the queue of a task are a load of 1; it bounds nothing.
    receive_buffer_tuples: int = _setting("topology.executor.receive.buffer.size", 32768, int, least=1)
    trigger_interval_ms: float = _setting("stormspark.trigger.interval.ms", 0, int, float, least=0)
    worker_start_timeout_secs: float = _setting(
        "stormspark.worker.start.timeout.secs", 60, int, float, least=1
    )
    #: A worker that hears nothing from its driver for so long exits.
    worker_lease_secs: float = _setting("stormspark.worker.lease.secs", 30, int, float, least=1)
    #: Replies kept for requests that Spark may repeat; above this size they go to disk.
    replies_memory_bytes: int = _setting("stormspark.replies.memory.bytes", 64 * 1024 * 1024, int, least=0)
    #: A worker that is in one call of user code for so long is told of in the driver's log.
    stuck_warning_secs: float = _setting("stormspark.stuck.warning.secs", 10, int, float, least=0.1)
    log_dir: str | None = _setting("stormspark.log.dir", None, str)
    log_level: str = _setting("stormspark.log.level", "INFO", str)
    log_max_bytes: int = _setting("stormspark.log.max.bytes", 1_000_000, int, least=1)
    log_backup_count: int = _setting("stormspark.log.backup.count", 5, int, least=0)
    #: A batch is tried so many times (a worker is lost, Spark fails) before the topology stops with the
    #: reason.
    max_attempts: int = _setting("stormspark.max.attempts", 10, int, least=1)

    @property
    def acker_executors(self) -> int:
        """Ackers in Storm's sense: null means one a worker (E12). They only shift task ids here (A18)."""
        return self.workers if self.ackers is None else self.ackers

    @property
    def acking(self) -> bool:
        """False where ``topology.acker.executors`` is 0: nothing is tracked, acks come inside emit (B8)."""
        return self.acker_executors > 0

    @property
    def timeout_secs(self) -> float | None:
        """The message timeout, or None where ``topology.enable.message.timeouts`` is off (E10)."""
        return self.message_timeout_secs if self.enable_message_timeouts else None

    @classmethod
    def read(cls, conf: Mapping[str, Any]) -> Settings:
        """Take the settings out of ``conf``.

        Raises `InvalidTopologyError` naming the key when a value has a wrong type or is too small (J5).
        """
        given = {
            f.name: _checked(f, conf[f.metadata["key"]])
            for f in fields(cls)
            if conf.get(f.metadata["key"]) is not None
        }
        if given.get("fields_ints", "long") not in ("long", "integer", "json"):
            msg = f"stormspark.fields.ints must be 'long', 'integer' or 'json' (D3), got {given['fields_ints']!r}"
            raise InvalidTopologyError(msg)
        return cls(**given)


def _checked(setting: Field[Any], value: Any) -> Any:
    key, types, least = setting.metadata["key"], setting.metadata["types"], setting.metadata["least"]
    # bool is an int to Python, but `topology.workers: true` is a mistake and 1 is no truth value.
    if not isinstance(value, types) or isinstance(value, bool) != (bool in types):
        wanted = " or ".join(kind.__name__ for kind in types)
        msg = f"{key} must be {wanted}, got {value!r} of type {type(value).__name__}"
        raise InvalidTopologyError(msg)
    if least is not None and value < least:
        msg = f"{key} must be at least {least}, got {value!r}"
        raise InvalidTopologyError(msg)
    return value


#: Every key that is no spelling mistake: those `Settings` reads, and those of Storm's and Heron's that change
#: nothing here.
KNOWN_KEYS: frozenset[str] = frozenset(f.metadata["key"] for f in fields(Settings)) | frozenset(_ACCEPTED)


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Lay configurations over each other, lowest precedence first (A20).

    >>> merged({"topology.debug": False, "mine": 1}, {"topology.debug": True})
    {'topology.debug': True, 'mine': 1}
    """
    result: dict[str, Any] = {}
    for layer in layers:
        result.update(layer)
    return result


def parse_assignment(text: str) -> tuple[str, Any]:
    """Read ``key=value`` of a command line; the value is JSON where it can be, else text (A20).

    >>> parse_assignment("topology.workers=2"), parse_assignment("stormspark.log.level=DEBUG")
    (('topology.workers', 2), ('stormspark.log.level', 'DEBUG'))
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        msg = f"expected key=value, got {text!r}"
        raise InvalidTopologyError(msg)
    try:
        return key.strip(), json.loads(value)
    except json.JSONDecodeError:
        return key.strip(), value


def unknown_keys(conf: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Keys in Storm's or our name space that do not exist, each with the nearest one that does.

    >>> unknown_keys({"topology.wrokers": 2, "my.own.key": 1})
    [('topology.wrokers', 'topology.workers')]
    """
    strange = [k for k in conf if k.startswith(("topology.", "stormspark.")) and k not in KNOWN_KEYS]
    return [(key, next(iter(difflib.get_close_matches(key, KNOWN_KEYS, 1)), None)) for key in strange]
