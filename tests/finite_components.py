"""Components of topologies whose input has an end, for tests on both engines."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from stormspark import BasicBolt, Fields, OutputFieldsDeclarer, Spout, TupleWindow, WindowedBolt

__all__ = ["Lines", "Numbers", "Parse", "PerWindow"]


class Lines(Spout):
    """Each task emits a line for each row, and then waits for more in each call. It does not say that it is done."""

    def __init__(self, rows: range) -> None:
        self.rows = rows

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.left = iter(self.rows)

    def next_tuple(self) -> None:
        n = next(self.left, None)
        if n is None:
            time.sleep(0.3)
        else:
            self.collector.emit((f"{1_000_000 + n * 25} {n}",), message_id=n)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("line"))


class Numbers(Spout):
    """Emits (at, n) with ``at`` = 10 n; and again what fails."""

    waits = False

    def __init__(self, count: int, step: int = 10) -> None:
        self.count, self.step = count, step

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector
        self.left = [*range(self.count)]

    def next_tuple(self) -> None:
        if self.left:
            n = self.left.pop(0)
            self.collector.emit((n * self.step, n), message_id=n)

    def is_done(self) -> bool:
        return not self.left

    def fail(self, message_id: Any) -> None:
        self.left.append(message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


class Parse(BasicBolt):
    """Emits (at, n) for a line that has both."""

    def execute(self, tup: Any, collector: Any) -> None:
        at, n = tup["line"].split()
        collector.emit((int(at), int(n)))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("at", "n"))


class PerWindow(WindowedBolt):
    """Emits the end of each window and how many rows it has."""

    waits = False

    def prepare(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, window: TupleWindow) -> None:
        self.collector.emit((window.end_timestamp, len(window)))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("until", "rows"))
