"""Numbers from files into a Delta table; a bolt fails every fifth of them until it is repaired."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stormspark import BasicBolt, Fields, TopologyBuilder
from stormspark.api import ExponentialBackoff, Topology
from stormspark.connectors import DeltaBolt, FileSpout
from stormspark.errors import FailedException


class Check(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        if int(tup[0]) % 5 == 0 and "REPAIRED" not in os.environ:
            msg = "not repaired yet"
            raise FailedException(msg)
        collector.emit((int(tup[0]),))

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


def build() -> Topology:
    folder = Path(os.environ["LETTERS_FOLDER"])
    builder = TopologyBuilder()
    retry = ExponentialBackoff(initial_delay=0.05, max_retries=1)
    builder.set_spout("lines", FileSpout(folder / "lines", retry=retry))
    builder.set_bolt("check", Check(), 2).shuffle_grouping("lines")
    builder.set_bolt("table", DeltaBolt(folder / "table")).global_grouping("check")
    return builder.create_topology("letters")
