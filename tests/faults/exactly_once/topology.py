"""A topology whose every effect is in its state, so that a run with faults can be held against what must have happened.

    numbers (its position is its state) -> choose (draws a number for each, and remembers it) -> total, notes
    lines (files, read by Spark)        ------------------------------------------------------> total

``notes`` knows nothing of state: its attributes are pickled.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.connectors import FileSpout
from tests.repeatable_spouts import NumbersFromState

__all__ = ["ENOUGH", "KEYS", "SENDERS", "build"]

SENDERS, KEYS = 2, 10
#: When this file is there, numbers come to an end.
ENOUGH = "enough"
_SECS_EACH = 0.001
_SECS_OF_SLOW = 0.004


class Numbers(NumbersFromState):
    """Emits (sender, n) for n = 0, 1, 2 ..., each once."""

    fields = ("sender", "n")

    def __init__(self, folder: Path) -> None:
        self.enough = folder / ENOUGH

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.sender = context.this_task_index

    def next_tuple(self) -> None:
        if not self.enough.exists():
            self.emit_next(self.sender, self.n)
            time.sleep(_SECS_EACH)


class Choose(StatefulBolt[KeyValueState[Any, Any]]):
    """Draws a number for each tuple: what it drew last time for it nobody can know, unless it was committed.

    Its second task is slow, so one worker still has work when the other one has none left.
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.slow = collector, context.this_task_index == 1

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        self.drawn = state

    def execute(self, tup: Tuple) -> None:
        sender, n = tup.values
        assert (sender, n) not in self.drawn, f"{n} of {sender} came twice"
        number = random.randrange(1_000_000)
        if self.slow:
            time.sleep(_SECS_OF_SLOW)
        self.drawn[sender, n] = number
        self.collector.emit((n % KEYS, number), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "number"))


class Total(StatefulBolt[KeyValueState[Any, Any]]):
    """How many numbers, and their sum, by key; and how many lines."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        key, number = ("line", int(tup["line"])) if tup.source_component == "lines" else tup.values
        count, total = self.state.get(key, (0, 0))
        self.state[key] = count + 1, total + number
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


class Notes(BasicBolt):
    """Counts in an attribute, as if there were no crashes."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: Counter[int] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.counts[tup["key"]] += 1

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {"topology.state.pickle": True}


def build(name: str, folder: Path) -> Topology:
    """``folder/lines`` is read, and ``folder/enough`` ends it."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(folder), SENDERS)
    builder.set_spout("lines", FileSpout(folder / "lines"))
    builder.set_bolt("choose", Choose(), 2).fields_grouping("numbers", Fields("sender", "n"))
    builder.set_bolt("notes", Notes(), 2).fields_grouping("choose", Fields("key"))
    builder.set_bolt("total", Total(), 2).fields_grouping("choose", Fields("key")).all_grouping("lines")
    return builder.create_topology(name)
