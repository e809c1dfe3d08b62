"""What streamparse's components share."""

from stormspark.compat.streamparse.component import StormHandler
from stormspark.compat.streamparse.storm import Component
from stormspark.compat.streamparse.tuples import Tuple

__all__ = ["Component", "StormHandler", "Tuple"]
