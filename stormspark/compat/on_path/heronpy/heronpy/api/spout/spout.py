"""The module ``heronpy.api.spout.spout``: some of the names of `stormspark.compat.heronpy.components`."""

from stormspark.compat.heronpy.components import Spout

__all__ = ["Spout"]
