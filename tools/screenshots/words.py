"""A topology to take pictures of: it counts words, and stores the counts more slowly than they come."""

from __future__ import annotations

import random
import time
from typing import Any

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.api import Topology

WORDS = "the cow jumped over the moon and an apple a day keeps the doctor away four score and seven years ago".split()


class Sentences(Spout):
    """Emits some hundred sentences a second."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        """Begin to count messages."""
        self._collector, self._number = collector, 0

    def next_tuple(self) -> None:
        """Emit a sentence."""
        self._number += 1
        self._collector.emit((" ".join(random.choices(WORDS, k=6)),), message_id=self._number)
        time.sleep(0.003)

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare a sentence."""
        declarer.declare(Fields("sentence"))


class Split(BasicBolt):
    """Splits sentences into words."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Emit each word."""
        for word in tup[0].split():
            collector.emit((word,))

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare a word."""
        declarer.declare(Fields("word"))


class Count(BasicBolt):
    """Counts words."""

    def prepare(self, conf: Any, context: Any) -> None:
        """Begin at 0."""
        self._counts: dict[str, int] = {}

    def execute(self, tup: Any, collector: Any) -> None:
        """Emit the new count."""
        self._counts[tup[0]] = self._counts.get(tup[0], 0) + 1
        collector.emit((tup[0], self._counts[tup[0]]))

    def declare_output_fields(self, declarer: Any) -> None:
        """Declare a count."""
        declarer.declare(Fields("word", "count"))


class Store(BasicBolt):
    """Takes half a millisecond for each count, and fails now and then."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Wait, as for a database."""
        if random.random() < 0.00005:
            msg = f"the database has no row for {tup[0]!r}"
            raise LookupError(msg)
        time.sleep(0.0005)

    def declare_output_fields(self, declarer: Any) -> None:
        """Emit nothing."""


class Alert(BasicBolt):
    """Looks for sentences about the moon."""

    def execute(self, tup: Any, collector: Any) -> None:
        """Do nothing with them."""

    def declare_output_fields(self, declarer: Any) -> None:
        """Emit nothing."""


def build() -> Topology:
    """Return the topology."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(), parallelism=2)
    builder.set_bolt("split", Split(), parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), parallelism=4).fields_grouping("split", Fields("word"))
    builder.set_bolt("store", Store()).shuffle_grouping("count")
    builder.set_bolt("alert", Alert()).shuffle_grouping("count").shuffle_grouping("sentences")
    return builder.create_topology("word-totals")
