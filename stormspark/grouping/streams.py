"""The name of a stream: the id of its component, and the stream's own id (A6, A13)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_STREAM", "GlobalStreamId"]

DEFAULT_STREAM = "default"


class GlobalStreamId(NamedTuple):
    """One stream of one component.

    >>> GlobalStreamId("words")
    GlobalStreamId(component='words', stream='default')
    """

    component: str
    stream: str = DEFAULT_STREAM
