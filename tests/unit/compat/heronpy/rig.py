"""heronpy topologies in one process, on a clock that tests drive."""

from __future__ import annotations

from typing import Any

from stormspark import Topology
from stormspark.compat.heronpy.topology import TopologyBuilder
from tests.unit.worker.rig import Rig


class _Lowered:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology

    def create_topology(self, name: str) -> Topology:
        return self._topology


def run(builder: TopologyBuilder, workers: int = 1, **conf: Any) -> Rig:
    """A rig of what the builder has; batches are run by its methods."""
    lowered: Any = _Lowered(builder.build().lowered())
    return Rig(lowered, workers, **conf)
