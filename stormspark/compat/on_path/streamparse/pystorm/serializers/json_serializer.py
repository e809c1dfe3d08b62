"""A stand-in for pystorm's JSON serializer."""

from stormspark.compat.streamparse.pipes import JSONSerializer

__all__ = ["JSONSerializer"]
