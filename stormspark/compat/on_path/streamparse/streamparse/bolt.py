"""streamparse's bolts."""

from streamparse.storm.bolt import BatchingBolt, Bolt, Component, JavaBolt, ShellBolt, TicklessBatchingBolt

#: The name in streamparse 0 and 1 of a bolt that anchors and acks by itself, as every bolt does since.
BasicBolt = Bolt

__all__ = ["BasicBolt", "BatchingBolt", "Bolt", "Component", "JavaBolt", "ShellBolt", "TicklessBatchingBolt"]
