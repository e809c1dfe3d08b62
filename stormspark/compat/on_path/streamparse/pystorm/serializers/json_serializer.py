"""A serializer of pystorm's, by name."""

from stormspark.compat.streamparse.pipes import JSONSerializer

__all__ = ["JSONSerializer"]
