"""Errors of delta-rs in words."""

from __future__ import annotations

import re

__all__ = ["in_one_line"]

#: delta-rs marks the causes of an error with coloured arrows, each in a line of its own.
_ARROW = re.compile(r"\x1b\[\d*m|↳")


def in_one_line(error: BaseException) -> str:
    r"""Return the text of an error of delta-rs in one line, because a summary of a longer text leaves out its causes.

    >>> in_one_line(OSError("Generic LocalFileSystem error\n\x1b[31m↳\x1b[0m No space left on device"))
    'Generic LocalFileSystem error: No space left on device'
    """
    lines = (line.strip() for line in _ARROW.sub("", str(error)).splitlines())
    return ": ".join(filter(None, lines))
