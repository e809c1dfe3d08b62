"""The module ``heronpy.api.topology_context``, with the names of `stormspark.compat.heronpy.contexts`."""

from stormspark.compat.heronpy.contexts import TopologyContext

__all__ = ["TopologyContext"]
