"""As in heronpy."""

from stormspark.compat.heronpy.contexts import TopologyContext

__all__ = ["TopologyContext"]
