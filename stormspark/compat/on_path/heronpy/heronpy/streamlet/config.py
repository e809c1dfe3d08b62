"""The module ``heronpy.streamlet.config``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import Config

__all__ = ["Config"]
