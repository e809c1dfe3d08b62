"""The module ``heronpy.connectors.mock.arraylooper``, with the names of `stormspark.streamlet`."""

from stormspark.streamlet import ArrayLooper

__all__ = ["ArrayLooper"]
