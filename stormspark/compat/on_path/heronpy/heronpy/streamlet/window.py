"""The module ``heronpy.streamlet.window``, which re-exports names of `stormspark.streamlet`."""

from stormspark.streamlet import Window

__all__ = ["Window"]
