"""As in heronpy."""

from stormspark.streamlet import ArrayLooper

__all__ = ["ArrayLooper"]
