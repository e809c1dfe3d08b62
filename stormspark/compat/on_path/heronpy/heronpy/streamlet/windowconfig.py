"""``heronpy.streamlet.windowconfig``."""

from stormspark.streamlet import WindowConfig

__all__ = ["WindowConfig"]
