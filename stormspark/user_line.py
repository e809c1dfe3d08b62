"""Finds the line of user code that an error names, while a topology is built."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

__all__ = ["declared_at", "raised_at", "user_line"]

_PACKAGE = str(Path(__file__).parent) + "/"


_DECLARED_AT: ContextVar[str | None] = ContextVar("declared_at", default=None)


@contextmanager
def declared_at(where: str) -> Iterator[None]:
    """While the ``with`` block runs, errors about components name ``where``, which is a line in a file that is not Python.

    >>> with declared_at("topology.yaml:7"):
    ...     user_line()
    'topology.yaml:7'
    """
    before = _DECLARED_AT.set(where)
    try:
        yield
    finally:
        _DECLARED_AT.reset(before)


def user_line() -> str:
    """Return FILE:LINE of the innermost caller outside of this package, or the place that `declared_at` has set."""
    if (where := _DECLARED_AT.get()) is not None:
        return where
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(error: BaseException) -> str | None:
    """Return FILE:LINE of the innermost frame of ``error`` that is outside of this package, or None."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_PACKAGE):
            return f"{frame.filename}:{frame.lineno}"
    return None
