"""``heronpy.streamlet.generator``."""

from stormspark.streamlet import Generator

__all__ = ["Generator"]
