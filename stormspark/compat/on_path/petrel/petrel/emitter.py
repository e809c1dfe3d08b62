"""The classes that users of Petrel subclass."""

from stormspark.compat.petrel.emitter import BasicBolt, Bolt, EmitterBase, Spout

__all__ = ["BasicBolt", "Bolt", "EmitterBase", "Spout"]
