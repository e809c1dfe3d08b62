"""What streamparse's components share."""

from streamparse.storm.component import Component, StormHandler

__all__ = ["Component", "StormHandler"]
