"""The steps of a topology's start, in words, for whoever waits for it. Some take minutes, for instance on slow storage."""

from __future__ import annotations

import logging

__all__ = ["begin_step", "current_step"]

_log = logging.getLogger(__name__)

#: If a program starts several topologies at once, this is the step of whichever came to one last.
_current = [""]


def begin_step(step: str) -> None:
    """Note and log what the start does from now on.

    >>> begin_step("the state is read")
    >>> current_step()
    'the state is read'
    """
    _current[0] = step
    _log.info("starts: %s", step)


def current_step() -> str:
    """Return what the start does now. The end of the start changes nothing here."""
    return _current[0]
