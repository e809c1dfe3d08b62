"""``heronpy.streamlet.window``."""

from stormspark.streamlet import Window

__all__ = ["Window"]
