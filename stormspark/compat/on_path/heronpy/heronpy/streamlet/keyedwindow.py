"""The module ``heronpy.streamlet.keyedwindow``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import KeyedWindow

__all__ = ["KeyedWindow"]
