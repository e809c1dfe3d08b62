"""Specs of bolts."""

from stormspark.compat.streamparse.specs import JavaBoltSpec, ShellBoltSpec

__all__ = ["JavaBoltSpec", "ShellBoltSpec"]
