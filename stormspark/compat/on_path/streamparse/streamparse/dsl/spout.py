"""Specs of spouts."""

from stormspark.compat.streamparse.specs import JavaSpoutSpec, ShellSpoutSpec

__all__ = ["JavaSpoutSpec", "ShellSpoutSpec"]
