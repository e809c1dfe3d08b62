"""The version of streamparse that these names are those of."""

__version__ = "5.0.1"
VERSION = (5, 0, 1)
