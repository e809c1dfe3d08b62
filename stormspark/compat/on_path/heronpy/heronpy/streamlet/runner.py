"""The module ``heronpy.streamlet.runner``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import Runner

__all__ = ["Runner"]
