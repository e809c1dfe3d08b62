"""``heronpy.streamlet.resources``."""

from stormspark.streamlet import Resources

__all__ = ["Resources"]
