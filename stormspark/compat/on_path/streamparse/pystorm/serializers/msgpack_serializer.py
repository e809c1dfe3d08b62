"""A serializer of pystorm's, by name."""

from stormspark.compat.streamparse.pipes import MsgpackSerializer

__all__ = ["MsgpackSerializer"]
