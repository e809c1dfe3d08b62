"""The module ``heronpy.streamlet.context``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Context

__all__ = ["Context"]
