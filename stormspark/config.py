"""The settings of a topology: Storm's ``topology.*`` keys and stormspark's own, with their types.

A configuration is a plain mapping, as in Storm (A20-A25). `Settings` holds the keys that the engine reads from it, and
`stormspark.storm_keys` lists Storm's and Heron's keys. Keys that neither Storm nor stormspark knows are the user's own and
pass through untouched. But an unknown key that begins with ``topology.`` or ``stormspark.`` is most likely misspelt. For such a
key `unknown_keys` finds the nearest key that exists.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, NamedTuple

from stormspark.errors import InvalidTopologyError
from stormspark.extras import version_of
from stormspark.launcher import pyspark_found
from stormspark.storm_keys import MAY_BE_SET_PER_COMPONENT, STORM_KEYS, storm_key_problem

__all__ = [
    "DELTA_PACKAGE",
    "KNOWN_KEYS",
    "Settings",
    "conf_problems",
    "delta_artifact",
    "for_component",
    "is_of_components",
    "merged",
    "parse_assignment",
    "unknown_keys",
]


def _delta_package() -> str:
    """Name Delta's jar for the PySpark and the Delta package that are here, or else for those that stormspark asks for."""
    spark = "4.2.0"
    if (found := pyspark_found()) is not None and found[1][:1].isdigit():
        spark = found[1]  # a cluster's own may be on the path without being installed
    return delta_artifact(spark, version_of("delta-spark") or "4.4.0")


def delta_artifact(spark: str, delta: str) -> str:
    """Name Delta's jar for a version of Spark. Up to Delta 4.0 there is one for each version of Delta alone.

    >>> delta_artifact("4.0.1", "4.0.0"), delta_artifact("4.1.4", "4.4.0")
    ('io.delta:delta-spark_2.13:4.0.0', 'io.delta:delta-spark_4.1_2.13:4.4.0')
    """
    of_spark = "" if delta.startswith("4.0.") else f"_{'.'.join(spark.split('.')[:2])}"
    return f"io.delta:delta-spark{of_spark}_2.13:{delta}"


#: The value of spark-submit's ``--packages`` that adds Delta to Spark, for Scala 2.13.
DELTA_PACKAGE = _delta_package()


_LAST_PORT = 65535


class _Marks(NamedTuple):
    """The values of two water marks, and their keys in one system: Storm 1, JStorm, Heron or stormspark.

    A mark is None if the configuration does not set it.
    """

    high_key: str
    low_key: str
    high: float | None
    low: float | None
    #: The default of the high mark. The default of the low mark is half of the high one.
    default: float
    #: How many bytes or tuples a mark of 1 stands for.
    unit: float = 1

    def read(self) -> tuple[int, int]:
        """Return the high and the low mark, in bytes or tuples. Raises `InvalidTopologyError` unless low is below high."""
        high = self.default if self.high is None else self.high
        low = high / 2 if self.low is None else self.low
        if low >= high:
            msg = f"{self.low_key} must be below {self.high_key}, got {low:.10g} and {high:.10g}"
            raise InvalidTopologyError(msg)
        whole = max(1, int(high * self.unit))
        return whole, min(int(low * self.unit), whole - 1)


_HIGH_BYTES, _HIGH_TUPLES = 100 * 1024 * 1024, 1_000_000
_BYTE_KEYS = ("stormspark.queue.high.mark.bytes", "stormspark.queue.low.mark.bytes")
_TUPLE_KEYS = ("stormspark.queue.high.mark.tuples", "stormspark.queue.low.mark.tuples")


def _read_first_given(*pairs: _Marks) -> tuple[int, int]:
    """Return the marks of the first pair in which a mark is set. If no mark is set, return the first pair's defaults."""
    given = (pair for pair in pairs if pair.high is not None or pair.low is not None)
    return next(given, pairs[0]).read()


