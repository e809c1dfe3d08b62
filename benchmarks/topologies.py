"""The word counts that are measured, written as a user would write them."""

from __future__ import annotations

from random import Random

from benchmarks.data import heron_words, sentences
from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.api import Topology

CASES = ("wordcount_acked", "wordcount_unacked", "heron_acked", "heron_unacked")


class Items(Spout):
    """Emits random sentences, or random single words."""

    def __init__(self, words: bool, ids: bool) -> None:
        self.words = words
        self.ids = ids

    def open(self, conf, context, collector):
        """Make the data."""
        self.collector = collector
        self.items = heron_words() if self.words else sentences()
        self.random = Random(7 + context.this_task_id).random
        self.emitted = 0

    def next_tuple(self):
        """Emit one item."""
        items = self.items
        item = items[int(self.random() * len(items))]
        if self.ids:
            self.emitted += 1
            self.collector.emit((item,), message_id=self.emitted)
        else:
            self.collector.emit((item,))

    def declare_output_fields(self, declarer):
        """One field."""
        declarer.declare(Fields("item"))


class Split(BasicBolt):
    """Sentence -> words."""

    def execute(self, tup, collector):
        """Emit each word."""
        for word in tup["item"].split(" "):
            collector.emit((word,))

    def declare_output_fields(self, declarer):
        """One field."""
        declarer.declare(Fields("item"))


class Count(BasicBolt):
    """Counts words; emits nothing, as the peer's."""

    def prepare(self, conf, context):
        """Begin with nothing counted."""
        self.counts = {}

    def execute(self, tup, collector):
        """Count one word."""
        word = tup["item"]
        self.counts[word] = self.counts.get(word, 0) + 1


def build(case: str, parallelism: tuple[int, int, int]) -> Topology:
    """The topology of one case."""
    heron = case.startswith("heron")
    acked = not case.endswith("unacked")
    spouts, splits, counts = parallelism
    builder = TopologyBuilder()
    builder.set_spout("spout", Items(heron, acked), spouts)
    if heron:
        builder.set_bolt("count", Count(), counts).fields_grouping("spout", Fields("item"))
    else:
        builder.set_bolt("split", Split(), splits).shuffle_grouping("spout")
        builder.set_bolt("count", Count(), counts).fields_grouping("split", Fields("item"))
    return builder.create_topology(case, {} if acked else {"topology.acker.executors": 0})
