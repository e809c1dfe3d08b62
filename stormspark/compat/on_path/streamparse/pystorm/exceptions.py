"""pystorm's exceptions."""

from stormspark.compat.streamparse.pipes import StormWentAwayError

__all__ = ["StormWentAwayError"]
