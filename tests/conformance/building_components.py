"""Components for `test_building`."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
    WorkerHook,
)
from stormspark.api import WorkerUserContext
from tests.conformance.components import EFFECTS, Effects


def write_line(path: Path, *values: Any) -> None:
    """Append values to a file."""
    with path.open("a") as file:
        file.write(json.dumps(values) + "\n")


class Made(BasicBolt):
    """Keeps what it was constructed with, and marks it as its own in ``prepare``."""

    def __init__(self, names: list[str]) -> None:
        self.state: dict[str, list[Any]] = {"names": names, "marks": []}
        self.constructed_in = os.getpid()

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.state["marks"].append(context.this_task_id)
        Effects(conf, context).write(self.state["names"], self.state["marks"], self.constructed_in)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass


class Configured:
    """What the spout and the bolt below share: a configuration of their own, and a look at what holds."""

    own: Mapping[str, Any]

    def get_component_configuration(self) -> Mapping[str, Any]:
        return self.own

    def tell(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        keys = [key for key in sorted(conf) if key.startswith("mine.")]
        known = ("topology.max.spout.pending", "topology.message.timeout.secs", "topology.tasks")
        Effects(conf, context).write({key: conf.get(key) for key in [*keys, *known]})


class ConfiguredSpout(Configured, Spout):
    """Tells the configuration that ``open`` is given."""

    def __init__(self, own: Mapping[str, Any]) -> None:
        self.own = own

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.tell(conf, context)

    def next_tuple(self) -> None:
        pass

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class ConfiguredBolt(Configured, Bolt):
    """Tells the configuration that ``prepare`` is given."""

    def __init__(self, own: Mapping[str, Any]) -> None:
        self.own = own

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.tell(conf, context)

    def execute(self, tup: Tuple) -> None:
        pass


class Journal:
    """One file of a worker, that its hook and its tasks write to."""

    def __init__(self, conf: Mapping[str, Any], worker: int) -> None:
        self.path = Path(conf[EFFECTS]) / f"worker-{worker}.jsonl"

    def write(self, *values: Any) -> None:
        write_line(self.path, *values)


class JournalHook(WorkerHook):
    """Gives the tasks of its worker a journal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self, conf: Mapping[str, Any], context: WorkerUserContext) -> None:
        self.journal = context.get_resource("journal") or Journal(conf, context.this_worker_index)
        context.set_resource("journal", self.journal)
        self.journal.write(
            "start", self.name, list(context.this_worker_tasks), context.component_tasks("bolt")
        )

    def shutdown(self) -> None:
        self.journal.write("shutdown", self.name)


class RefusingHook(WorkerHook):
    """Can't start."""

    def start(self, conf: Mapping[str, Any], context: WorkerUserContext) -> None:
        raise LookupError("no such library")


class JournalBolt(BasicBolt):
    """Writes to its worker's journal."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.journal = context.get_resource("journal")
        self.task = context.this_task_id
        self.journal.write("prepare", self.task, id(self.journal))

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        pass

    def cleanup(self) -> None:
        self.journal.write("cleanup", self.task)


class ManyStreams(BasicBolt):
    """Emits even numbers on one stream, odd ones on another, and all of them as objects of a class on a third."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        n = tup["n"]
        collector.emit((n,), stream="odd" if n % 2 else "even")
        collector.emit((Money(n, "EUR"),), stream="objects")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("odd", Fields("n"))
        declarer.declare_stream("even", Fields("n"))
        declarer.declare_stream("objects", Fields("money"))


class Money:
    """A value of a user's own type."""

    def __init__(self, amount: int, currency: str) -> None:
        self.amount, self.currency = amount, currency


class Count(BasicBolt):
    """Counts its keys and emits (key, count so far)."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: Counter[int] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.counts[tup["key"]] += 1
        collector.emit((tup["key"], self.counts[tup["key"]]))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "count"))


class Top(BasicBolt):
    """Keeps the ``n`` keys with the highest counts of those it hears of; emits them when they change, writes them at the end."""

    def __init__(self, n: int) -> None:
        self.n = n

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.effects = Effects(conf, context)
        self.top: dict[int, int] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        ranked = sorted({**self.top, tup["key"]: tup["count"]}.items(), key=lambda item: (-item[1], item[0]))
        self.top = dict(ranked[: self.n])
        if tup["key"] in self.top:
            collector.emit((tup["key"], tup["count"]))

    def cleanup(self) -> None:
        self.effects.write(*self.top.items())

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("key", "count"))


class Undeclared(BasicBolt):
    """Emits without having declared what."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit((1,))


class Wrong(BasicBolt):
    """Emits two values where it has declared one."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        collector.emit((tup["n"], "more"))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("one"))
