"""Spouts and bolts as users of streamparse write them, whose effects can be looked at from outside."""

# ruff: noqa: RUF012 - class attributes are written as users write them
from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from stormspark.compat.streamparse.storm import (
    BatchingBolt,
    Bolt,
    ReliableSpout,
    Spout,
    TicklessBatchingBolt,
)
from stormspark.compat.streamparse.streams import Stream
from tests.conformance.components import EFFECTS


class Writes:
    """Appends JSON lines to a file of its task."""

    storm_conf: dict[str, Any]
    component_name: str
    task_id: int

    @property
    def effects(self) -> Path:
        return Path(self.storm_conf[EFFECTS]) / f"{self.component_name}-{self.task_id}.jsonl"

    def write(self, *values: Any) -> None:
        with self.effects.open("a") as file:
            file.write(json.dumps(values) + "\n")

    def written(self) -> list[list[Any]]:
        """What this task has written in all of its lives."""
        return (
            [json.loads(line) for line in self.effects.read_text().splitlines()]
            if self.effects.exists()
            else []
        )


class Numbers(Writes, Spout):
    """Emits 0 to ``numbers`` - 1, reliably."""

    outputs = ["n"]
    config = {"numbers": 40}

    def initialize(self, storm_conf, context):
        self.todo = list(range(storm_conf["numbers"]))[::-1]

    def next_tuple(self):
        if self.todo:
            number = self.todo.pop()
            assert self.emit([number], tup_id=number) is None

    def ack(self, tup_id):
        self.write("ack", tup_id)

    def fail(self, tup_id):
        self.write("fail", tup_id)


class Replayed(Writes, ReliableSpout):
    """The same; what fails is emitted again by the base class."""

    outputs = ["n"]
    max_fails = 2
    config = {"numbers": 10}

    def initialize(self, storm_conf, context):
        self.todo = list(range(storm_conf["numbers"]))[::-1]

    def next_tuple(self):
        if self.todo:
            number = self.todo.pop()
            self.emit([number], tup_id=number)

    def fail(self, tup_id):
        self.write("fail", tup_id)
        super().fail(tup_id)
        self.write("open", sorted(self.unacked_tuples), self.failed_tuples[tup_id])


class Words(Spout):
    outputs = ["sentence"]
    sentences = ["the cow jumped over the moon", "an apple a day", "the day the cow ate the apple"] * 20

    def initialize(self, storm_conf, context):
        tasks = [int(t) for t, c in context["task->component"].items() if c == self.component_name]
        self.todo = self.sentences[sorted(tasks).index(self.task_id) :: len(tasks)]

    def next_tuple(self):
        if self.todo:
            self.emit([self.todo.pop()], tup_id=len(self.todo))


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup.values.sentence.split():
            self.emit((word,))


class Count(Writes, Bolt):
    outputs = ["word", "count"]

    def initialize(self, storm_conf, context):
        self.counts = Counter()

    def process(self, tup):
        (word,) = tup.values
        self.counts[word] += 1
        self.write(self.task_id, word, self.counts[word])
        self.emit([word, self.counts[word]])


class Look(Writes, Bolt):
    """Writes all that a tuple tells of itself."""

    def process(self, tup):
        kind = type(tup.values)
        self.write(
            kind.__name__, tup.values._asdict(), tup.component, tup.stream, tup.task, self.is_tick(tup)
        )


class Unanchored(Bolt):
    """Emits the same tuple once unanchored, once anchored."""

    outputs = [Stream(["n"], "loose"), Stream(["n"], "tied")]

    def process(self, tup):
        self.emit([tup.values.n], stream="loose", anchors=[])
        self.emit([tup.values.n], stream="tied")


class AnchorsNothing(Bolt):
    auto_anchor = False
    outputs = ["n"]

    def process(self, tup):
        self.emit([tup.values.n])


class FailsOnce(Writes, Bolt):
    """Fails each number the first time it sees it, by hand."""

    auto_ack = False

    def initialize(self, storm_conf, context):
        self.seen = set()

    def process(self, tup):
        self.write("seen", tup.values.n)
        if tup.values.n in self.seen:
            self.ack(tup.id)
        else:
            self.seen.add(tup.values.n)
            self.fail(tup)


