"""As in heronpy."""

from stormspark.compat.heronpy.custom_grouping import ICustomGrouping

__all__ = ["ICustomGrouping"]
