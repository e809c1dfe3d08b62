"""``heronpy.streamlet.builder``."""

from stormspark.streamlet import Builder

__all__ = ["Builder"]
