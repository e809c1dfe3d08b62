"""The module ``heronpy.streamlet.resources``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Resources

__all__ = ["Resources"]
