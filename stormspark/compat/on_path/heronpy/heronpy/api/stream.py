"""As in heronpy."""

from stormspark.compat.heronpy.stream import Grouping, Stream

__all__ = ["Grouping", "Stream"]
