"""The module ``heronpy.streamlet.windowconfig``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import WindowConfig

__all__ = ["WindowConfig"]
