"""A serializer of pystorm's, by name."""

from stormspark.compat.streamparse.pipes import Serializer

__all__ = ["Serializer"]
