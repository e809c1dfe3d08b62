"""The local engine: it runs the workers of a topology in one process, without Java. Tests can drive its clock."""

from stormspark.local.clock import SimulatedClock
from stormspark.local.cluster import LocalCluster, running_topologies, submit
from stormspark.local.supersteps import InProcessWorkers
from stormspark.local.topology import CORES, LocalTopology

__all__ = [
    "CORES",
    "InProcessWorkers",
    "LocalCluster",
    "LocalTopology",
    "SimulatedClock",
    "running_topologies",
    "submit",
]
