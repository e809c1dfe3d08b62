"""The module ``heronpy.api.topology``: some of the names of `stormspark.compat.heronpy.topology`."""

from stormspark.compat.heronpy.topology import Topology, TopologyBuilder, TopologyType

__all__ = ["Topology", "TopologyBuilder", "TopologyType"]
