"""``heronpy.streamlet.context``."""

from stormspark.streamlet import Context

__all__ = ["Context"]
