"""``heronpy.streamlet.runner``."""

from stormspark.streamlet import Runner

__all__ = ["Runner"]
