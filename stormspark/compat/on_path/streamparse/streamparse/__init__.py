"""The package ``streamparse``. It has the classes of `stormspark.compat.streamparse`, under streamparse's own names."""

from streamparse import bolt, component, dsl, spout, storm
from streamparse.dsl import Grouping, Stream, Topology
from streamparse.storm import (
    BatchingBolt,
    Bolt,
    JavaBolt,
    JavaSpout,
    ReliableSpout,
    ShellBolt,
    ShellSpout,
    Spout,
    StormHandler,
    TicklessBatchingBolt,
    Tuple,
)
from streamparse.version import VERSION, __version__

__all__ = [
    "VERSION",
    "BatchingBolt",
    "Bolt",
    "Grouping",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
    "__version__",
    "bolt",
    "component",
    "dsl",
    "spout",
    "storm",
]
