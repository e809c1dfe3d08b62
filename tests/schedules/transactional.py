"""Runs of transactional topologies: committers act on a transaction before it is committed, and may do so again, on the same."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from typing import Any

from stormspark import FailedException, Fields, OutputFieldsDeclarer, TopologyContext, Tuple
from stormspark.api.state import StatefulComponent
from stormspark.plan import plan_topology
from stormspark.plan.physical import PhysicalPlan
from stormspark.transactional import (
    BatchBolt,
    BatchOutputCollector,
    Committer,
    Coordinator,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from tests.repeatable_spouts import RangeEmitter, Ranges
from tests.schedules.engine import Engine, in_small_pieces
from tests.schedules.schedule import Schedule
from tests.schedules.shapes import draw_pieces
from tests.schedules.world import ViolationError, world

__all__ = ["run"]

_SIZES = (1, 2, 5, 11)


class DrawnRanges(Ranges):
    """Numbers; only the metadata tells how many a transaction has, and nobody could draw that again."""

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> DrawnRangeCoordinator:
        return DrawnRangeCoordinator()

    def get_emitter(self, conf: Mapping[str, Any], context: TopologyContext) -> UnevenRangeEmitter:
        return UnevenRangeEmitter(context)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "row"))


class DrawnRangeCoordinator(Coordinator[tuple[int, int]]):
    def is_ready(self) -> bool:
        return not world().schedule.calm and not world().schedule.choose("limit", "not ready", 2)

    def initialize_transaction(self, txid: int, previous: tuple[int, int] | None) -> tuple[int, int]:
        begin = previous[1] if previous else 0
        return begin, begin + _SIZES[world().nonce() % len(_SIZES)]


class UnevenRangeEmitter(RangeEmitter):
    def index_for(self, number: int) -> int:
        return min(number % 5, self.tasks - 1)  # the last one has most of it


class _Troubled(BatchBolt):
    name = ""

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        self.collector, self.attempt, self.task = collector, attempt, context.this_task_index
        self.rows: dict[int, int] = {}
        self.finished = False

    def execute(self, tup: Tuple) -> None:
        if self.finished:
            world().broken(
                "a tuple after the end of its batch", f"{self.name}[{self.task}] gets {tup.values}"
            )
        if world().schedule.choose("fail", f"{self.name}[{self.task}] executes {tup.values[1:]}", 2):
            world().fails(-1)
            raise FailedException("no luck")
        self.take(tup)

    def take(self, tup: Tuple) -> None:
        raise NotImplementedError

    def finish_batch(self) -> None:
        self.finished = True
        trouble = world().schedule.choose("fail", f"{self.name}[{self.task}] finishes", 3)
        if trouble == 1:
            self.fail()
        self.finish()
        if trouble == 2:
            self.fail()

    def fail(self) -> None:
        world().fails(-1)
        raise FailedException("no luck at the end")

    def finish(self) -> None:
        raise NotImplementedError

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "rows"))


class Draw(StatefulComponent, _Troubled):
    """Draws a number for each row, in its state."""

    name = "draw"

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def take(self, tup: Tuple) -> None:
        row = tup["row"]
        if row in self.rows:
            world().broken("a row twice", f"{row} in {self.attempt}")
        self.rows[row] = world().nonce()

    def finish(self) -> None:
        for row, nonce in self.rows.items():
            if row in self.state:
                world().broken("a row twice", f"{row} is in the state")
            self.state[row] = nonce
        self.collector.emit((self.attempt, self.rows))

    def pre_save(self, checkpoint_id: int) -> None:
        if world().schedule.choose("store", f"draw[{self.task}] saves {checkpoint_id}", 2):
            world().fails(-1)
            raise OSError("the disk is full")


class Store(Committer, _Troubled):
    """Writes down what a transaction has, under its number."""

    name = "store"

    def take(self, tup: Tuple) -> None:
        self.rows.update(tup["rows"])

    def finish(self) -> None:
        txid = self.attempt.txid
        if txid - 1 <= world().committed:
            world().broken("a transaction that is committed comes again", f"{self.attempt}")
        before = world().acts.get(txid)
        if before is not None and sorted(before[0]) != sorted(self.rows):
            world().broken(
                "a committer acts on another transaction",
                f"{self.attempt} has {sorted(self.rows)}, and had {sorted(before[0])}",
            )
        world().acts[txid] = [dict(self.rows)]
        self.collector.emit((self.attempt, self.rows))


class Seen(_Troubled):
    """After the committer."""

    name = "seen"

    def take(self, tup: Tuple) -> None:
        self.rows.update(tup["rows"])

    def finish(self) -> None:
        acted = world().acts.get(self.attempt.txid)
        if acted is None or acted[0] != self.rows:
            world().broken(
                "what comes after a committer", f"{self.attempt} has {self.rows}, the committer {acted}"
            )


@lru_cache(maxsize=256)
def _plan(workers: int, emitters: int, draws: int, seen: int) -> PhysicalPlan:
    builder = TransactionalTopologyBuilder("schedules", "ranges", DrawnRanges(), emitters)
    builder.set_bolt("draw", Draw(), draws).fields_grouping("ranges", Fields("row"))
    builder.set_bolt("store", Store()).global_grouping("draw")
    if seen:
        builder.set_bolt("seen", Seen()).global_grouping("store")
    conf = {"topology.workers": workers, "topology.message.timeout.secs": 100_000}
    return plan_topology(builder.create_topology("schedules"), conf)


class _NoRows:
    """So many batches, of which Spark knows nothing."""

    def __init__(self, batches: int) -> None:
        self.batches = batches


def run(schedule: Schedule) -> None:
    """One run; raises `ViolationError`."""

    def draw(what: str, options: int) -> int:
        return schedule.choose("shape", what, options)

    plan = _plan(
        (2, 3, 1)[draw("workers", 3)], 1 + draw("emitters", 3), 1 + draw("draws", 3), draw("seen", 2)
    )
    pieces, feed = draw_pieces(schedule), _NoRows(1 + draw("batches", 4))
    here = world()
    engines: list[Engine] = []
    with in_small_pieces(pieces, lambda barrier: engines[0].reached(barrier) if engines else None):
        engine = Engine(plan, feed)
        engines.append(engine)
        engine.run()
    drawn = here.storage.state("draw")
    if sorted(drawn) != list(range(len(drawn))):
        raise ViolationError("rows in the state", f"not one after another: {sorted(drawn)}")
    acted: dict[int, int] = {}
    for txid, (rows,) in here.acts.items():
        if set(rows) & set(acted):
            raise ViolationError(
                "rows of two transactions", f"{sorted(set(rows) & set(acted))}, again in {txid}"
            )
        acted |= rows
    if acted != drawn:
        wrong = sorted(row for row in {*acted, *drawn} if acted.get(row) != drawn.get(row))
        raise ViolationError("committers and the state", f"differ in {wrong}")
