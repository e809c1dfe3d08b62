"""streamparse's bolts."""

from stormspark.compat.streamparse.storm import (
    BatchingBolt,
    Bolt,
    Component,
    JavaBolt,
    ShellBolt,
    TicklessBatchingBolt,
)

__all__ = ["BatchingBolt", "Bolt", "Component", "JavaBolt", "ShellBolt", "TicklessBatchingBolt"]
