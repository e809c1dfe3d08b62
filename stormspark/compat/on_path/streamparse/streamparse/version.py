"""The version of streamparse whose names these modules have."""

__version__ = "5.0.1"
VERSION = (5, 0, 1)
