"""The package ``pystorm``. It has the classes of `stormspark.compat.streamparse`, under pystorm's own names."""

from pystorm.bolt import BatchingBolt, Bolt, TicklessBatchingBolt
from pystorm.component import Component, Tuple
from pystorm.spout import ReliableSpout, Spout
from pystorm.version import VERSION, __version__

__all__ = [
    "VERSION",
    "BatchingBolt",
    "Bolt",
    "Component",
    "ReliableSpout",
    "Spout",
    "TicklessBatchingBolt",
    "Tuple",
    "__version__",
]
