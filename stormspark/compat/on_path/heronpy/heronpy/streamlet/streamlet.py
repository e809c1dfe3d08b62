"""The module ``heronpy.streamlet.streamlet``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import Streamlet

__all__ = ["Streamlet"]
