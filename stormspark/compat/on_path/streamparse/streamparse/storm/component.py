"""The base class of streamparse's components."""

from stormspark.compat.streamparse.component import StormHandler
from stormspark.compat.streamparse.storm import Component
from stormspark.compat.streamparse.tuples import Tuple

__all__ = ["Component", "StormHandler", "Tuple"]
