"""The durable acker keeps source rows that are open at the end of a batch, so that they outlive workers and drivers.

A row whose tree ends within its batch never reaches the durable acker. If no row ever stays open, the topology has neither a
journal nor an acker query.

    workers' change sets -> the acker's journal, one file per batch, before Spark commits the batch
    the journal -> the acker query (`acker_stream`), in the JVM:
        withWatermark(created).groupBy(root, created).agg(bit_xor(value), first(source))

A record is open while its XOR is not zero (`stormspark.acker.records`). Each record belongs to a task. While the task's worker
lives, the worker's ledger decides how the row's tree ends. When a worker is lost, the driver reads that worker's open records
from the query's state. It gives their rows to the next incarnation of the worker, which owns the records from then on. When the
driver is lost, the next driver does this for all workers.

The invariant: **a row whose batch is committed is acked, or is a dead letter, or its record is open.** The invariant holds
because the driver writes records before Spark commits the records' batch. A record is closed by the journal's commit for the
batch in which the record's tree ended. The invariant would break if the watermark passed a record that is still open, because the
record would leave the query's state. The acker's time makes that impossible (`AckerTime`). If it happened all the same, the
driver would give the record's row to its task again. The task ignores the row if it has the row already.

When a batch is run again, Spark reads the rows of this batch again. So the records that the batch had opened are closed, and none
is replayed. The driver closes those of lost workers, and the other workers close their own (`stormspark.worker.sources`).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.streaming.query import StreamingQuery

from stormspark.acker.records import AckerTime, Record
from stormspark.checkpoint.acker_journal import AckerJournal
from stormspark.checkpoint.tidying import Tidying
from stormspark.errors import CheckpointError
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.acker_stream import COMMIT, acker_stream
from stormspark.spark.acker_upgrade import left_by_earlier_version
from stormspark.spark.acker_writer import AckerWriter
from stormspark.spark.checkpoint_folder import CheckpointFolder, planned_offsets
from stormspark.spark.java_errors import in_one_line, in_words
from stormspark.spark.left_queries import mark_queries
from stormspark.spark.versions import TELLS_STARTS, offset_in_progress
from stormspark.worker.host.messages import Adopt
from stormspark.worker.sources.acker_log import ACKER_SCHEMA
from stormspark.worker.step import WorkerReport

__all__ = ["OPEN_RECORDS_DDL", "DurableAcker", "open_records"]

_log = logging.getLogger(__name__)

#: The columns of `open_records`.
OPEN_RECORDS_DDL = (
    "root bigint, created timestamp, value bigint, component string, task int, batch bigint, "
    "message_id string, row binary"
)

#: The columns of a change in the journal.
_CHANGES_DDL = (
    "root bigint, created timestamp, value bigint, component string, task int, batch bigint, "
    "message_id string, row binary"
)
#: A message to a worker has at most this many rows.
_ADOPT_ROWS = 5000
_STOP_SECS = 20.0
_MICROSECOND = 1_000_000


def open_records(session: SparkSession, checkpoint: str) -> DataFrame:
    """Return the open records in the state of an acker query, as of its last batch.

    The columns are root, created, value, component, task, batch, message_id and row.
    """
    # A task that reads state reports to a coordinator, which exists only once somebody has asked for queries (SPARK-58973).
    _ = session.streams.active
    state = session.read.format("statestore").load(checkpoint)
    return state.where("value.bit_xor != 0 AND value.first IS NOT NULL").select(
        "key.root", "key.created", functions.col("value.bit_xor").alias("value"), "value.first.*"
    )


class DurableAcker:
    """The durable acker of one topology in one generation.

    `write` and `time_to_report` are called on the thread of the data query, the query that runs the topology. The supervisor
    (`stormspark.spark.layout`) calls the rest. ``hand_over`` gives a worker the rows of records that left the query's state
    while they were open. ``scratch`` is a folder of this driver's own. Raises `CheckpointError` if the files of an earlier driver
    can't be read or don't belong together.
    """

    def __init__(
        self,
        session: SparkSession,
        plan: PhysicalPlan,
        folder: CheckpointFolder,
        generation: int,
        hand_over: Callable[[int, list[Adopt]], None],
        scratch: Path,
    ) -> None:
        self._session = _session_for_acker(session)
        self._plan, self._folder, self._hand_over = plan, folder, hand_over
        self._journal = self._open_journal(scratch, generation)
        last = self._journal.last_time
        # The first commit takes its time from the wall clock, for people who read the journal. After that, only commits advance
        # the acker's time.
        self._time = AckerTime(
            self._journal.delay, round(time.time() * _MICROSECOND) if last is None else last
        )
        self._tidying = Tidying(f"the durable acker's journal {self._journal.files}")
        self._committed_at = time.monotonic()
        self._writer = AckerWriter(self._journal)
        self._query: StreamingQuery | None = None

    def _open_journal(self, scratch: Path, generation: int) -> AckerJournal:
        try:
            files = self._folder.acker_journal(scratch / "acker")
            delay = self._plan.settings.acker_delay_secs
            journal = AckerJournal(files, ACKER_SCHEMA, delay, generation)
            position = self._folder.acker_position()
            if not journal.last:
                left = left_by_earlier_version(self._session, self._folder, ACKER_SCHEMA)
                if left is not None:
                    journal.delay = left.delay or delay
                    journal.append(left.changes, left.at)
                    _log.info(
                        "open rows of an earlier version were copied to the journal %s, as %d changes",
                        files,
                        left.changes.num_rows,
                    )
            with contextlib.suppress(OSError):
                self._folder.forget_old_acker()
        except OSError as error:
            msg = f"the durable acker's journal in {self._folder} can't be used: {error}"
            raise CheckpointError(msg) from error
        if not journal.first - 1 <= position <= journal.last:
            msg = (
                f"the durable acker's journal {files} has the commits {journal.first} to {journal.last}, and its query has read "
                f"up to {position}: they do not fit together. One of them was deleted, or restored from a copy: "
                f"restore both as of the same moment, or begin with a new checkpoint folder"
            )
            raise CheckpointError(msg)
        return journal

    @property
    def time(self) -> AckerTime:
        """The acker's time at the next commit. The records that the next batch opens get this time.

        The returned object also has the watermark's delay, which the journal's first commit has fixed. The delay tells workers
        which records are old.
        """
        return replace(self._time, tried=self._writer.tried)

    @property
    def query(self) -> StreamingQuery | None:
        """The acker query; None before the first change is written or recovered."""
        return self._query

    def pending(self) -> DataFrame | None:
        """Return the open records as of the acker query's last batch; None if this query has had no batch."""
        if self._query is None or not self._folder.has_acker_state():
            return None
        return open_records(self._session, self._folder.acker_query)

    # -- the data query's thread -----------------------------------------------------------------------------

    def time_to_report(self) -> AckerTime:
        """Find out how the last commit ended, and return the acker's `time` for workers that are about to report changes."""
        self._writer.settle()
        return self.time

    def write(self, reports: Iterable[WorkerReport], attempt: int) -> None:
        """Write the changes in the reports of a batch that ``attempt`` ran, except those that are written already.

        If this raises OSError, the changes may be written or not, and the next call finds out. Raises `CheckpointError` if the
        journal or the acker query can't be used, and `FencedError` if a later driver has written.
        """
        if not self._writer.write(reports, attempt, self._time.at):
            return
        now = time.monotonic()
        self._time.committed(now - self._committed_at)
        self._committed_at = now
        self._look_after_query()

    def _look_after_query(self) -> None:
        try:
            if self._query is None or not self._query.isActive:
                if self._query is not None:
                    _log.warning(
                        "the acker query of %s ended and starts again: %s",
                        self._plan.topology,
                        in_one_line(str(self._query.exception())),
                    )
                self._start()
            assert self._query is not None
            progress = self._query.lastProgress
        except (PySparkException, Py4JError) as error:
            msg = f"the acker query of {self._plan.topology} can't run: {in_words(error)}"
            raise CheckpointError(msg) from error
        # While a query has no offset yet, its progress has the string "null" in place of the offset.
        read = offset_in_progress((progress and progress["sources"][0]["startOffset"]) or "null")
        if read is not None:
            # The query's last batch starts where the previous batch ended. So everything before this start is committed.
            with self._tidying.attempt():
                self._journal.forget(read[COMMIT])

    # -- the supervisor --------------------------------------------------------------------------------------

    def recover(self, workers: Collection[int], first_batch: int) -> dict[int, list[Adopt]]:
        """Return the messages with the rows that earlier incarnations of these workers left open, by worker.

        ``first_batch`` is the batch that runs next. If a worker adopts the messages in the returned order, its oldest rows come
        first. Raises `CheckpointError` if the acker query can't be used.
        """
        if not self._journal.last:
            return {}
        try:
            if self._query is None or not self._query.isActive:
                self._start()
            assert self._query is not None
            self._query.processAllAvailable()
            found = open_records(self._session, self._folder.acker_query).toArrow()
        except (PySparkException, Py4JError) as error:
            msg = f"the durable acker of {self._plan.topology} could not be read: {in_words(error)}"
            raise CheckpointError(msg) from error
        return self._sorted_out(found, set(workers), first_batch)

    def stop(self) -> None:
        """Stop the query between two of its batches. If its batch does not end soon, stop it anyway."""
        if self._query is None:
            return
        until = time.monotonic() + _STOP_SECS
        while self._query.isActive and self._query.status["isTriggerActive"] and time.monotonic() < until:
            time.sleep(0.02)
        self._query.stop()

    def _sorted_out(
        self, found: pa.Table, workers: set[int], first_batch: int | None
    ) -> dict[int, list[Adopt]]:
        """Return messages with the rows of these records, by worker. Leave out records whose worker is not in ``workers``.

        If ``first_batch`` is None, the records have left the query's state, and the messages have the rows without their records.
        Otherwise the records of ``first_batch`` and of later batches are closed.
        """
        adopted: dict[tuple[int, int], list[tuple[int, tuple[int, int, int] | None, bytes]]] = {}
        strange: dict[str, int] = {}
        columns = [found[name] for name in ("root", "value", "component", "task", "batch", "row")]
        created = found["created"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        rows = zip(created, *(column.to_pylist() for column in columns), strict=True)
        superseded: set[Record] = set()
        for at, root, value, component, task, batch, row in rows:
            placed = self._task_for(component, task)
            if placed is None:
                strange[component] = strange.get(component, 0) + 1
                continue
            if placed.worker not in workers:
                continue
            record = Record(root, at, value)
            if first_batch is not None and batch >= first_batch:
                superseded.add(record)
                continue
            known = tuple(record) if first_batch is not None else None
            adopted.setdefault((placed.worker, placed.id), []).append((batch, known, row))  # type: ignore[arg-type]
        for component, count in strange.items():
            _log.warning(
                "%d open rows are of spout %r, which the topology no longer has, so they stay open: add the spout again, or "
                "begin with a new checkpoint folder",
                count,
                component,
            )
        self._writer.close(superseded)
        result: dict[int, list[Adopt]] = {}
        for (worker, task), left in adopted.items():
            left.sort(key=lambda one: one[0])
            for begin in range(0, len(left), _ADOPT_ROWS):
                some = [(record, row) for _, record, row in left[begin : begin + _ADOPT_ROWS]]
                result.setdefault(worker, []).append(Adopt(task, some))
        # A worker puts each message in front of its other rows, so the oldest rows come in the last message.
        return {worker: messages[::-1] for worker, messages in result.items()}

    def _task_for(self, component: str, task: int) -> Any:
        """Return the task of the present plan to which a record belongs. None if the plan no longer has the record's spout."""
        plan = self._plan.components.get(component)
        if plan is None or not plan.source:
            return None
        return self._plan.tasks[task if task in plan.tasks else plan.tasks[task % len(plan.tasks)]]

    def _start(self) -> None:
        delay = f"{self._journal.delay:g} seconds"
        source = functions.struct("component", "task", "batch", "message_id", "row")
        self._query = (
            acker_stream(self._session, self._journal.files.folder, _CHANGES_DDL, self._planned())
            .withWatermark("created", delay)
            .groupBy("root", "created")
            .agg(
                functions.bit_xor("value").alias("value"),
                functions.first(
                    functions.when(functions.col("row").isNotNull(), source), ignorenulls=True
                ).alias("source"),
            )
            .writeStream.queryName(f"{self._plan.topology}: acker")
            .outputMode("append")
            .foreachBatch(self._left_the_state)
            .option("checkpointLocation", self._folder.acker_query)
            .trigger(processingTime=f"{self._plan.settings.acker_interval_ms:g} milliseconds")
            .start()
        )

    def _planned(self) -> dict[str, int] | None:
        """Return the offset of the last batch that the acker query has planned, if Spark does not tell it to the source.

        Raises `CheckpointError` if Spark's log of it can't be read.
        """
        if TELLS_STARTS:
            return None
        found = planned_offsets(self._session, self._folder.acker_query)
        return found[0].positions() if found and found[0] else None

    def _left_the_state(self, groups: DataFrame, number: int) -> None:
        """Deal with the records that the watermark has passed. All of them should be closed (see the module docstring)."""
        found = groups.where("value != 0 AND source IS NOT NULL").select(
            "root", "created", "value", "source.*"
        )
        left = found.toArrow()
        if left.num_rows:
            _log.warning(
                "%d open rows were older than the acker's watermark: their tasks emit them again",
                left.num_rows,
            )
            for worker, messages in self._sorted_out(left, set(range(self._plan.workers)), None).items():
                self._hand_over(worker, messages)


def _session_for_acker(session: SparkSession) -> SparkSession:
    """Make a separate session for the acker query, with its own settings."""
    own = session.newSession()
    settings: dict[str, str | int | bool] = {
        "spark.sql.adaptive.enabled": False,
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.noDataMicroBatches.enabled": False,
        "spark.sql.streaming.metricsEnabled": False,
        # There may be a million open records. RocksDB keeps them off the JVM's heap, and writes only the changed records after a
        # batch.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": True,
        # Counting rows would take one more look-up per change.
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": False,
    }
    for key, value in settings.items():
        own.conf.set(key, value)
    mark_queries(own)
    return own
