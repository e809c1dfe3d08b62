"""The module ``heronpy.streamlet.builder``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Builder

__all__ = ["Builder"]
