"""A topology that never ends by itself."""

from __future__ import annotations

from typing import Any

from stormspark import BasicBolt, Fields, Spout, Topology, TopologyBuilder

__all__ = ["numbers"]


class Numbers(Spout):
    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.number = collector, 0

    def next_tuple(self) -> None:
        self.collector.emit((self.number,), message_id=self.number)
        self.number += 1

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class End(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        pass

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def numbers(name: str) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("end", End()).shuffle_grouping("numbers")
    return builder.create_topology(name, {"topology.workers": 1, "topology.max.spout.pending": 100})
