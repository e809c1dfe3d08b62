"""The module ``heronpy.api.stream``: some of the names of `stormspark.compat.heronpy.stream`."""

from stormspark.compat.heronpy.stream import Grouping, Stream

__all__ = ["Grouping", "Stream"]
