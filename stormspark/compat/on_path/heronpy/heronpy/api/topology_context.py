"""The module ``heronpy.api.topology_context``, which re-exports names of `stormspark.compat.heronpy.contexts`."""

from stormspark.compat.heronpy.contexts import TopologyContext

__all__ = ["TopologyContext"]
