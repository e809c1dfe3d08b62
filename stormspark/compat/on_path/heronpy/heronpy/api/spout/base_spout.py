"""The module ``heronpy.api.spout.base_spout``: some of the names of `stormspark.compat.heronpy.components`."""

from stormspark.compat.heronpy.components import BaseSpout

__all__ = ["BaseSpout"]
