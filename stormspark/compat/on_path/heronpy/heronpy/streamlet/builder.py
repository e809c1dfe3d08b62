"""The module ``heronpy.streamlet.builder``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import Builder

__all__ = ["Builder"]
