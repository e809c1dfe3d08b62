"""Spark's engine without Spark: drivers, workers and what can become of them, one call after another, as a schedule wants it.

`Engine` does what `stormspark.spark.layout` and `stormspark.spark.query_run` do, `Host` what
`stormspark.worker.host.process` does; the workers, the desks, the transactions and the commits are the real ones.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Protocol
from unittest.mock import patch

from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.driver.batch_driver import BatchDriver
from stormspark.driver.failed_rows import FailedRows
from stormspark.driver.transaction import Transaction
from stormspark.errors import CheckpointError
from stormspark.metrics import TaskCounters
from stormspark.plan.physical import PhysicalPlan
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.core import Worker
from stormspark.worker.host.desk import Desk, RefusedError
from stormspark.worker.host.messages import Request
from stormspark.worker.round_orders import EarlierAttempts, RoundOrders
from stormspark.worker.sources.letters import DeadLetters
from stormspark.worker.sources.rows import Row
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import WorkerReport, fatal_error
from tests.schedules.components import OutboxSink
from tests.schedules.memory_table import HandedTable, MemoryTable, changes_in_memory
from tests.schedules.shapes import Feed, Pieces, payload_of
from tests.schedules.world import Moment, ViolationError, World, world

__all__ = ["Engine", "Host", "LostError", "in_small_pieces"]

#: So many looks at the clock in a superstep may be the last one before its end.
_LOOKS = (*range(1, 13), 14, 16, 18, 21, 25, 30, 37, 45, 60)
#: The leaps: over the spouts' turn, and over the superstep's end.
_LEAPS = (0.6, 6.0)
#: After so many attempts a run is left in peace, and after so many more, or so many rounds of one, it has no end.
_EVENTFUL_ATTEMPTS, _MOST_ATTEMPTS, _MOST_ROUNDS = 14, 60, 150
_CLOSING_BATCHES = 30
#: What a round takes at least: timers are due some time.
_ROUND_SECS = 0.1


class LostError(BaseException):
    """The driver is gone (None), a worker, or only the round (-1). No `Exception`: nobody who is killed catches anything."""

    def __init__(self, who: int | None) -> None:
        super().__init__(who)
        self.who = who


class _NotWrittenError(Exception):
    """The state table could not be written to."""


class _StopError(Exception):
    """The topology is stopped, and started again."""


class Host:
    """A worker process: a desk and a worker, one life long."""

    def __init__(
        self,
        plan: PhysicalPlan,
        index: int,
        attempt: int,
        incarnation: int,
        access: StateAccess | None,
        generation: int,
    ) -> None:
        self.index, self.incarnation, self.attempt = index, incarnation, attempt
        self.dead = False
        self.desk = Desk(
            generation, incarnation, attempt, Path("/nonexistent"), 1 << 30, plan.last_superstep + 1
        )
        self.worker = Worker(
            plan,
            index,
            incarnation=incarnation,
            clock=world().clock,
            epoch=0.0,
            random=Random(incarnation * 31 + index),
            state=access,
        )
        self.worker.open()
        if any(edge.stream == "noise" for edge in plan.edges):
            self.worker.services.guard()
        self._inactive = 0  # requests for which its spouts stay deactivated

    def deactivate(self, requests: int) -> None:
        """From now on spouts are not asked, for so many requests; 0: they are again."""
        if bool(requests) != bool(self._inactive):
            self.worker.set_active(not requests)
        self._inactive = requests

    def ask(self, request: Request, frames: list[Frame]) -> list[Frame]:
        """What a forwarder does, and what the worker's threads do. Raises `RefusedError`."""
        errand, new = self.desk.take(request, len(frames), ())
        if new:
            assert self.desk.next() is errand
            if self._inactive:
                self.deactivate(self._inactive - 1)
            if request.attempt > self.attempt:
                self.attempt = request.attempt
                self.worker.begin_attempt(request.reason, request.batch)
            self.desk.finish(errand, self.worker.run(request.step, frames))  # type: ignore[arg-type] # they are kept as they are
        _, kept = self.desk.reply(errand)
        return list(kept)  # type: ignore[arg-type]


