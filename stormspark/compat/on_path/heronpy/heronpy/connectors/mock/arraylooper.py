"""As in heronpy."""

from stormspark.compat.heronpy.generators import ArrayLooper

__all__ = ["ArrayLooper"]
