"""What pystorm's components share."""

from stormspark.compat.streamparse.component import Component, LogStream, StormHandler
from stormspark.compat.streamparse.tuples import Tuple

__all__ = ["Component", "LogStream", "StormHandler", "Tuple"]
