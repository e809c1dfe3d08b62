"""The module ``heronpy.streamlet.streamlet``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Streamlet

__all__ = ["Streamlet"]
