"""The version of pystorm whose names these modules have."""

__version__ = "3.1.4"
VERSION = (3, 1, 4)
