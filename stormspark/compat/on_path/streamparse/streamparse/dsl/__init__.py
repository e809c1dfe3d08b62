"""streamparse's DSL."""

from streamparse.dsl.stream import Grouping, Stream
from streamparse.dsl.topology import Topology

__all__ = ["Grouping", "Stream", "Topology"]
