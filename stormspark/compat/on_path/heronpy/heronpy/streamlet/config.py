"""The module ``heronpy.streamlet.config``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import Config

__all__ = ["Config"]
