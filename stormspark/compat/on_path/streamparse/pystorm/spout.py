"""pystorm's spouts."""

from stormspark.compat.streamparse.component import Component
from stormspark.compat.streamparse.spout import ReliableSpout, Spout

__all__ = ["Component", "ReliableSpout", "Spout"]
