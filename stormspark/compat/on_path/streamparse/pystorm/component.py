"""The base class of pystorm's components."""

from stormspark.compat.streamparse.component import Component, LogStream, StormHandler
from stormspark.compat.streamparse.tuples import Tuple

__all__ = ["Component", "LogStream", "StormHandler", "Tuple"]
