"""The module ``heronpy.streamlet.runner``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Runner

__all__ = ["Runner"]