class Holds(Writes, Bolt):
    """Acks tuples ten at a time, the first by id and the others by themselves; emits one that is anchored to all ten."""

    auto_ack = False
    outputs = ["sum"]

    def initialize(self, storm_conf, context):
        self.kept = []

    def process(self, tup):
        self.kept.append(tup)
        if len(self.kept) == 10:
            self.emit([sum(one.values.n for one in self.kept)], anchors=[self.kept[0].id, *self.kept[1:]])
            self.ack(self.kept[0].id)
            for one in self.kept[1:]:
                self.ack(one)
            self.kept = []


class Raises(Writes, Bolt):
    """Raises for 3 and 7, the first time."""

    outputs = ["n"]

    def initialize(self, storm_conf, context):
        self.seen = [n for _, n in self.written()]
        self.life = 0

    def process(self, tup):
        self.life += 1
        n = tup.values.n
        self.write(self.life, n)
        if n in (3, 7) and n not in self.seen:
            self.seen.append(n)
            raise ValueError(f"not {n} yet")
        self.emit([n])


class RaisesAndGoesOn(Raises):
    exit_on_exception = False


class Ticks(Writes, Bolt):
    config = {"topology.tick.tuple.freq.secs": 0.2}

    def process(self, tup):
        self.write("tuple", tup.values.n)

    def process_tick(self, tup):
        self.write("tick", tup.component, tup.stream, list(tup.values), self.is_tick(tup))


class Parity(Writes, BatchingBolt):
    """Batches of even and of odd numbers; those of odd numbers fail, the first time."""

    outputs = ["odd", "numbers"]
    config = {"topology.tick.tuple.freq.secs": 0.2}

    def initialize(self, storm_conf, context):
        self.ticks = 0

    def process_tick(self, tick_tup):
        self.ticks += 1
        super().process_tick(tick_tup)

    def group_key(self, tup):
        return tup.values.n % 2

    def process_batch(self, key, tups):
        numbers = [tup.values.n for tup in tups]
        failed = any(line[0] == "failed" for line in self.written())
        if key and not failed:
            self.write("failed", numbers)
            raise ValueError("no odd numbers yet")
        self.write("batch", key, numbers, self.ticks)
        self.emit([key, numbers])


class ParityGoesOn(Parity):
    exit_on_exception = False


class Timed(Writes, TicklessBatchingBolt):
    outputs = ["numbers"]
    secs_between_batches = 0.3

    def process_batch(self, key, tups):
        numbers = [tup.values.n for tup in tups]
        self.write(key, numbers)
        self.emit([numbers])


class Picky(Writes, Spout):
    """Emits to tasks of its choice, and asks where other tuples went."""

    outputs = [Stream(["n"], "direct", direct=True), Stream(["n"], "shuffled")]
    config = {"numbers": 6}

    def initialize(self, storm_conf, context):
        self.todo = list(range(storm_conf["numbers"]))
        self.targets = sorted(int(t) for t, name in context["task->component"].items() if name == "direct")

    def next_tuple(self):
        if not self.todo:
            return
        n = self.todo.pop()
        target = self.targets[n % len(self.targets)]
        told = self.emit([n], n, stream="direct", direct_task=target, need_task_ids=True)
        asked = self.emit([n], f"s{n}", stream="shuffled", need_task_ids=True)
        self.write(n, target, told, asked)


class Taken(Writes, Bolt):
    def process(self, tup):
        self.write(self.task_id, tup.values.n)


class Containers(Spout):
    """Changes what it has emitted."""

    outputs = ["thing"]

    def initialize(self, storm_conf: Any, context: Any) -> None:
        self.thing: dict[Any, Any] = {1: ("a", [None])}
        self.left = 3

    def next_tuple(self):
        if self.left:
            self.left -= 1
            self.emit([self.thing], tup_id=self.left)
            self.thing["left"] = self.left


class Changes(Writes, Bolt):
    """Changes what it was given."""

    def process(self, tup):
        self.write(tup.values.thing)
        tup.values.thing["changed"] = True


class AlwaysFails(Bolt):
    auto_ack = False

    def process(self, tup):
        self.fail(tup)


class Batches(Writes, Bolt):
    """Takes what `Parity` emits."""

    def process(self, tup):
        self.write(tup.values.odd, tup.values.numbers)
