"""streamparse's components."""

from streamparse.storm.bolt import BatchingBolt, Bolt, JavaBolt, ShellBolt, TicklessBatchingBolt
from streamparse.storm.component import Component, StormHandler, Tuple
from streamparse.storm.spout import JavaSpout, ReliableSpout, ShellSpout, Spout

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "TicklessBatchingBolt",
    "Tuple",
]
