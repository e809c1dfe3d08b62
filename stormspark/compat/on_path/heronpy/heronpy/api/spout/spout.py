"""As in heronpy."""

from stormspark.compat.heronpy.components import Spout

__all__ = ["Spout"]
