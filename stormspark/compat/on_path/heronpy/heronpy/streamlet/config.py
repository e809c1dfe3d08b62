"""``heronpy.streamlet.config``."""

from stormspark.streamlet import Config

__all__ = ["Config"]
