"""The module ``heronpy.api.topology``, with the names of `stormspark.compat.heronpy.topology`."""

from stormspark.compat.heronpy.topology import Topology, TopologyBuilder, TopologyType

__all__ = ["Topology", "TopologyBuilder", "TopologyType"]
