"""The user's line: where errors of building point to."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

__all__ = ["raised_at", "user_line"]

_PACKAGE = str(Path(__file__).parent.parent) + "/"


def user_line() -> str:
    """FILE:LINE of the innermost caller that is no module of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(error: BaseException) -> str | None:
    """FILE:LINE of the innermost code outside of this package that ``error`` came through, or None."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_PACKAGE):
            return f"{frame.filename}:{frame.lineno}"
    return None
