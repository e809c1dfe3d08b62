"""The version of pystorm that these names are those of."""

__version__ = "3.1.4"
VERSION = (3, 1, 4)
