"""The module ``heronpy.streamlet.window``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Window

__all__ = ["Window"]
