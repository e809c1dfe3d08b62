"""The module ``heronpy.streamlet.context``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import Context

__all__ = ["Context"]
