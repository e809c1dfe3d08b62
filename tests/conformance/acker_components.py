"""Bolts that keep their tuples for long, ack late, or twice."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from stormspark import Bolt, OutputCollector, TopologyContext, Tuple
from tests.conformance.components import Effects, Numbers


class TimedVerdict(NamedTuple):
    """What `TimedVerdicts` wrote down of a verdict: ack or failed, the message, and when."""

    what: str
    message: Any
    at: int


def timed_verdicts(effects: Iterable[list[Any]]) -> list[TimedVerdict]:
    return [TimedVerdict(*effect) for effect in effects if effect[0] in ("ack", "failed")]


class TimedVerdicts(Numbers):
    """Writes when each verdict came."""

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id, time.time_ns())

    def fail(self, message_id: Hashable) -> None:
        super().fail(message_id)
        self.effects.write("failed", message_id, time.time_ns())


class _Ticking(Bolt):
    def get_component_configuration(self) -> Mapping[str, Any]:
        return {"topology.tick.tuple.freq.secs": 0.2}

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.kept: list[tuple[float, Tuple]] = []


class SlowAndForgetful(_Ticking):
    """Acks even numbers after ``seconds``, with their timeouts reset at each tick until then; forgets odd ones."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def execute(self, tup: Tuple) -> None:
        if not tup.is_tick:
            if tup["n"] % 2 == 0:
                self.kept.append((time.monotonic() + self.seconds, tup))
            return
        for _, kept in self.kept:
            self.collector.reset_timeout(kept)
        for due, kept in self.kept:
            if time.monotonic() >= due:
                self.collector.ack(kept)
        self.kept = [(due, kept) for due, kept in self.kept if time.monotonic() < due]


class AcksTheOldOneFirst(_Ticking):
    """Keeps a number until it comes again; then acks the old tuple at once and the new one with the next tick."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        super().prepare(conf, context, collector)
        self.old: dict[int, Tuple] = {}

    def execute(self, tup: Tuple) -> None:
        if tup.is_tick:
            for _, kept in self.kept:
                self.effects.write(kept["n"], time.time_ns())
                self.collector.ack(kept)
            self.kept.clear()
        elif tup["n"] in self.old:
            self.collector.ack(self.old.pop(tup["n"]))
            self.kept.append((0.0, tup))
        else:
            self.old[tup["n"]] = tup


class AcksTwice(Bolt):
    """Acks every tuple, acks it again, then fails it."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        self.collector.ack(tup)
        self.collector.ack(tup)
        self.collector.fail(tup)
