"""The module ``heronpy.streamlet.generator``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import Generator

__all__ = ["Generator"]
