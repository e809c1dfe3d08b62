"""Tuples that weigh much, between workers on Spark with the heap that its JVM has by default (1 GB)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from tests.waiting import wait_until_idle

pytestmark = pytest.mark.spark


class Documents(Spout):
    """Emits ``total`` dicts of 200 KB, and after them one text of 100 MB and one that is too large."""

    def __init__(self, total: int) -> None:
        self.total = total

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.rows, self.failed = collector, self.made(), []

    def made(self) -> Iterator[tuple[int, Any]]:
        for number in range(self.total):
            yield number, {f"field {at}": f"{number}/{at}" + "x" * 1000 for at in range(200)}
        yield self.total, "y" * 100_000_000
        yield self.total + 1, "z" * 270_000_000

    def next_tuple(self) -> None:
        row = next(self.rows, None)
        if row is not None:
            self.collector.emit(row, message_id=row[0])

    def fail(self, message_id: Any) -> None:
        verdict = str(self.collector.verdict)
        assert message_id == self.total + 1 and "stormspark.tuple.max.bytes" in verdict, (message_id, verdict)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number", "document"))


class Pass(BasicBolt):
    """Hands on what it is given, whole."""

    def execute(self, tup: Any, collector: Any) -> None:
        number, document = tup.values
        size = sum(map(len, document.values())) if type(document) is dict else len(document)
        assert size > 200_000, size
        collector.emit((number, size, document if number % 5 == 0 and size < 1_000_000 else None))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("number", "size", "document"))


class Note(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        pass


@pytest.mark.slow
def test_dicts_of_hundreds_of_kilobytes_do_not_end_the_jvm(start: Any) -> None:
    """Dicts of 200 KB, half of them to the other worker, a fifth twice; a text of 100 MB; one that is refused.

    2,500 of them ended it, in frames of 100 MB each: ``HEAVY_TUPLES``.
    """
    total = int(os.environ.get("HEAVY_TUPLES", "600"))
    builder = TopologyBuilder()
    builder.set_spout("documents", Documents(total))
    builder.set_bolt("pass", Pass(), 2).fields_grouping("documents", Fields("number"))
    builder.set_bolt("note", Note(), 2).shuffle_grouping("pass")
    conf = {"topology.workers": 2, "topology.message.timeout.secs": 600, "stormspark.max.attempts": 1}
    running = start(builder.create_topology("heavy"), conf=conf)
    wait_until_idle(running, 500)
    running.stop()
    assert running.error is None
    components = running.statistics().components
    assert (components["documents"].acked, components["documents"].failed) == (total + 1, 1)
    assert components["note"].executed == total + 1
