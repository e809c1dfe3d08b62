"""As in heronpy."""

from stormspark.compat.heronpy.components import Bolt

__all__ = ["Bolt"]
