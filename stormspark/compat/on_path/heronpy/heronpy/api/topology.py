"""As in heronpy."""

from stormspark.compat.heronpy.topology import Topology, TopologyBuilder, TopologyType

__all__ = ["Topology", "TopologyBuilder", "TopologyType"]
