"""``heronpy.streamlet.keyedwindow``."""

from stormspark.streamlet import KeyedWindow

__all__ = ["KeyedWindow"]
