"""The module ``heronpy.streamlet.generator``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Generator

__all__ = ["Generator"]
