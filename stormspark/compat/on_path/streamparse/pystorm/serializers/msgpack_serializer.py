"""A stand-in for pystorm's MessagePack serializer."""

from stormspark.compat.streamparse.pipes import MsgpackSerializer

__all__ = ["MsgpackSerializer"]
