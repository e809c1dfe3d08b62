"""The module ``heronpy.streamlet.windowconfig``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import WindowConfig

__all__ = ["WindowConfig"]
