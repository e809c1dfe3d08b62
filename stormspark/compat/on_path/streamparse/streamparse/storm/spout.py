"""streamparse's spouts."""

from stormspark.compat.streamparse.storm import Component, JavaSpout, ReliableSpout, ShellSpout, Spout

__all__ = ["Component", "JavaSpout", "ReliableSpout", "ShellSpout", "Spout"]
