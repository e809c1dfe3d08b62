"""The tasks of vectorised components.

A vectorised bolt's task has two queues. One is the inbox that any bolt has, for tuples; they become record batches when they
are executed. The other is for record batches. All that one sender sends goes into one of them, in order. The task joins small
record batches of one stream, because each call has a fixed cost, whatever its number of rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stormspark.acker import Outcome, Roots, Verdict
from stormspark.api import (
    TICK_SOURCE,
    ArrowBolt,
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    TopologyContext,
    Tuple,
    TupleSource,
)
from stormspark.metrics import TaskCounters
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.vectorised.collectors import ArrowCollector, ArrowSpoutCollector
from stormspark.worker.vectorised.outlets import BatchOutlet
from stormspark.worker.vectorised.roots import UNTRACKED, BatchRoots
from stormspark.worker.vectorised.rows import batch_of, rows_of, unfit

__all__ = ["ArrowBoltTask", "ArrowSpoutTask"]

#: Record batches with fewer rows than the first number are joined, up to the second. At most the third number of tuples
#: become one record batch.
_SMALL = 16384
_MOST_ROWS = 65536
_MOST_TUPLES = 8192
#: A spout is called once per turn if one call emits this many rows, else as often as that takes.
_ROWS_A_TURN = 4096


class _Batch(NamedTuple):
    rows: pa.RecordBatch
    source: TupleSource
    roots: BatchRoots


class ArrowBoltTask(BoltTask):
    """One task of an `ArrowBolt`."""

    bolt: ArrowBolt  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: The outlets by stream, which the worker makes.
        self.batch_outlets: dict[str, BatchOutlet] = {}
        self._batches: deque[_Batch | None] = deque()  # None is a tick
        self._rows = 0
        #: The bytes of the waiting rows.
        self.batch_bytes = 0
        self._collects = ArrowCollector(self)
        self._schemas: dict[tuple[str, str], pa.Schema] = {}

    def subscribe(self, component: str, stream: str, schema: pa.Schema) -> None:
        """Note the schema of a stream, by which its tuples become rows."""
        self._schemas[component, stream] = schema

    def receive(self, batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> None:
        """Queue rows for this task."""
        self._batches.append(_Batch(batch, source, roots))
        self._rows += batch.num_rows
        self.batch_bytes += batch.nbytes

    # -- life ------------------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Any:
        """The worker's ledger."""
        return self._ledger

    @property
    def guarded(self) -> bool:
        """Whether user code has threads of its own."""
        return self._host.guarded

    def _begin(self, instance: Any, context: TopologyContext) -> None:
        self._collector = None
        if self._settings.tick_freq_secs:
            self.set_timer(self._settings.tick_freq_secs, self._tick)
        if self.state is not None:
            self.state.before(instance)
        instance.prepare(self._conf, context)
        self.bolt = instance
        if self.state is not None:
            self.state.after(instance, context=context, collector=None, conf=self._conf)

    def connect(self) -> None:
        """Do nothing: the collector looks up outlets when it needs them."""

    def guard(self) -> None:
        """Do nothing: the collector checks the thread at each emit."""

    def _tick(self) -> None:
        self._batches.append(None)
        self._ticks += 1

    def forget_tuples(self) -> None:
        """See `BoltTask.forget_tuples`."""
        super().forget_tuples()
        self._batches.clear()
        self._rows = self.batch_bytes = 0

    def read_counters(self) -> TaskCounters:
        """See `Task.read_counters`."""
        return _counted(super().read_counters(), self.batch_outlets)

    # -- what waits --------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many tuples wait: rows, ticks, and tuples in the inbox."""
        return super().waiting + self._rows + self._ticks

    @property
    def rows_waiting(self) -> int:
        """How many rows of record batches wait."""
        return self._rows

    def waiting_deliveries(self) -> Iterator[Delivery]:
        """Iterate over the waiting tuples and rows; the deliveries of rows have no values."""
        return chain(super().waiting_deliveries(), self._row_deliveries())

    def _row_deliveries(self) -> Iterator[Delivery]:
        for one in self._batches:
            if one is not None:
                each = one.roots.each()
                for _ in range(one.rows.num_rows):
                    yield (), one.source, next(each)

    def not_reached(self) -> Iterator[Delivery]:
        """See `BoltTask.not_reached`: tuples in the inbox come first, then one delivery per record batch, for all its trees."""
        waiting, done = self._seen
        self._seen = (self.waiting, self._done)
        left = max(0, waiting - (self._done - done))
        for delivery in islice(super().waiting_deliveries(), left):
            left -= 1
            yield delivery
        for one in self._batches:
            if left <= 0:
                return
            if one is not None:
                left -= one.rows.num_rows
                yield (), one.source, tuple(one.roots.branches(one.rows.num_rows))

    def size_of_one(self) -> int:
        """See `BoltTask.size_of_one`."""
        if not self._rows:
            return super().size_of_one()
        return max(1, self.batch_bytes // self._rows)

    def take_newest(self, most: int) -> list[Delivery]:
        """See `BoltTask.take_newest`: the newest rows go first, then tuples of the inbox; ticks stay."""
        newest: list[Delivery] = []
        kept: list[None] = []
        batches = self._batches
        while batches and len(newest) < most:
            one = batches.pop()
            if one is None:
                kept.append(one)
                continue
            count = one.rows.num_rows
            left = max(0, count - (most - len(newest)))
            shed = one.roots.take(np.arange(left, count)).each()
            values = rows_of(one.rows.slice(left))
            newest = [(row, one.source, next(shed)) for row in values] + newest
            self._rows -= count
            self.batch_bytes -= one.rows.nbytes
            if left:
                self.receive(one.rows.slice(0, left), one.source, one.roots.take(np.arange(left)))
        batches.extend(kept)
        if len(newest) < most:
            newest = super().take_newest(most - len(newest)) + newest
        return newest

    # -- execution ---------------------------------------------------------------------------------------------

    def run(self) -> int:
        """Execute one record batch, or one tick; return how many tuples that were."""
        if self.inbox or self._next < len(self._taken):
            return self._run_tuples()
        if not self._batches:
            return 0
        one = self._batches.popleft()
        if one is None:
            self._ticks -= 1
            self._run_tick()
            return 1
        self._rows -= one.rows.num_rows
        self.batch_bytes -= one.rows.nbytes
        together = self._together(one) if one.rows.num_rows < _SMALL and self._batches else one
        return self._run_batch(together.rows, together.source, together.roots)

    def execute_one(self, delivery: Delivery) -> None:
        """Execute one tuple now, as a record batch of one row."""
        values, source, roots = delivery
        if source is TICK_SOURCE:
            self._run_tick()
        else:
            schema = self._schemas[source.component, source.stream]
            self._run_batch(batch_of([values], schema), source, BatchRoots([roots]))

    def _together(self, first: _Batch) -> _Batch:
        """Join ``first`` with the record batches after it that are small, too, and of the same stream."""
        parts, rows = [first], first.rows.num_rows
        place = first.source.component, first.source.stream
        batches = self._batches
        while batches:
            one = batches[0]
            if one is None or (one.source.component, one.source.stream) != place:
                break
            if one.rows.num_rows >= _SMALL or rows + one.rows.num_rows > _MOST_ROWS:
                break
            batches.popleft()
            parts.append(one)
            rows += one.rows.num_rows
            self._rows -= one.rows.num_rows
            self.batch_bytes -= one.rows.nbytes
        if len(parts) == 1:
            return first
        return _Batch(
            pa.concat_batches([part.rows for part in parts]),
            first.source,
            BatchRoots.joined([(part.roots, part.rows.num_rows) for part in parts]),
        )

    def _run_tuples(self) -> int:
        """Execute a run of tuples of one stream, as a record batch."""
        if self._next >= len(self._taken):
            self._taken, self._next = self.inbox[:], 0
            self.inbox.clear()  # not a new list, because senders hold this one
        taken, first = self._taken, self._next
        source = taken[first][1]
        place = source.component, source.stream
        most = min(len(taken), first + _MOST_TUPLES)
        end = first + 1
        while end < most and (
            taken[end][1] is source or (taken[end][1].component, taken[end][1].stream) == place
        ):
            end += 1
        run = taken[first:end]
        if end == len(taken):
            self._taken, self._next = [], 0
        else:
            self._next = end
        schema = self._schemas[place]
        try:
            batch = batch_of([delivery[0] for delivery in run], schema)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            run = self._fitting(run, schema)
            batch = batch_of([delivery[0] for delivery in run], schema)
        if run:
            self._run_batch(batch, source, BatchRoots.of(delivery[2] for delivery in run))
        return end - first

    def _fitting(self, run: list[Delivery], schema: pa.Schema) -> list[Delivery]:
        """Fail the tuples whose values are not of the declared types; return the others."""
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
            self.counters.failed += 1
            self._done += 1
            self.fail_delivery(roots, Verdict(Outcome.FAILED, reason[:1000], self.component.id, self.id))
            if self.hooks:
                tup = Tuple(values, source, roots)
                tup.state = 1
                self.tell_failed(tup)
        return kept

    def _run_tick(self) -> None:
        tick = Tuple((self._settings.tick_freq_secs,), TICK_SOURCE)
        self._collects.begin(TICK_SOURCE.component, TICK_SOURCE.stream, UNTRACKED, 0)
        try:
            self.bolt.on_tick_tuple(tick, self._collects)
        except Exception as error:
            self._raised("on_tick_tuple", error, None)
        else:
            self._raised_in_row = 0

    def _run_batch(self, batch: pa.RecordBatch, source: TupleSource, roots: BatchRoots) -> int:
        """Execute a record batch. Its rows are acked or failed when this returns."""
        collector, counters, count = self._collects, self.counters, int(batch.num_rows)
        began = self._clock()
        collector.begin(source.component, source.stream, roots, count)
        raised: Exception | None = None
        trees: Roots = ()
        try:
            self.bolt.execute_batch(batch, collector)
        except Exception as error:
            raised = error
        took = self._clock() - began
        counters.latency.add(took / count, count)
        counters.executed += count
        self._done += count
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
        counters.failed += failures
        counters.acked += count - failures
        roots.close_edges(self._ledger, count)
        if self.hooks:
            self._tell(batch, source, failed, took / count * 1000, raised is None)
        # The collector lets go of the record batch, so that it keeps neither its memory nor its trees.
        collector.begin("", "", UNTRACKED, 0)
        if raised is None:
            self._raised_in_row = 0
        else:
            settled = Tuple((), source, trees)
            settled.state = 1
            self._raised("execute_batch", raised, settled)
        return count

    def _tell(
        self, batch: pa.RecordBatch, source: TupleSource, failed: Any, took_ms: float, executed: bool
    ) -> None:
        """Call the hooks for each row, as for a tuple (J21)."""
        for row, values in enumerate(rows_of(batch)):
            tup = Tuple(values, source)
            tup.state = 1
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
        #: The outlets by stream, which the worker makes.
        self.batch_outlets: dict[str, BatchOutlet] = {}
        self._rows_a_call = float(_ROWS_A_TURN)

    @property
    def guarded(self) -> bool:
        """Whether user code has threads of its own."""
        return self._host.guarded

    def guard(self) -> None:
        """Do nothing: the collector checks the thread at each emit."""

    def ask(self, calls: int, deadline: float) -> bool:
        """See `SpoutTask.ask`. The number of calls is chosen so that they emit about one turn's rows."""
        calls = max(1, min(calls, int(_ROWS_A_TURN / max(self._rows_a_call, 1.0))))
        before = self.allowance.emitted
        went_on = super().ask(calls, deadline)
        self._rows_a_call = (self.allowance.emitted - before) / calls
        return went_on

    def read_counters(self) -> TaskCounters:
        """See `Task.read_counters`."""
        return _counted(super().read_counters(), self.batch_outlets)


def _counted(counters: TaskCounters, outlets: dict[str, BatchOutlet]) -> TaskCounters:
    counters.emitted += sum(outlet.emitted for outlet in outlets.values())
    counters.transferred += sum(outlet.copies for outlet in outlets.values())
    return counters
