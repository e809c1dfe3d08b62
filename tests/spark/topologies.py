"""Topologies for tests on Spark. They write to the folder ``test.folder`` of their configuration what a test
looks at.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path

from stormspark import BasicBolt, Bolt, Fields, Spout, Topology, TopologyBuilder

FOLDER = "test.folder"
WORDS = ("the", "cow", "jumped", "over", "the", "moon")


class Sentences(Spout):
    """Emits ``total`` sentences, shared out over its tasks; what fails it emits again, unless ``replay`` is
    false.
    """

    def __init__(self, total, replay=True):
        self.total = total
        self.replay = replay

    def open(self, conf, context, collector):
        self.collector = collector
        tasks = len(context.component_tasks(context.this_component_id))
        self.new = iter(range(context.this_task_index, self.total, tasks))
        self.again = []

    def next_tuple(self):
        number = self.again.pop() if self.again else next(self.new, None)
        if number is not None:
            self.collector.emit((f"{' '.join(WORDS)} {number % 10}",), message_id=number)

    def fail(self, message_id):
        if self.replay:
            self.again.append(message_id)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("sentence"))


class Split(BasicBolt):
    def execute(self, tup, collector):
        for word in tup["sentence"].split():
            collector.emit((word,))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Count(BasicBolt):
    """Counts words in memory, and writes the counts down when it is cleaned up."""

    def prepare(self, conf, context):
        self.counts = Counter()
        self.path = Path(conf[FOLDER], f"counts-{context.this_task_id}-{os.getpid()}.json")

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1

    def cleanup(self):
        self.path.write_text(json.dumps(self.counts))


def word_count(total, name="tested-word-count", replay=True) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(total, replay), parallelism=2)
    builder.set_bolt("split", Split(), parallelism=2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), parallelism=3).fields_grouping("split", Fields("word"))
    return builder.create_topology(name)


def expected_counts(total) -> Counter:
    counts = Counter({word: total * WORDS.count(word) for word in set(WORDS)})
    counts.update(str(number % 10) for number in range(total))
    return counts


def counted(folder: Path) -> Counter:
    """All counts, added up; a word is counted by one task only."""
    total: Counter = Counter()
    for file in folder.glob("counts-*.json"):
        counts = json.loads(file.read_text())
        assert not counts.keys() & total.keys(), "a word was counted by two tasks"
        total.update(counts)
    return total


class PrepareRaises(BasicBolt):
    def prepare(self, conf, context):
        raise ValueError("no such table: words")

    def execute(self, tup, collector):
        """Never called."""


class ExecuteRaises(BasicBolt):
    def execute(self, tup, collector):
        raise ValueError("always")


def broken(bolt) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("sentences", Sentences(100), parallelism=1)
    builder.set_bolt("broken", bolt, parallelism=1).shuffle_grouping("sentences")
    return builder.create_topology("broken")


class Large(Spout):
    """Emits one tuple of ``size`` bytes."""

    def __init__(self, size):
        self.size = size

    def open(self, conf, context, collector):
        self.collector = collector

    def next_tuple(self):
        if self.size:
            self.collector.emit((bytes(self.size), "end"), message_id="large")
            self.size = 0

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value", "mark"))


class Measure(Bolt):
    def prepare(self, conf, context, collector):
        self.collector = collector
        self.path = Path(conf[FOLDER], f"size-{context.this_task_id}-{os.getpid()}")

    def execute(self, tup):
        self.path.write_text(f"{len(tup['value'])} {tup['mark']}")
        self.collector.ack(tup)


def large_tuple(size) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("large", Large(size))
    builder.set_bolt("measure", Measure(), parallelism=2).all_grouping("large")
    return builder.create_topology("large")


class Hold(Bolt):
    """Remembers what it got; at the number ``at`` it says so in a file and waits there for the file ``go``.

    Only if that number came from another worker: then the others have had their spouts' turn in this batch.
    """

    def __init__(self, at):
        self.at = at

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.folder = Path(conf[FOLDER])
        self.task = context.this_task_id
        self.local = context.this_worker_tasks
        self.seen = []
        (self.folder / f"prepared-{self.task}-{os.getpid()}").touch()

    def execute(self, tup):
        held = tup["n"] == self.at and tup.source_task not in self.local
        if held and not (self.folder / "go").exists():
            (self.folder / "new-holding").write_text(str(os.getpid()))
            (self.folder / "new-holding").rename(self.folder / "holding")
            while not (self.folder / "go").exists():
                time.sleep(0.01)
        self.seen.append(tup["n"])
        self.collector.ack(tup)

    def cleanup(self):
        (self.folder / f"seen-{self.task}.json").write_text(json.dumps(self.seen))


class Numbers(Spout):
    """Emits 0 .. n-1, in small bites, from each of its tasks; writes verdicts down; what fails it emits
    again.
    """

    def __init__(self, total):
        self.total = total

    def open(self, conf, context, collector):
        self.collector = collector
        self.todo = list(range(self.total))[::-1]
        self.path = Path(conf[FOLDER], f"verdicts-{context.this_task_id}-{os.getpid()}")

    def next_tuple(self):
        if self.todo:
            number = self.todo.pop()
            self.collector.emit((number,), message_id=number)

    def ack(self, message_id):
        with self.path.open("a") as file:
            file.write(f"ack {message_id}\n")

    def fail(self, message_id):
        with self.path.open("a") as file:
            file.write(f"fail {message_id}\n")
        self.todo.append(message_id)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


def holding(total, at) -> Topology:
    """Two workers, in each a spout task and a bolt task; numbers go to a bolt task by their value."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(total), parallelism=2)
    builder.set_bolt("hold", Hold(at), parallelism=2).fields_grouping("numbers", Fields("n"))
    return builder.create_topology("holding")
