"""Components that number what they send, task by task, and write down what they see of others' numbers."""

from __future__ import annotations

from collections.abc import Mapping
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
)
from tests.conformance.components import Effects

STREAMS = ("shuffled", "keyed", "all", "told")


class _Sequence:
    """Sends (task, number, key), a number after the other, on one of `STREAMS` after the other."""

    def __init__(
        self, context: TopologyContext, collector: SpoutOutputCollector | OutputCollector, receivers: str
    ) -> None:
        self.task, self.collector = context.this_task_id, collector
        self.receivers = context.component_tasks(receivers)
        self.sent = 0

    def send(self, **how: Any) -> None:
        number, stream = self.sent, STREAMS[self.sent % 7 % len(STREAMS)]
        values = (self.task, number, number % 11)
        if stream == "told":
            receiver = self.receivers[number % 5 % len(self.receivers)]
            self.collector.emit_direct(receiver, values, stream=stream, **how)
        else:
            self.collector.emit(values, stream=stream, **how)
        self.sent += 1


def _declare(declarer: OutputFieldsDeclarer) -> None:
    for stream in STREAMS:
        declarer.declare_stream(stream, Fields("task", "number", "key"), direct=stream == "told")


class Sends(Spout):
    """Sends ``n`` numbers from each of its tasks to the tasks of ``receivers``."""

    def __init__(self, n: int, receivers: str) -> None:
        self.n, self.receivers = n, receivers

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.sequence = _Sequence(context, collector, self.receivers)

    def next_tuple(self) -> None:
        if self.sequence.sent < self.n:
            self.sequence.send(message_id=self.sequence.sent)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        _declare(declarer)


class _Seen:
    """What came, by sender, in order; it is written at the end."""

    def __init__(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.effects = Effects(conf, context)
        self.seen: list[tuple[int, int, str]] = []

    def note(self, tup: Tuple) -> None:
        self.seen.append((tup["task"], tup["number"], tup.source_stream))

    def write(self) -> None:
        for one in self.seen:
            self.effects.write(*one)


class Relays(Bolt):
    """Notes what it sees, and sends a number of its own for each."""

    def __init__(self, receivers: str) -> None:
        self.receivers = receivers

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.seen = collector, _Seen(conf, context)
        self.sequence = _Sequence(context, collector, self.receivers)

    def execute(self, tup: Tuple) -> None:
        self.seen.note(tup)
        self.sequence.send(anchors=[tup])
        self.collector.ack(tup)

    def cleanup(self) -> None:
        self.seen.write()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        _declare(declarer)


class Sees(BasicBolt):
    """Notes what it sees."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.seen = _Seen(conf, context)

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.seen.note(tup)

    def cleanup(self) -> None:
        self.seen.write()
