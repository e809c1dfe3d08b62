"""The module ``heronpy.api.custom_grouping``: some of the names of `stormspark.compat.heronpy.custom_grouping`."""

from stormspark.compat.heronpy.custom_grouping import ICustomGrouping

__all__ = ["ICustomGrouping"]
