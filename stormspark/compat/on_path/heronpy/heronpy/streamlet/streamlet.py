"""``heronpy.streamlet.streamlet``."""

from stormspark.streamlet import Streamlet

__all__ = ["Streamlet"]
