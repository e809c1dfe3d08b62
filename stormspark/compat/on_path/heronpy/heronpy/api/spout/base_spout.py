"""As in heronpy."""

from stormspark.compat.heronpy.components import BaseSpout

__all__ = ["BaseSpout"]
