"""Runs of topologies whose batches are none: no row is lost, and acks come when all is done, whatever dies (W1, W24).

The durable acker's query is a model: what it has is the XOR of what drivers wrote into the journal. It is read as
`DurableAcker.recover` reads it, by the driver that has lost workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from stormspark import Bolt, Fields, OutputFieldsDeclarer, TopologyBuilder, Tuple
from stormspark.acker.records import AckerTime, Record
from stormspark.api import SourceSpout
from stormspark.checkpoint.acker_journal import AckerJournal
from stormspark.errors import FailedException
from stormspark.plan import plan_topology
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.acker_writer import AckerWriter
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.sources.acker_log import ACKER_SCHEMA
from stormspark.worker.step import WorkerReport, fatal_error
from tests.schedules.components import copies_of
from tests.schedules.engine import Engine, Host, LostError, in_small_pieces
from tests.schedules.schedule import Schedule
from tests.schedules.shapes import Feed, Shape, draw_pieces
from tests.schedules.world import ViolationError, world

__all__ = ["run"]

_DELAY = 90.0
_PLAIN = ACKER_SCHEMA.set(1, pa.field("created", pa.int64()))
_MOST_CLOSING = 200


class Rows(SourceSpout):
    """Each row is a number."""

    def __init__(self) -> None:
        super().__init__(["row"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def ack(self, message_id: Any) -> None:
        here = world()
        row = here.row_of[message_id]
        here.acked[row] += 1
        for copy in range(copies_of(row)):
            if not here.effects["sink"][row, copy]:
                here.broken(
                    "an ack before all is done", f"row {row} is acked, its copy {copy} was never seen"
                )


class _Troubled(Bolt):
    name = ""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.held: list[Tuple] = []

    def execute(self, tup: Tuple) -> None:
        trouble = world().schedule.choose("fail", f"{self.name} executes {tup['row']}", 7)
        if trouble in (0, 3, 4, 5):
            self.work(tup)
        if trouble == 0:
            self.collector.ack(tup)
        elif trouble in (1, 3):
            self.collector.fail(tup)
        elif trouble == 2:
            raise FailedException("no luck")
        elif trouble == 4:
            raise ValueError("no luck")
        elif trouble == 5:  # it is acked with the next one that it holds
            for held in self.held:
                self.collector.ack(held)
            self.held = [tup]

    def work(self, tup: Tuple) -> None:
        raise NotImplementedError


class Work(_Troubled):
    name = "work"

    def work(self, tup: Tuple) -> None:
        row = tup["row"]
        for copy in range(copies_of(row)):
            self.collector.emit((row, copy), anchors=[tup])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("row", "copy"))


class Sink(_Troubled):
    name = "sink"

    def work(self, tup: Tuple) -> None:
        world().effects["sink"][tup["row"], tup["copy"]] += 1

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


@lru_cache(maxsize=256)
def _plan(workers: int, source_tasks: int, works: int, sinks: int, max_pending: int) -> PhysicalPlan:
    builder = TopologyBuilder()
    builder.set_spout("rows", Rows(), source_tasks)
    builder.set_bolt("work", Work(), works).fields_grouping("rows", Fields("row"))
    builder.set_bolt("sink", Sink(), sinks).fields_grouping("work", Fields("row", "copy"))
    conf: dict[str, Any] = {"topology.workers": workers, "topology.message.timeout.secs": 30}
    if max_pending:
        conf["topology.max.spout.pending"] = max_pending
    return plan_topology(builder.create_topology("schedules"), conf)


class Acker:
    """The durable acker: its journal, which outlives drivers, what its query makes of it, and the writer of the driver that
    lives.
    """

    folder = Path("nowhere")

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}
        self.xors: dict[tuple[int, int], int] = {}
        self.rows: dict[tuple[int, int], tuple[int, int, bytes]] = {}
        self.generation = 0
        self.begin()

    def begin(self) -> None:
        """Another driver."""
        self.generation += 1
        self.begins = True
        journal = AckerJournal(self, ACKER_SCHEMA, _DELAY, self.generation)
        self.begins = False
        self.writer, self._time = AckerWriter(journal), AckerTime(_DELAY, journal.last_time or 0)

    def time_to_report(self) -> AckerTime:
        """As `DurableAcker.time_to_report`."""
        self.writer.settle()
        return replace(self._time, tried=self.writer.tried)

    def write(self, reports: Sequence[WorkerReport], attempt: int) -> None:
        """As `DurableAcker.write`; may raise OSError, before the journal has it or after."""
        if self.writer.write(reports, attempt, self._time.at):
            self._time.committed(1.0)

    # -- its files, as the writer sees them

    def numbers(self) -> list[int]:
        return sorted(self.files)

    def read(self, number: int) -> bytes:
        if not self.begins and world().schedule.choose("store", "the journal is read", 2):
            raise OSError("the journal is away")
        if number not in self.files:
            raise FileNotFoundError(number)
        return self.files[number]

    def add(self, number: int, data: bytes) -> None:
        refuses = world().schedule.choose("store", "the acker's table", 3)
        if refuses == 1:
            raise OSError("the journal is away")
        if number in self.files:
            raise FileExistsError(number)
        self.files[number] = data
        self._hear(pa.ipc.open_stream(data).read_all())
        if refuses == 2:
            raise OSError("the journal does not answer")

    def delete(self, numbers: Iterable[int]) -> None:
        raise NotImplementedError

    def _hear(self, changes: pa.Table) -> None:
        for root, at, value, component, task, batch, _, row in zip(
            *(column.to_pylist() for column in changes.cast(_PLAIN).columns), strict=True
        ):
            self.xors[root, at] = self.xors.get((root, at), 0) ^ value
            if self.xors[root, at] not in (0, value):
                world().broken("a record's XOR", f"{root} at {at}")
            if component:
                self.rows[root, at] = task, batch, row

    def recover(self, tasks: set[int], first: int) -> dict[int, list[Any]]:
        """As `DurableAcker.recover`, by task."""
        adopted: dict[int, list[Any]] = {}
        for (root, at), value in self.xors.items():
            if not value:
                continue
            if (root, at) not in self.rows:
                raise ViolationError("a record without a row", f"{root} at {at}")
            task, batch, row = self.rows[root, at]
            if task not in tasks:
                continue
            record = Record(root, at, value)
            if batch >= first:
                self.writer.close([record])
            else:
                adopted.setdefault(task, []).append((tuple(record), row))
        return adopted

    def open(self) -> int:
        """Records that are open."""
        return sum(map(bool, self.xors.values()))


class AtLeastOnce(Engine):
    """The same engine, of a topology whose rounds are `QueryRun._work_off`'s."""

    def __init__(self, plan: PhysicalPlan, feed: Feed) -> None:
        self.acker = Acker()
        super().__init__(plan, feed)

    def begin(self) -> None:
        self.generation += 1
        self.attempt, self.failures, self.failed_batch, self.reason = 0, 0, -1, ""
        self.acker.begin()
        self._note(self.offsets + 1)
        self.hosts = [self._new_host(index) for index in range(self.plan.workers)]
        self._recover(set(range(self.plan.workers)), self.offsets + 1)

    def _next_attempt(self, reason: str, number: int, lost: int = -1) -> None:
        self.reason, self.attempt = reason, self.attempt + 1
        gone = {host.index for host in self.hosts if host.dead or host.index == lost}
        for index in gone:
            self.hosts[index] = self._new_host(index)
        self._recover(gone, number)

    def _recover(self, workers: set[int], first: int) -> None:
        tasks = {task.id: task.worker for task in self.plan.tasks.values() if task.worker in workers}
        for task, rows in self.acker.recover(set(tasks), first).items():
            self.hosts[tasks[task]].worker.adopt(task, rows)

    def _new_host(self, index: int) -> Host:
        self.incarnations += 1
        self.running = index
        return Host(self.plan, index, self.attempt, self.incarnations, None, self.generation)

    def batch(self, number: int) -> None:
        while self.offsets < number:
            self.attempts += 1
            if self.attempts > 14:
                self.schedule.calm = True
            if self.attempts > 150 + _MOST_CLOSING:
                raise ViolationError("no end", f"batch {number} is attempted again and again: {self.reason}")
            self._note(number)
            try:
                self.reached("driver.batch_begins")
                if self._work_off(number):
                    self.reached("driver.batch_ends")
                    self.offsets = number
            except LostError as lost:
                self._lost(lost, number)
            self.world.check()
            self.world.clock.advance(1.0)

    def _work_off(self, number: int) -> bool:
        rounds = 1 + self.schedule.choose("limit", "rounds", 3)
        for one in range(rounds):
            reports = self._plain_round(number, one, tell=one == rounds - 1)
            if fatal_error(reports) is not None:
                self.begin()
                return False
        self._may_lose("before the acker's commit")
        try:
            self.acker.write(reports, self.attempt)
        except OSError as error:
            self._next_attempt(str(error), number)
            return False
        self._may_lose("after the acker's commit")
        return True

    def _plain_round(self, number: int, round_number: int, *, tell: bool) -> list[WorkerReport]:
        limits = {
            task: limit
            for task in self.plan.components["rows"].tasks
            if (limit := self.schedule.choose("limit", f"r{round_number} of task {task}", 4))
        }
        time = self.acker.time_to_report() if tell else None
        orders = RoundOrders(round=round_number, limits=limits or None, acker_time=time)
        return self._supersteps(number, orders)

    def run(self) -> None:
        for number in range(self.feed.batches):
            self.batch(number)
        self.schedule.calm = True
        for number in range(self.feed.batches, self.feed.batches + _MOST_CLOSING):
            self.batch(number)
            if self.is_done():
                return
            self.world.clock.advance(10.0)

    def is_done(self) -> bool:
        """Nothing is open anywhere."""
        return not self.acker.open() and not any(
            host.worker.backlog or host.worker.ledger.statistics().open for host in self.hosts
        )