def _setting(
    key: str,
    default: Any,
    *types: type,
    least: float | None = None,
    one_of: tuple[str, ...] = (),
    of_components: bool = False,
) -> Any:
    """Declare a setting with its key, its default and the types of its values.

    ``least`` is the smallest value that is allowed, and ``one_of`` are the allowed words. ``of_components`` is true for a
    key of stormspark that a component's own configuration may set. `stormspark.storm_keys` lists Storm's keys of this kind.
    """
    metadata: dict[str, Any] = {"key": key, "types": types, "of_components": of_components}
    metadata |= {"least": least, "one_of": one_of}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """The settings that the engine reads from a topology's configuration.

    Unless a comment says otherwise, Storm's keys have Storm's defaults (A25).

    Units are in the names: ``_secs`` means seconds, ``_ms`` milliseconds, ``_bytes`` bytes, and ``_tuples`` tuples.

    >>> Settings.read({"topology.workers": 2}).acker_executors
    2
    >>> Settings.read({"topology.acker.executors": 0}).acking
    False
    """

    #: None: planning chooses the number, by the cores that the engine offers (`stormspark.plan.workers`).
    workers: int | None = _setting("topology.workers", None, int, least=1)
    #: The number of ackers in Storm's sense; None: one per worker. 0: trees are not tracked, and ``ack`` is called inside
    #: ``emit`` (B8). Any other number only shifts task ids (A18).
    ackers: int | None = _setting("topology.acker.executors", None, int, least=0)
    #: A tree that is not acked within this time, or a little later, fails (E10).
    message_timeout_secs: float = _setting("topology.message.timeout.secs", 30, int, float, least=0.001)
    #: Whether trees time out.
    enable_message_timeouts: bool = _setting("topology.enable.message.timeouts", True, bool)
    #: With b buckets, an open tree fails after 1 to b / (b - 1) timeouts: 1 to 2 in Storm (E10), 1 to 1.1 in Heron (B25).
    timeout_buckets: int = _setting("stormspark.message.timeout.buckets", 2, int, least=2)
    #: How many trees of a task of a spout may be open at once (B4); None or 0: any number.
    max_spout_pending: int | None = _setting("topology.max.spout.pending", None, int, least=0)
    #: The largest number of tasks of any component (A16); None: there is no cap.
    max_task_parallelism: int | None = _setting("topology.max.task.parallelism", None, int, least=1)
    #: The number of tasks of a component whose declaration does not set one (A16); None: one for each executor.
    tasks: int | None = _setting("topology.tasks", None, int, least=1)
    #: Whether tasks log every emit, ack and fail.
    debug: bool = _setting("topology.debug", False, bool)
    #: Each worker logs events of its own tasks (J20). The number of event loggers, like that of the ackers, only shifts task ids
    #: (A18).
    event_loggers: int = _setting("topology.eventlogger.executors", 0, int, least=0)
    #: The largest number of workers that a topology may ask for (J5); None: there is no limit.
    workers_allowed: int | None = _setting("nimbus.slots.perTopology", None, int, least=1)
    #: The largest number of executors that a topology may have (J5); None: there is no limit.
    executors_allowed: int | None = _setting("nimbus.executors.perTopology", None, int, least=1)
    #: A class of Storm's that checks topologies (J5). Only the strict one has an effect.
    validator: str | None = _setting("nimbus.topology.validator", None, str)
    #: The seconds between two ticks; None or 0: no ticks. The topology's configuration sets the interval of all bolts. A bolt's
    #: own configuration overrides it (C9).
    tick_freq_secs: float | None = _setting("topology.tick.tuple.freq.secs", None, int, float, least=0)
    #: At most this many errors of a task are logged and reported per interval. All errors are counted (C4).
    errors_per_interval: int = _setting("topology.max.error.report.per.interval", 5, int, least=1)
    #: The interval that `errors_per_interval` counts in.
    error_interval_secs: float = _setting("topology.error.throttle.interval.secs", 10, int, float, least=0)
    #: Classes of task hooks, as ``module:Class``, for every task (J21).
    auto_hooks: Sequence[str] | None = _setting("topology.auto.task.hooks", None, list)
    #: Whether to pickle every tuple, even if it stays in its worker (C8).
    try_serialize: bool = _setting("topology.testing.always.try.serialize", False, bool)
    #: How many threads the executor has that the tasks of a worker share (A28).
    shared_threads: int = _setting("topology.worker.shared.thread.pool.size", 4, int, least=1)
    #: Whether each batch is one transaction. None: batches are transactions if a component has state or is told of batches, or if
    #: `reliability_mode` asks for transactions.
    exactly_once: bool | None = _setting("stormspark.exactly.once", None, bool)
    #: Heron's key for delivery guarantees. Its word for exactly-once is EFFECTIVELY_ONCE (C43).
    reliability_mode: str | None = _setting(
        "topology.reliability.mode",
        None,
        str,
        one_of=("ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE"),
    )
    #: Whether a component's attributes are its state, pickled whole at the end of each batch.
    state_pickle: bool = _setting("topology.state.pickle", False, bool, of_components=True)
    #: How far back state can be restored: at least to this many batches before the last one.
    state_retain_txids: int = _setting("stormspark.state.retain.txids", 10, int, least=0)
    #: How far back state can be restored: also to all batches of this many past hours.
    state_retain_hours: float = _setting("stormspark.state.retain.hours", 0, int, float, least=0)
    #: Who writes the state table: ``delta-rs`` in the workers, the ``driver``, or ``spark``; None: the checkpoint's location
    #: decides.
    state_table: str | None = _setting(
        "stormspark.state.table", None, str, one_of=("delta-rs", "driver", "spark")
    )
    #: ``grouping``: the keys of a component's state are the values of its fields groupings. So the keys can be distributed anew
    #: over more or fewer tasks. None: a component with state keeps its number of tasks.
    state_keys: str | None = _setting("stormspark.state.keys", None, str, of_components=True)
    #: How much of a task's state is kept in memory as objects, in bytes of the pickled values.
    state_cache_bytes: int = _setting(
        "stormspark.state.cache.bytes", 32 << 20, int, least=0, of_components=True
    )
    #: Whether to keep the inputs and emits of bolts for as long as states are kept, so that batches can be replayed.
    record_inputs: bool = _setting("stormspark.record.inputs", False, bool)
    #: If a source's row has failed in this many attempts at its batch, it becomes a dead letter. 0: the topology stops instead.
    poison_attempts: int = _setting("stormspark.exactly.once.attempts", 3, int, least=0)
    #: How many seconds are between two readings of the metrics of tasks for metrics consumers; 0: they are not read.
    metrics_bucket_secs: float = _setting(
        "topology.builtin.metrics.bucket.size.secs", 60, int, float, least=0
    )
    #: How long a batch should last under full load. Spouts emit for about this long.
    batch_target_ms: float = _setting("stormspark.batch.target.ms", 1000, int, float, least=1)
    #: A superstep ends after this time at the latest. Tuples that are not executed by then stay queued, in order. The default is
    #: five times `batch_target_ms`, but at most a quarter of the message timeout (if there is one), and at least
    #: `batch_target_ms`. If bolts drop or fail tuples above the marks, all supersteps of a round together take at most
    #: `batch_target_ms`.
    superstep_deadline: float | None = _setting("stormspark.superstep.deadline.ms", None, int, float, least=1)
    #: The high water mark of the backlog of a bolt, in bytes. The default is 100 MB.
    high_mark_bytes: int | None = _setting("stormspark.queue.high.mark.bytes", None, int, least=1)
    #: The low water mark. The default is half of the high mark.
    low_mark_bytes: int | None = _setting("stormspark.queue.low.mark.bytes", None, int, least=0)
    #: The high water mark of the backlog of a bolt, in tuples. The default is a million.
    high_mark_tuples: int | None = _setting("stormspark.queue.high.mark.tuples", None, int, least=1)
    #: The low water mark. The default is half of the high mark.
    low_mark_tuples: int | None = _setting("stormspark.queue.low.mark.tuples", None, int, least=0)
    #: Heron's key for the high mark, in megabytes (F9). It counts if no mark in bytes is set.
    heron_high_mark: float | None = _setting(
        "heron.streammgr.network.backpressure.highwatermark.mb", None, int, float, least=1e-6
    )
    #: Heron's key for the low mark, in megabytes (F9). It counts if no mark in bytes is set.
    heron_low_mark: float | None = _setting(
        "heron.streammgr.network.backpressure.lowwatermark.mb", None, int, float, least=0
    )
    #: Storm 1's key for the high mark, as a share of ``topology.executor.receive.buffer.size`` (F7). It counts if no mark in
    #: tuples is set.
    storm_high_mark: float | None = _setting(
        "backpressure.disruptor.high.watermark", None, int, float, least=1e-6
    )
    #: Storm 1's key for the low mark, as a share of ``topology.executor.receive.buffer.size`` (F7). It counts if no mark in
    #: tuples is set.
    storm_low_mark: float | None = _setting("backpressure.disruptor.low.watermark", None, int, float, least=0)
    #: JStorm's key for the high mark, as a share of ``topology.executor.receive.buffer.size`` (F13). It counts if no mark in
    #: tuples and no mark of Storm 1 is set.
    jstorm_high_mark: float | None = _setting(
        "topology.backpressure.water.mark.high", None, int, float, least=1e-6
    )
    #: JStorm's key for the low mark, as a share of ``topology.executor.receive.buffer.size`` (F13). It counts if no mark in
    #: tuples and no mark of Storm 1 is set.
    jstorm_low_mark: float | None = _setting(
        "topology.backpressure.water.mark.low", None, int, float, least=0
    )
    #: If the tasks of a spout together have more open trees than this, each task may emit one tuple per round until only half
    #: as many trees are open.
    open_trees_high_mark: int = _setting("stormspark.open.trees.high.mark", 5_000_000, int, least=1)
    #: How to react to a backlog above the marks: slow spouts down, drop tuples, or fail them (X51).
    backpressure: str | None = _setting(
        "stormspark.backpressure.strategy", None, str, one_of=("slow", "drop", "fail")
    )
    #: Heron's key for the strategy "drop" (F10).
    drop_tuples: bool = _setting("topology.droptuples.upon.backpressure", False, bool)
    #: The topology stops with the error if more than this many executions of one task raise in a row. A bolt's ``prepare`` that
    #: raises at a restart counts, too.
    max_restarts_in_row: int = _setting(
        "stormspark.task.max.restarts.in.row", 10, int, least=0, of_components=True
    )
    #: When an executor has a thread of its own: if its code may wait ("auto"), always, or never. All other executors share the
    #: worker's thread, on which tasks run one after another (A16).
    executor_threads: str = _setting(
        "stormspark.executor.threads",
        "auto",
        str,
        one_of=("auto", "always", "never"),
        of_components=True,
    )
    #: At most this much of the time between two batches counts towards message timeouts (see `stormspark.acker.running_clock`).
    clock_gap_ms: float = _setting("stormspark.clock.gap.ms", 1000, int, float, least=0)
    #: How a fields grouping hashes integers: as Java's Long, as its Integer, or as Storm 2.6 and later read them from JSON (D3).
    fields_ints: str = _setting("stormspark.fields.ints", "long", str, one_of=("long", "integer", "json"))
    #: Storm's default is False. In stormspark a plain shuffle follows load only if the configuration sets False (D6, W17).
    disable_load_aware: bool | None = _setting("topology.disable.loadaware.messaging", None, bool)
    #: A load, from 0 to 1. A shuffle that follows load sends tuples only to tasks in the sender's worker until the mean load of
    #: these tasks exceeds this bound.
    locality_higher_bound: float = _setting("topology.localityaware.higher.bound", 0.8, int, float, least=0)
    #: A load, from 0 to 1. A shuffle that follows load returns to the tasks of its worker once their mean load is below this
    #: bound.
    locality_lower_bound: float = _setting("topology.localityaware.lower.bound", 0.2, int, float, least=0)
    #: If this many tuples wait in a task's queue, the task's load is 1. Storm 1's and JStorm's marks are shares of this number.
    #: The setting does not bound any queue.
    receive_buffer_tuples: int = _setting("topology.executor.receive.buffer.size", 32768, int, least=1)
    #: Whether bolts flush what they hold once the input has ended: windows fire, and bolts that write in batches write. If not,
    #: a topology with ``trigger="available-now"`` leaves its windows open for the next run.
    flush_at_end: bool = _setting("stormspark.flush.at.end", True, bool)
    #: After how many milliseconds without a tuple a stream is idle, so that the watermark of a windowed bolt does not wait for
    #: it: one number for all streams, or a number for each ``component`` or ``component/stream``. None: it always waits (C30).
    window_idleness_ms: int | Mapping[str, int] | None = _setting(
        "stormspark.window.idleness.ms", None, int, dict, of_components=True
    )
    #: The longest pause between two batches while nothing happens; 0: no pause.
    idle_pause_ms: float = _setting("stormspark.idle.pause.ms", 5000, int, float, least=0)
    #: The time from the start of one batch to the start of the next; 0: one batch follows the other.
    trigger_interval_ms: float = _setting("stormspark.trigger.interval.ms", 0, int, float, least=0)
    #: How long the process of a worker may take until it connects to the driver.
    worker_start_timeout_secs: float = _setting(
        "stormspark.worker.start.timeout.secs", 60, int, float, least=1
    )
    #: The driver places workers once the requested Spark executors have registered, or after this many seconds.
    executors_wait_secs: float = _setting("stormspark.executors.wait.secs", 30, int, float, least=0)
    #: A worker exits if it hears nothing from its driver for this long. The driver gives up a worker that is silent for the same
    #: time.
    worker_lease_secs: float = _setting("stormspark.worker.lease.secs", 30, int, float, least=1)
    #: How long a connection between two hosts may be silent while one side waits for the other.
    network_timeout_secs: float = _setting("stormspark.network.timeout.secs", 15, int, float, least=1)
    #: Whether traffic between hosts is encrypted; None: only if Spark's own traffic is encrypted.
    network_crypto: bool | None = _setting("stormspark.network.crypto.enabled", None, bool)
    #: The port at which the driver listens for workers on other hosts; 0: any.
    nimbus_port: int = _setting("stormspark.nimbus.port", 0, int, least=0)
    #: The port at which a worker listens for requests; 0: any.
    worker_port: int = _setting("stormspark.worker.port", 0, int, least=0)
    #: How many further ports are tried if a port is taken; None: as many as Spark would try (``spark.port.maxRetries``).
    port_retries: int | None = _setting("stormspark.port.max.retries", None, int, least=0)
    #: The port on which the driver answers Storm's REST API to whoever knows the token (``STORMSPARK_UI_TOKEN``); 0: any; None:
    #: it answers on a Unix socket only.
    ui_port: int | None = _setting("stormspark.ui.port", None, int, least=0)
    #: The address of that port. What is not encrypted should not leave the host.
    ui_host: str = _setting("stormspark.ui.host", "127.0.0.1", str)
    #: A worker keeps its replies, because Spark may repeat requests. It keeps this many bytes of them in memory, and the rest on
    #: disk.
    replies_memory_bytes: int = _setting("stormspark.replies.memory.bytes", 64 * 1024 * 1024, int, least=0)
    #: How many partitions, and so Spark tasks, a superstep has at most; 0: as many as workers, up to 32 workers; beyond, up to
    #: eight workers share a partition, because Spark's driver schedules one task after another.
    superstep_partitions: int = _setting("stormspark.superstep.partitions", 0, int, least=0)
    #: A tuple to another worker fails if its pickled form has more bytes than this. A large tuple travels in a Spark row of its
    #: own. A row can't have 2 GiB, and the JVM needs about three times the size of the tuple.
    tuple_max_bytes: int = _setting("stormspark.tuple.max.bytes", 256 * 1024 * 1024, int, least=1024)
    #: The folder for dead letters, with one file per task; None: they go to the checkpoint, or to the topology's log folder.
    dead_letter_dir: str | None = _setting("stormspark.dead.letter.dir", None, str)
    #: Whether rows of sources that are open at the end of a batch survive the loss of their worker or of the driver.
    acker_durable: bool = _setting("stormspark.acker.durable", True, bool)
    #: The delay of the durable acker's watermark. The default is three message timeouts, because a tree ends within two
    #: (E10). If trees don't time out, the default is an hour.
    acker_delay: float | None = _setting("stormspark.acker.delay.secs", None, int, float, least=0.1)
    #: How often the acker query reads the journal.
    acker_interval_ms: float = _setting("stormspark.acker.interval.ms", 2000, int, float, least=0)
    #: One in this many trees is traced, which means that its story is written down; 0: none. Each replay of a failed message is
    #: traced in any case.
    story_sample: int = _setting("stormspark.story.sample", 1024, int, least=0)
    #: A worker keeps at most this many stories of sampled trees per second. Further stories are only counted.
    story_samples_per_sec: int = _setting("stormspark.story.samples.per.sec", 5, int, least=0)
    #: A worker keeps at most this many stories of failed trees per second. Further stories are only counted.
    story_failures_per_sec: int = _setting("stormspark.story.failures.per.sec", 100, int, least=0)
    #: The driver, or the local engine, logs a warning about a call of user code that has lasted this long.
    stuck_warning_secs: float = _setting("stormspark.stuck.warning.secs", 10, int, float, least=0.1)
    #: A worker is stuck if one call of user code has lasted this long and holds up the worker's other tasks. It is killed and
    #: started again. 0: never.
    stuck_timeout_secs: float = _setting("stormspark.stuck.timeout.secs", 300, int, float, least=0)
    #: How long a task may be in ``open`` or ``prepare``, and how long a worker may take to read its state; 0: without a limit.
    #: The driver logs warnings meanwhile.
    prepare_timeout_secs: float = _setting("stormspark.prepare.timeout.secs", 0, int, float, least=0)
    #: The longest pause between two attempts at one batch, and between two starts of a bolt whose ``prepare`` raises. The pauses
    #: grow from attempt to attempt.
    restart_max_delay_secs: float = _setting("stormspark.restart.max.delay.secs", 30, int, float, least=0)
    #: The working directory of a process that runs components; None: the one in which the process has started. For a project of
    #: streamparse it is ``src``. A program that embeds the local engine stays in its own.
    working_dir: str | None = _setting("stormspark.working.dir", None, str)
    #: The folder in which the children of multilang components start; None: the resources folder (I3).
    multilang_resources: str | None = _setting(
        "stormspark.multilang.resources", None, str, of_components=True
    )
    #: Whether a local checkpoint folder may belong to somebody else, or be writable by everybody. Beware: stormspark unpickles
    #: the folder's contents, so whoever writes there can run code.
    checkpoint_shared: bool = _setting("stormspark.checkpoint.shared", False, bool)
    #: What a driver does if another one uses its checkpoint: ``take-over`` makes the other driver end, and ``refuse`` does not
    #: start this one.
    checkpoint_in_use: str = _setting(
        "stormspark.checkpoint.in.use", "take-over", str, one_of=("take-over", "refuse")
    )
    #: The folder for logs, stories and ``topology.json``; None: a folder of the user's under the system's temporary folder.
    log_dir: str | None = _setting("stormspark.log.dir", None, str)
    #: The level of the loggers of components and of the worker.
    log_level: str = _setting(
        "stormspark.log.level",
        "INFO",
        str,
        one_of=("DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL"),
    )
    #: A log file that is larger is rotated.
    log_max_bytes: int = _setting("stormspark.log.max.bytes", 1_000_000, int, least=1)
    #: How many rotated files of each log are kept.
    log_backup_count: int = _setting("stormspark.log.backup.count", 5, int, least=0)
    #: A file with events that is larger, in megabytes, is rotated.
    event_log_rotation_mb: int = _setting("topology.eventlogger.rotation.size.mb", 100, int, least=1)
    #: How many rotated files with events are kept.
    event_log_backup_count: int = _setting("topology.eventlogger.max.retained.files", 5, int, least=1)
    #: If user code makes a batch fail (it raises, or kills its worker), the topology stops after this many attempts in a row.
    max_attempts: int = _setting("stormspark.max.attempts", 10, int, least=1)
    #: If a batch fails because storage, a broker or a Spark executor is unavailable, it is tried again for this many seconds.
    outage_timeout_secs: float = _setting("stormspark.outage.timeout.secs", 3600, int, float, least=0)

    @property
    def acker_executors(self) -> int:
        """The number of ackers in Storm's sense, by default one per worker (E12). If it is 0, acking is off; see `acking`.

        Any other number only shifts task ids (A18). If ``topology.workers`` is not set, the default is one acker, as in Storm. So
        task ids don't depend on the cores of a cluster.
        """
        return (self.workers or 1) if self.ackers is None else self.ackers

    @property
    def acker_delay_secs(self) -> float:
        """The delay of the durable acker's watermark."""
        if self.acker_delay is not None:
            return self.acker_delay
        return 3 * self.message_timeout_secs if self.enable_message_timeouts else 3600.0

    @property
    def backpressure_strategy(self) -> str:
        """``slow``, ``drop`` or ``fail``."""
        return self.backpressure or ("drop" if self.drop_tuples else "slow")

    @property
    def superstep_deadline_ms(self) -> float:
        """The longest time of a superstep, in milliseconds.

        The default is bounded by the message timeout, because waiting tuples can be kept from timing out only between two
        supersteps (W2).
        """
        if self.superstep_deadline is not None:
            return self.superstep_deadline
        quarter = 250 * self.message_timeout_secs if self.enable_message_timeouts else math.inf
        return max(min(5 * self.batch_target_ms, quarter), self.batch_target_ms)

    @property
    def byte_marks(self) -> tuple[int, int]:
        """The high and the low water mark of a bolt's backlog, in bytes. With the strategies ``drop`` and ``fail``, each task has
        these marks.

        Heron's marks are in megabytes (F9).

        >>> Settings().byte_marks
        (104857600, 52428800)
        >>> Settings.read({"heron.streammgr.network.backpressure.highwatermark.mb": 10}).byte_marks
        (10485760, 5242880)
        """
        prefix = "heron.streammgr.network.backpressure"
        heron = (f"{prefix}.highwatermark.mb", f"{prefix}.lowwatermark.mb")
        return _read_first_given(
            _Marks(*_BYTE_KEYS, self.high_mark_bytes, self.low_mark_bytes, _HIGH_BYTES),
            _Marks(*heron, self.heron_high_mark, self.heron_low_mark, 100, 1024 * 1024),
        )

    @property
    def tuple_marks(self) -> tuple[int, int]:
        """The high and the low water mark of the backlog of a bolt, in tuples.

        Storm 1 and JStorm give the marks as shares of an executor's queue (F7, F13).

        >>> Settings.read({"backpressure.disruptor.high.watermark": 0.9, "backpressure.disruptor.low.watermark": 0.4}).tuple_marks
        (29491, 13107)
        """
        storm = ("backpressure.disruptor.high.watermark", "backpressure.disruptor.low.watermark")
        jstorm = ("topology.backpressure.water.mark.high", "topology.backpressure.water.mark.low")
        queue = self.receive_buffer_tuples
        return _read_first_given(
            self._tuple_marks,
            _Marks(*storm, self.storm_high_mark, self.storm_low_mark, 0.9, queue),
            _Marks(*jstorm, self.jstorm_high_mark, self.jstorm_low_mark, 0.8, queue),
        )

    @property
    def tree_marks(self) -> tuple[int, int]:
        """The high and the low mark for the number of a spout's open trees, summed over its tasks."""
        return self.open_trees_high_mark, self.open_trees_high_mark // 2

    @property
    def worker_byte_marks(self) -> tuple[int, int]:
        """The high and the low water mark of the backlog of a worker, in bytes.

        If bolts drop or fail tuples, the configured marks hold for each task's queue. Then a worker has the default marks, for
        the tuples that wait to leave it.
        """
        return self.byte_marks if self.backpressure_strategy == "slow" else (_HIGH_BYTES, _HIGH_BYTES // 2)

    @property
    def worker_tuple_marks(self) -> tuple[int, int]:
        """The high and the low water mark of the backlog of a worker, in tuples.

        The marks of Storm 1 and JStorm have no effect on a worker, because they are for a task's queue. If bolts drop or fail
        tuples, a worker has the default marks, as in `worker_byte_marks`.
        """
        if self.backpressure_strategy == "slow":
            return self._tuple_marks.read()
        return _HIGH_TUPLES, _HIGH_TUPLES // 2

    @property
    def _tuple_marks(self) -> _Marks:
        return _Marks(*_TUPLE_KEYS, self.high_mark_tuples, self.low_mark_tuples, _HIGH_TUPLES)

    @property
    def acking(self) -> bool:
        """Whether trees are tracked. If ``topology.acker.executors`` is 0, they are not, and ``emit`` calls the spout's ``ack``
        at once (B8).
        """
        return self.acker_executors > 0

    @property
    def timeout_secs(self) -> float | None:
        """The message timeout, or None if ``topology.enable.message.timeouts`` is off (E10)."""
        return self.message_timeout_secs if self.enable_message_timeouts else None

    @classmethod
    def read(cls, conf: Mapping[str, Any]) -> Settings:
        """Read the settings from ``conf``.

        Raises `InvalidTopologyError`, which names the key, if the type or the value of a setting is wrong (J5).
        """
        given = {
            f.name: conf[f.metadata["key"]] for f in fields(cls) if conf.get(f.metadata["key"]) is not None
        }
        for setting in fields(cls):
            if problem := _problem(setting, given.get(setting.name)):
                raise InvalidTopologyError(problem)
        settings = cls(**given)
        settings.byte_marks, settings.tuple_marks  # noqa: B018 - they raise if the marks are in the wrong order
        return settings


def _problem(setting: Field[Any], value: Any) -> str | None:
    """Return a sentence that says what is wrong with the value of a setting, or None. A value of None means the default."""
    key, types, least = setting.metadata["key"], setting.metadata["types"], setting.metadata["least"]
    if value is None:
        return None
    # bool is an int to Python, but `topology.workers: true` is a mistake and 1 is no truth value.
    if not isinstance(value, types) or isinstance(value, bool) != (bool in types):
        if words := setting.metadata["one_of"]:
            return f"{key} must be {_one_of(words)}, got {value!r} of type {type(value).__name__}"
        wanted = " or ".join(kind.__name__ for kind in types)
        return f"{key} must be {wanted}, got {value!r} of type {type(value).__name__}"
    if least is not None and value < least:
        return f"{key} must be at least {least}, got {value!r}"
    if key.endswith(".port") and value > _LAST_PORT:
        return f"{key} must be at most {_LAST_PORT}, got {value!r}"
    words = setting.metadata["one_of"]
    if words and value not in words:
        return f"{key} must be {_one_of(words)}, got {value!r}"
    return None


def _one_of(words: tuple[str, ...]) -> str:
    *others, last = map(repr, words)
    return f"{', '.join(others)} or {last}"


def conf_problems(conf: Mapping[Any, Any]) -> list[str]:
    """Return what is wrong with a configuration, as one sentence per key (J5, A24).

    Keys must be strings, and values must be JSON. The value of a key that Storm or stormspark knows must have its type.

    >>> conf_problems({"topology.workers": 0, "topology.debug": "no", "my.own.key": [1, "x"]})
    ['topology.workers must be at least 1, got 0', "topology.debug must be bool, got 'no' of type str"]
    """
    problems = []
    for key, value in conf.items():
        if not isinstance(key, str):
            problems.append(f"a key must be a string, got {key!r} of type {type(key).__name__}")
            continue
        setting = _SETTINGS.get(key)
        problem = storm_key_problem(key, value) if setting is None else _problem(setting, value)
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            problem = f"{key!r} is not JSON-serialisable: {error}"
        if problem:
            problems.append(problem)
    return problems


_SETTINGS: Mapping[str, Field[Any]] = {f.metadata["key"]: f for f in fields(Settings)}

_OF_COMPONENTS = MAY_BE_SET_PER_COMPONENT | {
    key for key, setting in _SETTINGS.items() if setting.metadata["of_components"]
}


def is_of_components(key: str) -> bool:
    """Return whether a component's own configuration may set a key of Storm's or stormspark's (A21).

    >>> is_of_components("topology.debug"), is_of_components("topology.workers")
    (True, False)
    """
    return key in _OF_COMPONENTS


def for_component(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return a component's own configuration without the keys that only a topology may set (A21).

    >>> for_component({"topology.debug": True, "topology.message.timeout.secs": 5, "mine": 1})
    {'topology.debug': True, 'mine': 1}
    """
    return {key: value for key, value in conf.items() if key in _OF_COMPONENTS or key not in KNOWN_KEYS}


#: Every key that is spelt right: the keys that `Settings` reads, and the other keys of Storm and Heron.
KNOWN_KEYS: frozenset[str] = frozenset(_SETTINGS) | frozenset(STORM_KEYS)


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return one configuration from several. A later one overrides the earlier ones (A20).

    >>> merged({"topology.debug": False, "mine": 1}, {"topology.debug": True})
    {'topology.debug': True, 'mine': 1}
    """
    result: dict[str, Any] = {}
    for layer in layers:
        result.update(layer)
    return result


def parse_assignment(text: str) -> tuple[str, Any]:
    """Read ``key=value`` from a command line. The value is JSON if it parses as such, otherwise a string (A20).

    Spark's own settings are strings, and ``spark-submit`` passes them as they are written.

    >>> parse_assignment("topology.workers=2"), parse_assignment("stormspark.log.level=DEBUG")
    (('topology.workers', 2), ('stormspark.log.level', 'DEBUG'))
    >>> parse_assignment("spark.executor.memory=1.50g"), parse_assignment("spark.ui.enabled=true")
    (('spark.executor.memory', '1.50g'), ('spark.ui.enabled', 'true'))
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        msg = f"expected key=value, got {text!r}"
        raise InvalidTopologyError(msg)
    if key.strip().startswith("spark."):
        return key.strip(), value
    try:
        return key.strip(), json.loads(value)
    except json.JSONDecodeError:
        return key.strip(), value


def unknown_keys(conf: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return the keys that begin with ``topology.`` or ``stormspark.`` but do not exist, each with the nearest key that exists.

    >>> unknown_keys({"topology.wrokers": 2, "my.own.key": 1})
    [('topology.wrokers', 'topology.workers')]
    """
    strange = [k for k in conf if k.startswith(("topology.", "stormspark.")) and k not in KNOWN_KEYS]
    return [(key, next(iter(difflib.get_close_matches(key, KNOWN_KEYS, 1)), None)) for key in strange]
