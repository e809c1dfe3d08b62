"""The tasks of vectorised components."""

from __future__ import annotations

from typing import Any

import numpy as np

from stormspark.acker import Outcome, Roots, Verdict
from stormspark.api import (
    TICK_SOURCE,
    ArrowBolt,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    Tuple,
    TupleSource,
)
from stormspark.api.tuple_state import SETTLED
from stormspark.extras import pyarrow as pa
from stormspark.metrics import TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.errors_of_code import ERRORS_OF_CODE
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.vectorised.collectors import ArrowCollector, ArrowSpoutCollector
from stormspark.worker.vectorised.outlets import BatchOutlet
from stormspark.worker.vectorised.queue import RowQueue
from stormspark.worker.vectorised.roots import UNTRACKED, BatchRoots
from stormspark.worker.vectorised.rows import batch_of, rows_of, unfit
from stormspark.worker.vectorised.runner import ArrowRunner

__all__ = ["ArrowBoltTask", "ArrowSpoutTask"]

#: About how many rows a spout should emit per turn. The number of its calls is chosen for this, but is at least one.
_ROWS_A_TURN = 4096


class ArrowBoltTask(BoltTask):
    """One task of an `ArrowBolt`."""

    bolt: ArrowBolt  # type: ignore[assignment]
    queue: RowQueue

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: The outlets by stream, which the worker's wiring adds.
        self.batch_outlets: dict[str, BatchOutlet] = {}
        self._collects = ArrowCollector(self)
        self._schemas: dict[tuple[str, str], pa.Schema] = {}

    def subscribe(self, component: str, stream: str, schema: pa.Schema) -> None:
        """Remember the schema of a stream. Tuples of the stream become rows with this schema."""
        self._schemas[component, stream] = schema

    def receive(self, batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> None:
        """Queue rows for this task."""
        self.queue.add(batch, source, roots)

    def _new_queue(self) -> RowQueue:
        return RowQueue()

    def _new_runner(self, instance: Any) -> ArrowRunner:
        return ArrowRunner(self, instance)

    def read_counters(self) -> TaskCounters:
        """See `Task.read_counters`."""
        return _counted(super().read_counters(), self.batch_outlets)

    @property
    def rows_waiting(self) -> int:
        """How many rows of record batches wait."""
        return self.queue.rows

    @property
    def batch_bytes(self) -> int:
        """How many bytes the waiting rows have."""
        return self.queue.bytes

    # -- execution ---------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Execute tuples of one stream as a record batch, or execute one record batch or one tick. Return how many tuples or
        rows were taken.
        """
        tuples = self.queue.take_run()
        if tuples:
            return self._run_tuples(tuples)
        if not self.queue.has_batches:
            return 0
        batch = self.queue.take_batch()
        if batch is None:
            self._run_tick()
            return 1
        return self._run_batch(batch.rows, batch.source, batch.roots)

    def execute_one(self, delivery: Delivery) -> None:
        """Execute one tuple now, as a record batch of one row."""
        values, source, roots = delivery
        if source is TICK_SOURCE:
            self._run_tick()
        else:
            schema = self._schemas[source.component, source.stream]
            self._run_batch(batch_of([values], schema), source, BatchRoots([roots]))

    def _run_tuples(self, run: list[Delivery]) -> int:
        """Execute tuples of one stream, as a record batch."""
        count, source = len(run), run[0][1]
        schema = self._schemas[source.component, source.stream]
        batch = _batch_of(run, schema)
        if batch is None:
            fitting = run = self._fitting(run, schema)
            # Values may fit alone and not together: strings of more than 2 GB, or a dict and a list of pairs.
            while len(run) > 1 and (batch := _batch_of(run, schema)) is None:
                run = run[: len(run) // 2]
            if len(run) == 1:
                batch = batch_of([run[0][0]], schema)
            self.queue.put_back(fitting[len(run) :])
            count -= len(fitting) - len(run)
        if run:
            self._run_batch(batch, source, BatchRoots.of(delivery[2] for delivery in run))
        return count

    def _fitting(self, run: list[Delivery], schema: pa.Schema) -> list[Delivery]:
        """Fail the tuples whose values do not have the declared types. Return the other tuples."""
        kept = []
        for delivery in run:
            values, source, roots = delivery
            problem = unfit(values, schema)
            if problem is None:
                kept.append(delivery)
                continue
            reason = (
                f"a tuple on stream {source.stream!r} of {source.component!r} (task {source.task}) can't be a row for the "
                f"vectorised bolt {self.component.id!r}: {problem}"
            )
            self.report_error(reason)
            self.count_failed(source)
            self.queue.executed += 1
            self.fail_delivery(roots, Verdict(Outcome.FAILED, reason[:1000], self.component.id, self.id))
            if self.hooks:
                tup = Tuple(values, source, roots)
                tup.state = SETTLED
                self.call_fail_hooks(tup)
        return kept

    def _run_tick(self) -> None:
        tick = Tuple((self._settings.tick_freq_secs,), TICK_SOURCE)
        self._collects.begin(TICK_SOURCE.component, TICK_SOURCE.stream, UNTRACKED, 0)
        try:
            self.bolt.on_tick_tuple(tick, self._collects)
        except ERRORS_OF_CODE as error:
            self._fail_and_restart("on_tick_tuple", error, None)
        else:
            self._raised_in_row = 0

    def _run_batch(self, batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> int:
        """Execute a record batch, and ack or fail all of its rows. Return the number of rows."""
        collector, counters, count = self._collects, self.counters, int(batch.num_rows)
        began = self._clock()
        collector.begin(source.component, source.stream, roots, count)
        raised: BaseException | None = None
        trees: Roots = ()
        try:
            self.bolt.execute_batch(batch, collector)
        except ERRORS_OF_CODE as error:
            raised = error
        took = self._clock() - began
        counters.latency.add(took / count, count)
        counters.executed += count
        self.queue.executed += count
        failed = collector.failed
        if raised is not None:
            left = np.arange(count) if failed is None else np.flatnonzero(~failed)
            reason = f"{type(raised).__name__}: {raised}"[:1000]
            verdict = Verdict(Outcome.FAILED, reason, self.component.id, self.id)
            of_left = roots.take(left)
            of_left.fail(self._ledger, len(left), verdict)
            trees = None if of_left.any_in_no_tree(len(left)) else tuple(of_left.branches(len(left)))
            failed = np.ones(count, np.bool_)
        failures = 0 if failed is None else int(failed.sum())
        self.count_failed(source, failures)
        counters.acked += count - failures
        if self.by_input is not None:
            self.by_input.add_of(source, count, took / count, acked=True)
            self.by_input.acked[source] -= failures
        roots.close_edges(self._ledger, count)
        if self.hooks:
            self._call_hooks(batch, source, failed, took / count * 1000, raised is None)
        # Let the collector forget the record batch, because otherwise it would keep the rows and their trees alive.
        collector.begin("", "", UNTRACKED, 0)
        if raised is None:
            self._raised_in_row = 0
        else:
            settled = Tuple((), source, trees)
            settled.state = SETTLED
            self._fail_and_restart("execute_batch", raised, settled)
        return count

    def _call_hooks(
        self, batch: pa.RecordBatch, source: TupleSource, failed: Any, took_ms: float, executed: bool
    ) -> None:
        """Call the hooks for each row, as for a tuple (J21)."""
        for row, values in enumerate(rows_of(batch)):
            tup = Tuple(values, source)
            tup.state = SETTLED
            for hook in self.hooks:
                if executed:
                    hook.bolt_execute(BoltExecuteInfo(tup, self.id, took_ms))
                if failed is not None and failed[row]:
                    hook.bolt_fail(BoltFailInfo(tup, self.id))
                else:
                    hook.bolt_ack(BoltAckInfo(tup, self.id))


class ArrowSpoutTask(SpoutTask):
    """One task of an `ArrowSpout`."""

    _collector_type = ArrowSpoutCollector

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: The outlets by stream, which the worker's wiring adds.
        self.batch_outlets: dict[str, BatchOutlet] = {}
        self._rows_a_call = float(_ROWS_A_TURN)

    def guard(self) -> None:
        """Do nothing, because the collector checks the thread at each emit."""

    def ask(self, calls: int, deadline: float) -> bool:
        """See `SpoutTask.ask`. This method chooses the number of calls so that they emit about `_ROWS_A_TURN` rows."""
        calls = max(1, min(calls, int(_ROWS_A_TURN / max(self._rows_a_call, 1.0))))
        before = self.allowance.emitted
        went_on = super().ask(calls, deadline)
        self._rows_a_call = (self.allowance.emitted - before) / calls
        return went_on

    def read_counters(self) -> TaskCounters:
        """See `Task.read_counters`."""
        return _counted(super().read_counters(), self.batch_outlets)


def _batch_of(run: list[Delivery], schema: pa.Schema) -> pa.RecordBatch | None:
    """Return a record batch of these tuples; None if there can be none."""
    try:
        return batch_of([delivery[0] for delivery in run], schema)
    except Exception:  # of many kinds, because pyarrow calls methods of the values
        return None


def _counted(counters: TaskCounters, outlets: dict[str, BatchOutlet]) -> TaskCounters:
    counters.emitted += sum(outlet.emitted for outlet in outlets.values())
    counters.transferred += sum(outlet.copies for outlet in outlets.values())
    if len(outlets) > 1:
        counters.outputs = {
            stream: StreamCounts(outlet.emitted, outlet.copies) for stream, outlet in outlets.items()
        }
    return counters
