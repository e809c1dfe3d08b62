"""Kafka -> windows -> Delta, exactly once: numbers with times, out of order, in windows of both kinds of time.

messages ("n at") -> parsed -> by_event (2 s that slide by 1 s, by "at")  -> Delta "fired": n, end
                                                                late      -> Delta "missed": n
                            -> by_arrival (400 ms that slide by 150 ms)   -> Delta "arrived": n, once for being new
                            -> counts (100 one after another, persistent) -> Delta "counted": n
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Count,
    Duration,
    Fields,
    KeyValueState,
    OutputFieldsDeclarer,
    StatefulWindowedBolt,
    Topology,
    TopologyBuilder,
    Tuple,
    TupleWindow,
    WindowedBolt,
)
from stormspark.connectors import DeltaBolt
from stormspark.connectors.kafka import KafkaSpout, KafkaSpoutConfig

__all__ = ["FAR", "KAFKA", "LENGTH", "SLIDE", "build"]

#: A file of the folder: where Kafka is, and the topic.
KAFKA = "kafka"
LENGTH, SLIDE, LAG = 2000, 1000, 500
#: Numbers from here on let all others out of their windows, and are not looked at.
FAR = 1_000_000


class Parse(BasicBolt):
    """A number and its time."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        value = tup["value"]
        n, at = (value if isinstance(value, str) else value.decode()).split()
        collector.emit((int(n), int(at)))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n", "at"))


class Rows(WindowedBolt):
    """A row for each tuple that ``rows`` gives of a window."""

    def __init__(self, fields: tuple[str, ...], rows: Callable[[TupleWindow], list[tuple[Any, ...]]]) -> None:
        self.fields, self.rows = fields, rows

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, window: TupleWindow) -> None:
        for row in self.rows(window):
            self.collector.emit(row)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(self.fields))


class CountedRows(StatefulWindowedBolt[KeyValueState[str, int]], Rows):
    """Counts what it has seen, in its own state."""

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.state = state

    def execute(self, window: TupleWindow) -> None:
        self.state["seen"] = self.state.get("seen", 0) + len(window)
        super().execute(window)


class LateRow(BasicBolt):
    """The number of a late tuple."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit((tup["late_tuple"]["n"],))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


def numbers(window: TupleWindow) -> list[tuple[int]]:
    return [(tup["n"],) for tup in window]


def new_numbers(window: TupleWindow) -> list[tuple[int]]:
    return [(tup["n"],) for tup in window.new]


def fired_rows(window: TupleWindow) -> list[tuple[int, int]]:
    return [(tup["n"], window.end_timestamp) for tup in window]


def build(name: str, folder: Path) -> Topology:
    """See `tests.faults.exactly_once.topology.build`."""
    bootstrap, topic = (folder / KAFKA).read_text().split()
    builder = TopologyBuilder()
    builder.set_spout("messages", KafkaSpout(KafkaSpoutConfig(bootstrap, topic, group_id=name)), 2)
    builder.set_bolt("parsed", Parse(), 2).shuffle_grouping("messages")

    fired = Rows(("n", "end"), fired_rows).with_window(Duration(LENGTH), Duration(SLIDE))
    fired.with_timestamp_field("at").with_lag(Duration(LAG)).with_late_tuple_stream("late")
    fired.with_watermark_interval(Duration(100))
    builder.set_bolt("by_event", fired, 2).fields_grouping("parsed", Fields("n"))
    builder.set_bolt("late", LateRow()).shuffle_grouping("by_event", "late")

    arrived = Rows(("n",), new_numbers).with_window(Duration(400), Duration(150))
    builder.set_bolt("by_arrival", arrived, 2).fields_grouping("parsed", Fields("n"))

    counted = CountedRows(("n",), numbers).with_tumbling_window(Count(100))
    counted.with_persistence().with_max_events_in_memory(50)
    builder.set_bolt("counts", counted, 2).fields_grouping("parsed", Fields("n"))

    for source, table in (
        ("by_event", "fired"),
        ("by_arrival", "arrived"),
        ("counts", "counted"),
        ("late", "missed"),
    ):
        builder.set_bolt(table, DeltaBolt(folder / table), 2).shuffle_grouping(source)
    return builder.create_topology(name)
