"""A transactional topology whose effects are in a database, in a file and in its state, to be held against each other.

ranges (random ones, until ``enough`` is there) -> draw (a random number for each, kept in its state) -> store (a committer)
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from stormspark import Fields, OutputFieldsDeclarer, Topology, TopologyContext, Tuple
from stormspark.api.state import StatefulComponent
from stormspark.map_state import OpaqueMap, StateType
from stormspark.map_state.sql import SqlBackingMap
from stormspark.transactional import (
    BatchBolt,
    BatchOutputCollector,
    Committer,
    Coordinator,
    TransactionalTopologyBuilder,
    TransactionAttempt,
)
from tests.repeatable_spouts import Ranges

__all__ = ["ENOUGH", "KEYS", "build"]

KEYS = 5
ENOUGH = "enough"


class RangesUntilEnough(Ranges):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get_coordinator(self, conf: Mapping[str, Any], context: TopologyContext) -> RangeCoordinator:
        return RangeCoordinator(self.folder / ENOUGH)


class RangeCoordinator(Coordinator[tuple[int, int]]):
    def __init__(self, enough: Path) -> None:
        self.enough = enough

    def is_ready(self) -> bool:
        return not self.enough.exists()

    def initialize_transaction(self, txid: int, previous: tuple[int, int] | None) -> tuple[int, int]:
        begin = previous[1] if previous else 0
        return begin, begin + random.randint(1, 50)


class Draw(StatefulComponent, BatchBolt):
    """Draws a number for each: what it drew in an attempt that was not committed never was."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        self.collector, self.attempt = collector, attempt
        self.numbers: list[int] = []

    def execute(self, tup: Tuple) -> None:
        self.numbers.append(tup["number"])

    def finish_batch(self) -> None:
        drawn = {number: random.randrange(1_000_000) for number in self.numbers}
        for number, one in drawn.items():
            assert number not in self.state, f"{number} came twice"
            self.state[number] = one
        self.collector.emit((self.attempt, drawn))

    def pre_save(self, checkpoint_id: int) -> None:
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("tx", "drawn"))


class Store(Committer, BatchBolt):
    """Adds up in a database what was drawn, by the rule for what may come again differently (G8); writes a line of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        attempt: TransactionAttempt,
    ) -> None:
        self.attempt = attempt
        self.drawn: dict[int, int] = {}

    def execute(self, tup: Tuple) -> None:
        self.drawn.update(tup["drawn"])

    def finish_batch(self) -> None:
        with (self.folder / "stored.jsonl").open("a") as file:
            file.write(json.dumps([*self.attempt, sorted(self.drawn)]) + "\n")
        sums: dict[int, int] = defaultdict(int)
        for number, one in self.drawn.items():
            sums[number % KEYS] += one
        engine = sql.create_engine(f"sqlite:///{self.folder / 'sums.db'}")
        try:
            totals: OpaqueMap[int] = OpaqueMap(SqlBackingMap(engine, "sums", StateType.OPAQUE))
            totals.begin_commit(self.attempt.txid)
            totals.multi_update([(key,) for key in sums], [_adding(more) for more in sums.values()])
            totals.commit(self.attempt.txid)
        finally:
            engine.dispose()


def _adding(more: int) -> Callable[[int | None], int]:
    return lambda total: (total or 0) + more


def build(name: str, folder: Path) -> Topology:
    """It ends when ``folder/enough`` is there."""
    builder = TransactionalTopologyBuilder(name, "ranges", RangesUntilEnough(folder), 2)
    builder.set_bolt("draw", Draw(), 2).fields_grouping("ranges", Fields("number"))
    builder.set_bolt("store", Store(folder)).global_grouping("draw")
    return builder.create_topology(name)
