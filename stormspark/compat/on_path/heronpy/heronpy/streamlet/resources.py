"""The module ``heronpy.streamlet.resources``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import Resources

__all__ = ["Resources"]
