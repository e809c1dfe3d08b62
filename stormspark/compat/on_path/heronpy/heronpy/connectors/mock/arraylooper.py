"""The module ``heronpy.connectors.mock.arraylooper``: some of the names of `stormspark.streamlet`."""

from stormspark.streamlet import ArrayLooper

__all__ = ["ArrayLooper"]
