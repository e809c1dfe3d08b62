"""The base class of topologies."""

from stormspark.compat.streamparse.topology import Topology, TopologyType

__all__ = ["Topology", "TopologyType"]
