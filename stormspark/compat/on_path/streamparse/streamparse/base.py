"""The base class of components, as streamparse 1 called its module."""

from streamparse.storm.component import Component, StormHandler

__all__ = ["Component", "StormHandler"]
