"""streamparse's spouts."""

from streamparse.storm.spout import Component, JavaSpout, ReliableSpout, ShellSpout, Spout

__all__ = ["Component", "JavaSpout", "ReliableSpout", "ShellSpout", "Spout"]
