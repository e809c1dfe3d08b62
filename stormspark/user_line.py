"""Finds the line of user code that an error or a warning names: where a component is declared, where its code raised an error,
and where its code is now.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from traceback import walk_tb
from types import CodeType, FrameType
from typing import Any, NamedTuple

__all__ = ["CodePlace", "declared_at", "is_ours", "raised_at", "running_at", "user_line", "waiting_at"]

_PACKAGE = str(Path(__file__).parent) + "/"
#: Compiled modules name themselves in tracebacks as they were named when they were compiled.
_COMPILED = f"{Path(__file__).parent.name}/"
#: The folders of installed packages, and of Python's own modules. The first may be inside the second.
_INSTALLED = tuple(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib"))
_PYTHONS = ("<frozen ", *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib")))


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
    return f"{_in_words(frame.f_code.co_filename)}:{frame.f_lineno}"


def _in_words(file: str) -> str:
    """Return the name of a file as people know it. IPython keeps a cell in a file with a number for a name, so return the cell's
    own name, such as ``In[3]``.
    """
    ipython = sys.modules.get("IPython")  # whoever runs in it has imported it
    compiler: Any = None if ipython is None else getattr(ipython.get_ipython(), "compile", None)
    named = compiler.format_code_name(file) if hasattr(compiler, "format_code_name") else None
    return file if not named else str(named[-1])


def raised_at(error: BaseException) -> str | None:
    """Return FILE:LINE of the innermost frame of ``error`` in a file of the user's own.

    If no frame is in such a file, return the innermost frame in an installed package other than this one. If there is none
    either, go on with the cause of the error. Return None if nothing is found.
    """
    line = _line_of([(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)])
    return line if line is not None or error.__cause__ is None else raised_at(error.__cause__)


class CodePlace(NamedTuple):
    """The place in user code at which a thread is: the function that this package has called, and FILE:LINE."""

    call: str
    line: str


def running_at(frame: FrameType | None, below: str, *, only_own: bool = False) -> CodePlace | None:
    """Return the place in user code at which a thread is whose innermost frame is ``frame``. Return None if it runs no user code.

    The search ends at a frame of the module ``below``. The caller of that module may be user code, too, but waits only for the
    module. If ``only_own``, code of installed packages counts as no user code.
    """
    while frame is not None and _is_ours_or_pythons(frame.f_code.co_filename):  # such as an emit that waits
        if frame.f_globals.get("__name__") == below:
            return None
        frame = frame.f_back
    frames: list[FrameType] = []
    while frame is not None and not is_ours(frame.f_code.co_filename):
        frames.insert(0, frame)
        frame = frame.f_back
    return _place_of(frames, only_own=only_own)


def waiting_at(coroutine: Any) -> CodePlace | None:
    """Return the place in user code at which a coroutine awaits something. Return None if it has ended, or is no user code.

    >>> import asyncio
    >>> async def execute(event):
    ...     await event.wait()
    >>> async def begin():
    ...     coroutine = execute(asyncio.Event())
    ...     task = asyncio.create_task(coroutine)
    ...     await asyncio.sleep(0)
    ...     task.cancel()
    ...     return waiting_at(coroutine)
    >>> asyncio.run(begin()).call
    'execute'
    """
    frames: list[FrameType] = []
    while coroutine is not None:
        for kind in ("cr", "gi", "ag"):  # coroutines, generators and async generators may await each other
            if (frame := getattr(coroutine, f"{kind}_frame", None)) is not None:
                frames.append(frame)
                coroutine = getattr(coroutine, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
                break
        else:
            break
    return _place_of([frame for frame in frames if not is_ours(frame.f_code.co_filename)])


def _place_of(frames: list[FrameType], *, only_own: bool = False) -> CodePlace | None:
    """Return the function of the first of these frames, and the line of the last one, in files of the user's own if possible."""
    own = [one for one in frames if _is_own(one.f_code.co_filename)]
    line = _line_of([(one.f_code, one.f_lineno) for one in (own if only_own else frames)])
    return None if line is None else CodePlace((own or frames)[0].f_code.co_name, line)


def _line_of(frames: list[tuple[CodeType, int | None]]) -> str | None:
    """Return FILE:LINE of the last frame in a file of the user's own, or else of the last frame in an installed package."""
    lines = [(code.co_filename, line) for code, line in frames if not _is_ours_or_pythons(code.co_filename)]
    lines = [(file, line) for file, line in lines if _is_own(file)] or lines
    return f"{_in_words(lines[-1][0])}:{lines[-1][1]}" if lines else None


@cache
def is_ours(file: str) -> bool:
    """Return whether a file, as a frame names it, belongs to this package."""
    return file.startswith((_PACKAGE, _COMPILED))


@cache
def _is_ours_or_pythons(file: str) -> bool:
    return is_ours(file) or (file.startswith(_PYTHONS) and not file.startswith(_INSTALLED))


@cache
def _is_own(file: str) -> bool:
    """Return whether the user has written the file: it belongs to no installed package and not to Python."""
    return not (_is_ours_or_pythons(file) or file.startswith(_INSTALLED))
