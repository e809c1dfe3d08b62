"""Finds the line of a child in Python that raised an error, in the traceback that the child sends or writes."""

from __future__ import annotations

import re

__all__ = ["childs_line"]

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)
#: Storm's library for children. Its frames are above and below those of the child's own code.
_LIBRARY = re.compile(r"(?:.*[/\\])?storm\.pyc?")


def childs_line(text: str) -> str | None:
    """Return FILE:LINE of the last frame in a traceback that is not in ``storm.py``; None if ``text`` has no traceback.

    >>> childs_line('''Traceback (most recent call last):
    ...   File "/shop/resources/storm.py", line 190, in run
    ...     self.process(tup)
    ...   File "/shop/resources/split.py", line 7, in process
    ...     storm.emit(tup.values[0].split())
    ...   File "/shop/resources/storm.py", line 90, in emit
    ...     raise TypeError("a number")
    ... TypeError: a number''')
    '/shop/resources/split.py:7'
    """
    if _TRACEBACK not in text:
        return None
    frames = [one for one in _FRAME.finditer(text) if not _LIBRARY.fullmatch(one["file"])]
    return f"{frames[-1]['file']}:{frames[-1]['line']}" if frames else None
