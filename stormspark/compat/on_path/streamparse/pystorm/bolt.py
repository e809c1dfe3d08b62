"""pystorm's bolts."""

from stormspark.compat.streamparse.bolt import BatchingBolt, Bolt, TicklessBatchingBolt
from stormspark.compat.streamparse.component import Component
from stormspark.compat.streamparse.tuples import Tuple

__all__ = ["BatchingBolt", "Bolt", "Component", "TicklessBatchingBolt", "Tuple"]
