"""The classes of com.acme.orders, in Python."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from stormspark import (
    BasicBolt,
    CustomStreamGrouping,
    Fields,
    Spout,
    TopologyBuilder,
    WindowedBolt,
    WorkerHook,
)


class Continent(Enum):
    EU = "Europe"
    US = "America"


class Region:
    def __init__(self, continent: Continent) -> None:
        self.name = continent.name

    @staticmethod
    def of(continent: Continent) -> Region:
        return Region(continent)


class OrderSpout(Spout):
    """Orders 0, 1, 2, ..., their regions in turn."""

    def __init__(self, count: int, regions: list[Region]) -> None:
        self.orders = [(number, regions[number % len(regions)].name) for number in range(count)]

    def open(self, conf, context, collector):
        self.collector = collector
        self.todo = list(reversed(self.orders))

    def next_tuple(self):
        if self.todo:
            # Without a message id: the last window would hold its orders for ever.
            self.collector.emit(self.todo.pop())

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number", "region"))


class BySize(CustomStreamGrouping):
    """Orders of a size to a task each."""

    def __init__(self, size: int) -> None:
        self.size = size

    def prepare(self, context, stream, target_tasks):
        self.tasks = target_tasks

    def choose_tasks(self, task, values):
        return [self.tasks[values[0] // self.size % len(self.tasks)]]


class RouteBolt(BasicBolt):
    """A stream for each region; tells which of its tasks had the order."""

    def prepare(self, conf, context):
        self.index = context.this_task_index

    def execute(self, tup, collector):
        collector.emit((tup["number"], self.index), stream=tup["region"])

    def declare_output_fields(self, declarer):
        for region in Continent.__members__:
            declarer.declare_stream(region, Fields("number", "task"))


class SumBolt(WindowedBolt):
    """Sums of windows, in a unit."""

    factor: float = 1.0

    def set_unit(self, unit: str) -> None:
        self.unit = unit

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        self.collector.emit((f"{self.unit}{self.factor * sum(tup['number'] for tup in window):.1f}",))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("sum"))


class FileBolt(BasicBolt):
    def prepare(self, conf, context):
        self.file = Path(conf["acme.out"], f"{context.this_task_id}.txt")

    def execute(self, tup, collector):
        with self.file.open("a") as file:
            print(tup.source_component, *tup.values, file=file)


class MarkHook(WorkerHook):
    def __init__(self, name: str) -> None:
        self.name = name

    def start(self, conf, context):
        Path(conf["acme.out"], f"{self.name}-{context.this_worker_index}").touch()


class Orders:
    """A topology source."""

    def __init__(self, count: int) -> None:
        self.count = count

    def orders_topology(self, conf):
        assert conf["acme.out"]
        builder = TopologyBuilder()
        builder.set_spout("orders", OrderSpout(self.count, [Region(Continent.US)]))
        builder.set_bolt("file", FileBolt()).shuffle_grouping("orders")
        return builder
