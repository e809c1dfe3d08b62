"""Components for `test_life`."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    FailedException,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TaskHook,
    TickTupleAwareBolt,
    TopologyContext,
    Tuple,
)
from stormspark.metrics import CountMetric
from tests.conformance.components import Effects


class HoldUntilTicks(TickTupleAwareBolt):
    """Acks what it holds with every second tick."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.held: list[Tuple] = []
        self.ticks = 0

    def process(self, tup: Tuple) -> None:
        self.held.append(tup)
        self.ticks = 0

    def on_tick_tuple(self, tick: Tuple) -> None:
        self.ticks += 1
        if self.ticks == 2:
            self.effects.write(
                tick.source_component, tick.source_stream, tick.source_task, list(tick), len(self.held)
            )
            for tup in self.held:
                self.collector.ack(tup)
            self.held = []

    def get_component_configuration(self) -> Mapping[str, Any]:
        return {"topology.tick.tuple.freq.secs": 0.3}


class Orders(Spout):
    """Emits ``orders`` messages of three tuples each, on two streams; replays a failed one once."""

    def __init__(self, orders: int) -> None:
        self.orders = orders

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.todo = list(range(self.orders))
        self.failed: set[Hashable] = set()

    def next_tuple(self) -> None:
        if self.todo:
            order = self.todo.pop()
            with self.collector.group(order) as group:
                group.emit((order,))
                group.emit((order, "a"), stream="lines")
                group.emit((order, "b"), stream="lines")

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def fail(self, message_id: Hashable) -> None:
        self.effects.write("fail", message_id)
        if message_id not in self.failed:
            self.failed.add(message_id)
            self.todo.append(message_id)  # type: ignore[arg-type]

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("order"))
        declarer.declare_stream("lines", Fields("order", "line"))


class File(Spout):
    """Emits all of ``n`` numbers inside one next_tuple."""

    def __init__(self, n: int) -> None:
        self.n = n

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.done = self.inside = False
        self.acks = 0

    def next_tuple(self) -> None:
        if not self.done:
            self.done = self.inside = True
            for number in range(self.n):
                self.collector.emit((number,), message_id=number)
            self.inside = False

    def ack(self, message_id: Hashable) -> None:
        self.acks += 1
        if self.acks == self.n or self.inside:
            self.effects.write("acks", self.acks, self.inside)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class Life(TaskHook):
    """Counts what its task does."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.effects, self.counts = Effects(conf, context), {"emit": 0, "execute": 0, "ack": 0, "fail": 0}

    def emit(self, info: Any) -> None:
        self.counts["emit"] += 1

    def spout_ack(self, info: Any) -> None:
        self.counts["ack"] += 1

    def spout_fail(self, info: Any) -> None:
        self.counts["fail"] += 1

    def bolt_execute(self, info: Any) -> None:
        self.counts["execute"] += 1

    def bolt_ack(self, info: Any) -> None:
        self.counts["ack"] += 1

    def bolt_fail(self, info: Any) -> None:
        self.counts["fail"] += 1

    def cleanup(self) -> None:
        self.effects.write("hook", self.counts)


class CountAndFailOnce(BasicBolt):
    """Counts in a metric that is read often; the first tuple of each task fails."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.failed = False
        self.executed = context.register_metric("executed", CountMetric(), 0.2)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.executed.incr()
        if not self.failed:
            self.failed = True
            raise FailedException("the first")


class Told(Bolt):
    """Writes what its context and configuration tell it."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector
        began = time.time()
        Effects(conf, context).write(
            conf["test.key"],
            context.this_task_index,
            dict(context.targets(context.this_component_id)) == {},
            [list(source) for source in context.this_sources],
            abs(context.now_ms() / 1000 - began) < 5,
            context.storm_id.startswith(f"{context.topology_name}-"),
        )

    def execute(self, tup: Tuple) -> None:
        self.collector.ack(tup)


class Moody(Spout):
    """Emits 0..n-1, with nothing to say in between; raises once each in next_tuple, in ack and in fail.

    What it has emitted and what it has raised it finds in its effects: a new instance knows nothing else.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.effects.write("open")
        self.next = sum(what == "emit" for what, *_ in self.effects.read())
        self.calls = 0

    def _once(self, what: str) -> None:
        if ["raised", what] not in self.effects.read():
            self.effects.write("raised", what)
            raise KeyError(what)

    def next_tuple(self) -> None:
        self.calls += 1
        if self.calls % 2 or self.next == self.n:
            return
        # The message that fails, the one before the middle, must not be open when another call raises: its verdict would be
        # forgotten (B10).
        first = {self.n // 2 - 1: "ack", self.n // 2: "fail"}.get(self.next)
        if first is not None and ["raised", first] not in self.effects.read():
            return
        if self.next == self.n // 2:
            self._once("next_tuple")
        self.effects.write("emit", self.next)
        self.collector.emit((self.next,), message_id=self.next)
        self.next += 1

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)
        self._once("ack")

    def fail(self, message_id: Hashable) -> None:
        self.effects.write("fail", message_id)
        self._once("fail")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class SameId(Spout):
    """Emits 0..n-1, all as the message "same"; writes every verdict."""

    def __init__(self, n: int) -> None:
        self.n = n

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.next = 0

    def next_tuple(self) -> None:
        if self.next < self.n:
            self.collector.emit((self.next,), message_id="same")
            self.next += 1

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def fail(self, message_id: Hashable) -> None:
        self.effects.write("fail", message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))
