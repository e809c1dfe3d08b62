"""A topology that writes to all sorts of destinations what nobody can know who was not there: numbers drawn at random.

numbers (its position is its state) -> choose (draws a number for each, and remembers it) -> Delta, appended
                                                                                          -> Delta, merged by sender and n
                                                                                          -> Kafka
                                                                                          -> a table of counts, opaque
lines (files, read by Spark) -> keyed ---------------------------------------------------> a table of counts, transactional
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.connectors import DeltaBolt, FieldNameBasedTupleToKafkaMapper, FileSpout, KafkaBolt
from stormspark.map_state import MapState, OpaqueMap, StateType, TransactionalMap
from stormspark.map_state.sql import SqlBackingMap
from tests.faults.exactly_once.topology import KEYS, SENDERS, Numbers

__all__ = ["KAFKA", "SQL", "build"]

#: Files of the folder: where Kafka is and the topic, and where the database is.
KAFKA, SQL = "kafka", "sql"


class Choose(StatefulBolt[KeyValueState[Any, Any]]):
    """Draws a number for each tuple."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.task = collector, context.this_task_index

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        self.drawn = state

    def execute(self, tup: Tuple) -> None:
        sender, n = tup.values
        assert (sender, n) not in self.drawn, f"{n} of {sender} came twice"
        number = random.randrange(1_000_000)
        self.drawn[sender, n] = number
        message = f"{sender} {n} {number} {self.task}"
        self.collector.emit((sender, n, number, str(n % KEYS), message), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sender", "n", "number", "key", "message"))


class Row(BasicBolt):
    """What the tables have columns for."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit((tup["sender"], tup["n"], tup["number"]))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sender", "n", "number"))


class Keyed(BasicBolt):
    """The key of a line."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit((str(int(tup["line"]) % KEYS),))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key"))


class Tally(StatefulBolt[KeyValueState[Any, Any]]):
    """Counts keys in a database, batch by batch: it is a `StatefulBolt` to hear of them, and keeps nothing in its state."""

    def __init__(self, url: str, kind: StateType) -> None:
        self.url, self.kind = url, kind

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector
        rows = SqlBackingMap(sqlalchemy.create_engine(self.url), f"by_{self.kind.value}", self.kind)
        self.counts: MapState[int] = (
            OpaqueMap(rows, context.this_task_index)
            if self.kind is StateType.OPAQUE
            else TransactionalMap(rows)
        )
        self.batch: Counter[str] = Counter()

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        pass

    def execute(self, tup: Tuple) -> None:
        self.batch[tup["key"]] += 1
        self.collector.ack(tup)

    def pre_prepare(self, txid: int) -> None:
        # Also where nothing has come: an earlier attempt at the batch may have brought something.
        self.counts.begin_commit(txid)
        self.counts.multi_update([(key,) for key in self.batch], [_plus(n) for n in self.batch.values()])
        self.counts.commit(txid)
        self.batch.clear()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


def _plus(count: int) -> Any:
    return lambda before: (before or 0) + count


def build(name: str, folder: Path) -> Topology:
    """See `tests.faults.exactly_once.topology.build`."""
    url = (folder / SQL).read_text()
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(folder), SENDERS)
    builder.set_spout("lines", FileSpout(folder / "lines"))
    builder.set_bolt("choose", Choose(), 2).fields_grouping("numbers", Fields("sender", "n"))
    builder.set_bolt("row", Row(), 2).local_or_shuffle_grouping("choose")
    builder.set_bolt("keyed", Keyed(), 2).shuffle_grouping("lines")
    builder.set_bolt("appended", DeltaBolt(folder / "appended"), 2).shuffle_grouping("row")
    merged = DeltaBolt(folder / "merged", merge_on=["sender", "n"])
    builder.set_bolt("merged", merged, 2).fields_grouping("row", Fields("sender", "n"))
    opaque = Tally(url, StateType.OPAQUE)
    builder.set_bolt("opaque", opaque, 2).fields_grouping("choose", Fields("key"))
    transactional = Tally(url, StateType.TRANSACTIONAL)
    builder.set_bolt("transactional", transactional, 2).fields_grouping("keyed", Fields("key"))
    bootstrap, topic = (folder / KAFKA).read_text().split()
    kafka = (
        KafkaBolt()
        .with_producer_properties({"bootstrap.servers": bootstrap})
        .with_topic_selector(topic)
        .with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper("key", "message"))
        .with_transactions()
    )
    builder.set_bolt("kafka", kafka, 2).fields_grouping("choose", Fields("key"))
    return builder.create_topology(name)
