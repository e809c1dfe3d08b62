"""The version of pystorm that these modules stand for."""

__version__ = "3.1.4"
VERSION = (3, 1, 4)
