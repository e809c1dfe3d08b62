"""Components of topologies whose input has an end, for tests on both engines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark import BasicBolt, Fields, OutputFieldsDeclarer, TupleWindow, WindowedBolt

__all__ = ["Parse", "PerWindow"]


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
