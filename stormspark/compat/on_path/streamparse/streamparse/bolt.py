"""streamparse's bolts."""

from streamparse.storm.bolt import BatchingBolt, Bolt, Component, JavaBolt, ShellBolt, TicklessBatchingBolt

__all__ = ["BatchingBolt", "Bolt", "Component", "JavaBolt", "ShellBolt", "TicklessBatchingBolt"]
