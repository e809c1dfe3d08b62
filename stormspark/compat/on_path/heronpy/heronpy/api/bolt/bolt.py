"""The module ``heronpy.api.bolt.bolt``: some of the names of `stormspark.compat.heronpy.components`."""

from stormspark.compat.heronpy.components import Bolt

__all__ = ["Bolt"]
