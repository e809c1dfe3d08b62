"""Components of topologies with loops."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from stormspark import (
    Bolt,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)
from tests.conformance.components import Effects, Numbers


class TimedNumbers(Numbers):
    """Writes when its acks came; emits nothing again."""

    def __init__(self, n: int) -> None:
        super().__init__(n, replays=0)

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id, time.time_ns())


def acked_at(effects: Iterable[list[Any]]) -> dict[Any, int]:
    """When `TimedNumbers` heard of the last ack of each message, in nanoseconds."""
    return {message: at for what, message, at in (effect for effect in effects if effect[0] == "ack")}


class Round(Bolt):
    """Sends each number on with the rounds that are left, ``rounds`` at first, until none is; writes every execution.

    Fails the numbers in ``fails`` when ``fails_at`` rounds are left.
    """

    def __init__(self, rounds: int, fails: tuple[int, ...] = (), fails_at: int = 1) -> None:
        self.rounds, self.fails, self.fails_at = rounds, fails, fails_at

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.effects = collector, Effects(conf, context)

    def execute(self, tup: Tuple) -> None:
        number, left = tup["n"], tup["left"] if "left" in tup.fields else self.rounds
        self.effects.write(number, left, time.time_ns())
        if number in self.fails and left == self.fails_at:
            self.collector.fail(tup)
            return
        if left:
            self.collector.emit((number, left - 1), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n", "left"))


class Token(Spout):
    """Emits one tuple in its life, as a message if ``reliable``; counts what it hears of it."""

    def __init__(self, reliable: bool = False) -> None:
        self.reliable = reliable

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.emitted = False
        self.heard: list[Hashable] = []

    def next_tuple(self) -> None:
        if not self.emitted:
            self.emitted = True
            self.collector.emit(("token",), message_id="token" if self.reliable else None)

    def ack(self, message_id: Hashable) -> None:
        self.heard.append(message_id)

    fail = ack

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("what"))


class Forward(Bolt):
    """Sends on all that it gets, for ever."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        self.collector.emit(tup.values, anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("what"))