def run(schedule: Schedule) -> None:
    """One run; raises `ViolationError`."""

    def draw(what: str, options: int) -> int:
        return schedule.choose("shape", what, options)

    plan = _plan(
        (2, 3, 1)[draw("workers", 3)],
        1 + draw("source tasks", 3),
        1 + draw("work tasks", 3),
        1 + draw("sink tasks", 2),
        (0, 0, 0, 2)[draw("max pending", 4)],
    )
    shape = Shape(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    pieces, feed = draw_pieces(schedule), Feed(schedule, shape)
    here = world()
    for batch, parts in enumerate(feed.rows):
        for partition, rows in enumerate(parts):
            here.row_of |= {(batch, partition, place): row for place, row in enumerate(rows)}
    engines: list[AtLeastOnce] = []
    with in_small_pieces(pieces, lambda barrier: engines[0].reached(barrier) if engines else None):
        engine = AtLeastOnce(plan, feed)
        engines.append(engine)
        engine.run()
    for row in feed.everything:
        for copy in range(copies_of(row)):
            if not here.effects["sink"][row, copy]:
                raise ViolationError("a row is lost", f"row {row}, copy {copy}")
        if not here.acked[row]:
            raise ViolationError("a row is never acked", f"row {row}")
    if not engine.is_done():
        raise ViolationError(
            "something is left", f"{engine.acker.open()} records, {[h.worker.backlog for h in engine.hosts]}"
        )
