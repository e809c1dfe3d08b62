"""A stand-in for pystorm's base class of serializers."""

from stormspark.compat.streamparse.pipes import Serializer

__all__ = ["Serializer"]
