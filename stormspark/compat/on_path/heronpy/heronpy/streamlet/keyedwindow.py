"""The module ``heronpy.streamlet.keyedwindow``, which re-exports names of `stormspark.streamlet`."""

from stormspark.streamlet import KeyedWindow

__all__ = ["KeyedWindow"]
