"""The base class of streamparse's components."""

from streamparse.storm.component import Component, StormHandler

__all__ = ["Component", "StormHandler"]