class Batches(Protocol):
    """What is fed: so many batches, whatever is in them."""

    batches: int


class Engine:
    """A topology whose batches are transactions, from its first driver to its last."""

    def __init__(self, plan: PhysicalPlan, feed: Batches) -> None:
        self.plan, self.feed, self.world = plan, feed, world()
        self.schedule = self.world.schedule
        self.offsets, self.generation, self.incarnations = -1, -1, 0
        self.attempts = self.rounds = 0
        self.running: int | None = None
        self._payloads: dict[range, bytes] = {}
        self.hosts: list[Host] = []
        self.begin()

    # -- drivers and attempts ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """A driver begins: all workers are new."""
        self.generation += 1
        self.attempt, self.failures, self.failed_batch = 0, 0, -1
        self.reason = ""
        self.commits = BatchCommits(
            self.plan, "memory", self.generation, table=MemoryTable(self.world.storage)
        )
        self.commits.open(self.offsets)
        self.failed_rows = FailedRows(self.plan.settings.poison_attempts)
        self.driver = BatchDriver(self.plan, self, self.failed_rows)
        self.earlier = self._earlier_attempts()
        self._note(self.offsets + 1)
        self.hosts = [self._new_host(index) for index in range(self.plan.workers)]

    def run(self) -> None:
        """All batches, and then some in which nothing happens, until all is delivered. Raises `ViolationError`."""
        for number in range(self.feed.batches):
            self.batch(number)
        self.schedule.calm, quiet = True, 0
        for host in self.hosts:
            host.deactivate(0)
        for number in range(self.feed.batches, self.feed.batches + _CLOSING_BATCHES):
            before = self._work_done()
            self.batch(number)
            self.world.clock.advance(10.0)
            # A worker is idle if nothing happened in its last round; a batch may have had others before.
            idle = self._work_done() == before and all(host.worker.was_idle for host in self.hosts)
            quiet = quiet + 1 if idle and not self._waiting_parcels() else 0
            if quiet == 2:  # in the second one everybody has heard of the last commit
                return
        raise ViolationError("no end", f"something happens after {_CLOSING_BATCHES} batches without rows")

    def _work_done(self) -> int:
        """A number that changes whenever a task does something."""
        tasks = [task for host in self.hosts for task in host.worker.tasks.values()]
        return sum(TaskCounters.work_done(task.read_counters()) for task in tasks)

    def _waiting_parcels(self) -> int:
        sinks = [task.instance for host in self.hosts for task in host.worker.tasks.values()]
        return sum(sink.box.waiting for sink in sinks if isinstance(sink, OutboxSink))

    def batch(self, number: int) -> None:
        """A batch, however often it takes."""
        while self.offsets < number:
            self.attempts += 1
            if self.attempts > _EVENTFUL_ATTEMPTS:
                self.schedule.calm = True
            if self.attempts > _MOST_ATTEMPTS + self.feed.batches + _CLOSING_BATCHES:
                raise ViolationError("no end", f"batch {number} is attempted again and again: {self.reason}")
            self._note(number)
            try:
                self.reached("driver.batch_begins")
                if number <= self.commits.last or self._transact(number):
                    self.reached("driver.batch_ends")
                    self.offsets = number
                    self._stops("after the batch")
            except LostError as lost:
                self._lost(lost, number)
            except _StopError:
                for host in self.hosts:
                    self.running = host.index
                    if not host.dead:
                        try:
                            host.worker.hear_of_last_commit(self.commits.last)
                            host.worker.close()
                        except LostError:
                            continue  # killed while it closed
                self.begin()
            self.world.check()
            self.world.clock.advance(1.0)

    def _lost(self, lost: LostError, number: int) -> None:
        while True:
            try:
                if lost.who is None:
                    self.begin()
                else:
                    self._next_attempt(
                        "the round has failed" if lost.who < 0 else f"worker {lost.who} is gone",
                        number,
                        lost.who,
                    )
                return
            except LostError as again:
                lost = again

    def _next_attempt(self, reason: str, number: int, lost: int = -1) -> None:
        """As `SparkTopology._run_attempts`, from a failure to the next query."""
        self.failures = self.failures + 1 if number == self.failed_batch else 1
        self.failed_batch = number
        self.reason = reason
        if self.failures >= self.plan.settings.max_attempts:
            self.begin()  # it stopped with an error, and somebody has started it again
            return
        self.attempt += 1
        if self.transaction is not None:
            self.failed_rows.add(number, self.transaction.failed_rows)
        self.commits.reopen()
        self.earlier = self._earlier_attempts()
        for host in self.hosts:
            if host.index == lost or host.dead:
                self.hosts[host.index] = self._new_host(host.index)

    def _earlier_attempts(self) -> EarlierAttempts:
        """As `SparkTopology._earlier_attempts`."""
        batch = self.commits.last + 1
        announced_batch, announced = self.commits.announced()
        return EarlierAttempts(
            batch, self.failed_rows.given_up(batch), announced if announced_batch == batch else {}
        )

    def _new_host(self, index: int) -> Host:
        self.incarnations += 1
        self.running = index
        last = self.commits.last
        access = StateAccess("memory", self.generation, last, by_driver=True, handed="memory")
        return Host(self.plan, index, self.attempt, self.incarnations, access, self.generation)

    def _note(self, number: int) -> None:
        self.world.now = Moment(self.generation, self.attempt, number)
        self.schedule.place = f"g{self.generation} b{number} a{self.attempt}"

    # -- a batch -----------------------------------------------------------------------------------------------

    @property
    def transaction(self) -> Transaction | None:
        """The attempt that runs, or ran last, of the driver that lives."""
        return self.driver.transaction

    def _transact(self, number: int) -> bool:
        """As `QueryRun._transact`: true if it is committed."""
        try:
            reports = self.driver.attempt(number, self.earlier.of(number))
        except _NotWrittenError as error:
            self._next_attempt(str(error), number)
            return False
        if fatal_error(reports) is not None:
            self.begin()  # the topology has stopped with that error
            return False
        assert self.transaction is not None
        if self.transaction.aborts is not None:
            self._next_attempt(self.transaction.aborts, number)
            return False
        self.commits.tidy()
        self._may_lose("after the commit")
        return True

    def plain_orders(self) -> RoundOrders:
        """Limits are drawn for each round, in `run_round`."""
        return RoundOrders(committed=self.commits.last)

    def announce(self, batch: int, announcement: Mapping[str, bytes]) -> None:
        with self._on_the_table(batch):
            self.commits.announce(batch, announcement)

    def round_ended(self, transaction: Transaction) -> None:
        if not transaction.prepared:
            self._stops("between two rounds")
        if transaction.rounds > _MOST_ROUNDS:
            raise ViolationError("no end", f"{transaction.left} wait after {transaction.rounds} rounds")

    def commit(self, batch: int, files: Any) -> None:
        self._may_lose("before the commit")
        with self._on_the_table(batch):
            self.commits.commit(batch, files)

    @contextmanager
    def _on_the_table(self, number: int) -> Iterator[None]:
        writing = self.world.now  # what comes of an error may be another attempt, or another driver
        try:
            yield
        except CheckpointError as error:
            raise _NotWrittenError(str(error)) from error
        finally:  # whoever is lost then may have committed the batch
            if self.commits_of(number):
                self._check_committed(number, writing)

    def commits_of(self, number: int) -> bool:
        """Whether the table has that batch."""
        return self.world.storage.last >= number

    def _check_committed(self, number: int, attempt: Moment) -> None:
        """That attempt has just been committed."""
        self.world.commits[number] = attempt
        if failed := self.world.failed[attempt] - self.world.kept:
            raise ViolationError(
                "a batch with a failed tree is committed", f"rows {sorted(failed)} failed in {attempt}"
            )

    def run_round(self, orders: RoundOrders) -> list[WorkerReport]:
        plan, schedule = self.plan, self.schedule
        self.rounds += 1
        self.world.clock.advance(_ROUND_SECS)
        limits = {
            task: schedule.choose("limit", f"r{orders.round} of task {task}", 4) or 1 << 30
            for component in plan.components.values()
            if component.kind == "spout"
            for task in component.tasks
        }
        limited = {task: limit for task, limit in limits.items() if limit < 1 << 30} or None
        return self._supersteps(self.world.now.batch, replace(orders, limits=limited))

    def _supersteps(self, number: int, orders: RoundOrders) -> list[WorkerReport]:
        """A round: what Spark does with forwarders and shuffles."""
        plan, schedule = self.plan, self.schedule

        def request(host: Host, superstep: int, partition: int) -> Request:
            return Request(
                self.generation,
                host.incarnation,
                number,
                self.attempt,
                orders.round * (plan.last_superstep + 1) + superstep,
                partition,
                self.reason,
                orders,
            )

        here = schedule.place
        inbound: list[list[Frame]] = [[] for _ in self.hosts]
        asked: list[tuple[Host, Request, list[Frame], list[Frame]]] = []
        for superstep in range(plan.last_superstep + 1):
            hosts = list(self.hosts)
            first = (
                schedule.choose("order", f"r{orders.round} s{superstep} who is first", len(hosts))
                if len(hosts) > 1
                else 0
            )
            replies: list[list[Frame]] = []
            for host in hosts[first:] + hosts[:first]:
                schedule.place = f"{here} r{orders.round} s{superstep} w{host.index}"
                pieces = [(request(host, superstep, host.index), inbound[host.index])]
                if superstep == 0 and orders.round == 0:
                    pieces += [
                        (request(host, superstep, plan.workers + frame.sequence), [frame])
                        for frame in self._rows_for(host, number)
                    ]
                if len(pieces) > 1:
                    first_piece = schedule.choose("order", "which request is first", len(pieces))
                    pieces = pieces[first_piece:] + pieces[:first_piece]
                for asks, frames in pieces:
                    self._may_lose("before a request")
                    reply = self._ask(host, asks, frames)
                    replies.append(reply)
                    asked.append((host, asks, frames, reply))
                    again = schedule.choose("repeat", "which request again", min(len(asked), 4) + 1)
                    if again:
                        self._ask_again(*asked[-again])
            inbound = [
                sorted(
                    (frame for reply in replies for frame in reply if frame.target == host.index),
                    key=lambda frame: (frame.sender, frame.sequence),
                )
                for host in self.hosts
            ]
        schedule.place = here
        self._may_lose(f"at the end of r{orders.round}")
        return [
            pickle.loads(frame.payload)
            for frames in inbound
            for frame in frames
            if frame.kind == FrameKind.REPORT
        ]

    def _rows_for(self, host: Host, number: int) -> Iterator[Frame]:
        """Frames with the rows of the partitions whose tasks are there."""
        if not isinstance(self.feed, Feed):
            return
        tasks = self.plan.components["rows"].tasks
        for partition, rows in enumerate(self.feed.of(number)):
            task = tasks[partition % len(tasks)]
            if rows and self.plan.tasks[task].worker == host.index:
                payload = self._payloads.get(rows) or self._payloads.setdefault(rows, payload_of(rows))
                yield Frame(host.index, FrameKind.ROWS, task, partition, len(rows), payload)

    def _ask(self, host: Host, request: Request, frames: list[Frame]) -> list[Frame]:
        self.running = host.index
        if host.dead:
            raise LostError(host.index)
        cut = self.schedule.choose("cut", "cut", 2 * len(_LOOKS) + 1)
        if cut:
            self.world.clock.leap(_LOOKS[(cut - 1) // 2], _LEAPS[cut % 2])
        if requests := self.schedule.choose("deactivate", "spouts are deactivated for", 12):
            host.deactivate(requests)
        self.schedule.hot = max(0, self.schedule.hot - 1)
        try:
            reply = host.ask(request, frames)
        finally:
            if cut and not self.world.clock.leaps:
                self.schedule.hot = len(self.hosts) + 1
            self.world.clock.leap(0, 0.0)
        host.worker.validate()
        self.world.check()
        return reply

    def _ask_again(self, host: Host, request: Request, frames: list[Frame], reply: list[Frame]) -> None:
        """Spark computes a stage again: it gets what it got the first time, and nothing happens."""
        before = self.world.now
        try:
            again = host.ask(request, frames)
        except RefusedError as error:
            raise ViolationError("a repeated request", f"{request} is refused: {error}") from None
        self.world.check()
        if again != reply or before != self.world.now:
            raise ViolationError("a repeated request", f"{request} has another reply than the first time")

    # -- what happens ------------------------------------------------------------------------------------------

    def _may_lose(self, when: str) -> None:
        """Somebody is gone now, or will be found to be."""
        options = 3 + len(self.hosts)
        lost = self.schedule.choose("lose", when, options, scale=0.3)
        if lost == 1:
            raise LostError(-1)
        if lost == 2:
            raise LostError(None)
        if lost > 2:
            self.hosts[lost - 3].dead = True

    def _stops(self, when: str) -> None:
        if self.schedule.choose("end", f"stopped {when}", 2):
            raise _StopError

    def reached(self, barrier: str) -> None:
        """In place of `stormspark.checkpoint.barriers.reached`."""
        if barrier.startswith("worker"):
            happens = self.schedule.choose("barrier", f"{barrier} of w{self.running}", 3)
            if happens:
                raise LostError(self.running if happens == 1 else None)
            return
        writes = barrier in (
            "driver.before_commit",
            "driver.committed",
            "driver.before_announcement",
            "driver.announced",
        )
        happens = self.schedule.choose("barrier", barrier, 3 + writes)
        if happens == 1:
            raise LostError(None)
        if happens == 2:
            self.hosts[0].dead = True
        if happens == 3:
            raise CheckpointError("the table can't be reached")


def _gives_up(letters: DeadLetters, row: Row, reason: str) -> None:
    here: World = world()
    here.gave_up[here.now].add(row.values[0])


@contextmanager
def in_small_pieces(pieces: Pieces, reached: Any) -> Iterator[None]:
    """Deadlines can come between any two tuples, and barriers are the schedule's."""
    HandedTable.storage = world().storage
    values: Mapping[str, Any] = {
        "stormspark.worker.departures._FRAME_TUPLES": pieces.frame,
        "stormspark.worker.turns._BURST": pieces.burst,
        "stormspark.worker.spout_task._EMITS_PER_TURN": pieces.burst,
        "stormspark.worker.bolts.chunks._CHUNK_FIRST": pieces.chunk,
        "stormspark.worker.transactions.reached": reached,
        "stormspark.worker.state.batch_state.reached": reached,
        "stormspark.checkpoint.batch_commits.reached": reached,
        "stormspark.worker.state.batch_state.HandedState": HandedTable,
        "stormspark.worker.state.batch_state.changed_rows": changes_in_memory,
        "stormspark.worker.sources.letters.DeadLetters.add": _gives_up,
    }
    logging.disable(logging.CRITICAL)
    try:
        with ExitStack() as stack:
            for name, value in values.items():
                stack.enter_context(patch(name, value))
            yield
    finally:
        logging.disable(logging.NOTSET)
