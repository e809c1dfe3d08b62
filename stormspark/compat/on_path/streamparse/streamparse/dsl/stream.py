"""Streams and groupings."""

from stormspark.compat.streamparse.groupings import Grouping
from stormspark.compat.streamparse.streams import Stream

__all__ = ["Grouping", "Stream"]
